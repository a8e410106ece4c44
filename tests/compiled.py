"""Functions that are compiled with the package, and their Python twins."""

import ast
from pathlib import Path

import pytest

import span_hpo
from span_hpo.runtime import runs_machine_code
from tests.places import ROOT

PACKAGE = Path(span_hpo.__file__).parent  # the checkout, or what is installed
COMPILED_FILES = sorted((ROOT / "span_hpo").rglob("*.pyx"))  # none without a checkout

needs_compiled = pytest.mark.skipif(
    not runs_machine_code(), reason="nothing is compiled, or SPAN_HPO_INTERPRETED is set"
)


def module_of(path):
    """Return the name under which a compiled file is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def twin_of(path):
    """Return the Python file beside which a compiled file stands."""
    return path.with_name(path.stem.removeprefix("_") + ".py")


def marked_functions(path):
    """Return the functions of a Python file that are also compiled, with their arguments."""
    return {
        node.name: [argument.arg for argument in node.args.args + node.args.kwonlyargs]
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(mark, ast.Name) and mark.id == "compiled" for mark in node.decorator_list
        )
    }


def compiled_modules():
    """Return the names of the compiled modules, which follow from their twins."""
    return [
        ".".join(["span_hpo", *path.parent.relative_to(PACKAGE).parts, f"_{path.stem}"])
        for path in sorted(PACKAGE.rglob("*.py"))
        if marked_functions(path)
    ]
