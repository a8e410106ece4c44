"""Docstrings: their examples run, and their entries can be read by themselves."""

import ast
import doctest
import importlib
import re
import warnings

import pytest

import span_hpo
from span_hpo import bounds
from tests.places import ROOT

FRAMEWORKS = ("flaml", "optuna", "ray")
MODULES = sorted(
    ".".join(("span_hpo", *path.relative_to(ROOT / top).with_suffix("").parts))
    for top, folder in (("span_hpo", ROOT / "span_hpo"), (".", ROOT / "integrations"))
    for path in folder.rglob("*.py")
    if path.stem != "__init__" and "optunahub" not in path.parts  # not installed
)
SOURCES = [
    path
    for folder in ("span_hpo", "integrations", "benchmarks")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def module_named(name):
    """Return a module, or skip the test if the framework that it adapts is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for framework in FRAMEWORKS:
            if f".integrations.{framework}" in name:
                pytest.importorskip(framework)
        return importlib.import_module(name)


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.filterwarnings("ignore")  # those of the frameworks
def test_examples_run(name, tmp_path, monkeypatch):
    """What the examples in docstrings print is what they say."""
    monkeypatch.chdir(tmp_path)
    module = module_named(name)
    assert doctest.testmod(module, optionflags=doctest.ELLIPSIS).failed == 0


@pytest.mark.parametrize("name", span_hpo.__all__)
def test_public_names_have_an_example(name):
    """Every public class and function shows how it is used; a module shows it in its functions."""
    public = getattr(span_hpo, name)
    if public is not bounds:
        assert ">>>" in public.__doc__, name


@pytest.mark.parametrize("name", bounds.__all__)
def test_bounds_have_an_example(name):
    """Every bound shows how it is used."""
    assert ">>>" in getattr(bounds, name).__doc__, name


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_adapters_have_examples(framework):
    """Every public class and function of an adapter shows how it is used."""
    adapter = module_named(f"span_hpo.integrations.{framework}")
    missing = [
        name
        for name in adapter.__all__
        if callable(getattr(adapter, name)) and ">>>" not in (getattr(adapter, name).__doc__ or "")
    ]
    assert not missing


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_entries_can_be_read_by_themselves(path):
    """No docstring and no entry of one begins with "Of" or leaves its subject to a neighbour."""
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        faults = re.findall(
            r"(?:^|\n)\s*(Of [^\n]*|As above[^\n]*|The same[.,;][^\n]*|Whether to show one[^\n]*)",
            text,
        )
        assert not faults, f"{path}: {faults}"
