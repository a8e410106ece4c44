import importlib
import re
import sys
import types

import numpy as np
import pytest

from span_hpo import leave_one_out, solve
from span_hpo.runtime import compilation
from tests.compiled import (
    COMPILED_FILES,
    compiled_modules,
    marked_functions,
    module_of,
    needs_compiled,
    twin_of,
)
from tests.places import ROOT
from tests.problems import moons_problem
from tests.processes import ended

FILES = [pytest.param(path, id=module_of(path)) for path in COMPILED_FILES]
ERRORS = """
from span_hpo import leave_one_out, solve
from tests.problems import moons_problem
solution = solve(moons_problem(60, cost=10.0))
for method in ("exact", "stopping"):
    print(repr(leave_one_out(solution, method).error))
"""


def with_machine_code(monkeypatch, module):
    """Return a marked function whose machine code stands in a module, or is missing."""
    monkeypatch.setattr(compilation, "extension", lambda name: module)

    @compilation.compiled
    def answer(x):
        """Return who answers."""
        return f"Python {x}"

    return answer


@needs_compiled
def test_machine_code_runs_outside_the_block_only(monkeypatch):
    """In the block the Python twin runs, outside it the machine code; the name stays."""
    answer = with_machine_code(monkeypatch, types.SimpleNamespace(answer=lambda x: f"machine {x}"))
    with compilation.interpreted():
        assert answer(3) == "Python 3"
    assert answer(x=3) == "machine 3"
    assert answer.__name__ == "answer"


def test_without_machine_code_the_twin_runs(monkeypatch):
    """A function that was not compiled is plain Python."""
    assert with_machine_code(monkeypatch, None)(3) == "Python 3"


def test_other_missing_modules_are_reported(monkeypatch):
    """Only a compiled module itself may be missing, not what it imports."""

    def broken(name):
        raise ModuleNotFoundError("No module named 'other'", name="other")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="other"):
        compilation.extension("span_hpo.some._module")


@needs_compiled
def test_machine_code_for_another_scipy_is_not_used():
    """Where SciPy has changed the arguments of a routine, the twin runs, with one warning."""
    code = f"""
import importlib
real = importlib.import_module
def changed(name, *rest):
    if name == "span_hpo.loo.path._one_call":
        raise TypeError("C function scipy.linalg.cython_lapack.dgesv has wrong signature")
    return real(name, *rest)
importlib.import_module = changed
{ERRORS}"""
    found = ended([sys.executable, "-c", code], ROOT)
    assert found.returncode == 0
    assert len(set(found.stdout.split())) == 1
    assert "dgesv has wrong signature" in found.stderr


def test_everything_works_without_the_compiled_core():
    """Without a compiled core the same classes are proven, and one line says what to do."""
    code = f"""
import sys
for name in {compiled_modules()}:
    sys.modules[name] = None
{ERRORS}"""
    expected = repr(leave_one_out(solve(moons_problem(60, cost=10.0)), "exact").error)
    found = ended([sys.executable, "-c", code], ROOT, SPAN_HPO_INTERPRETED="0")
    assert found.stdout.split() == [expected] * 2
    (line,) = found.stderr.splitlines()
    assert "runs without its compiled core" in line
    assert "Install a C compiler, and then span-hpo once more." in line
    asked = ended([sys.executable, "-W", "error", "-c", code], ROOT, SPAN_HPO_INTERPRETED="1")
    assert asked.stdout.split() == [expected] * 2
    assert asked.stderr == ""


@pytest.mark.parametrize(("setting", "is_compiled"), [("0", True), ("", True), ("1", False)])
@needs_compiled
def test_the_environment_forces_the_twins(setting, is_compiled):
    """`SPAN_HPO_INTERPRETED=1` holds for a whole process."""
    code = "from span_hpo.runtime import runs_machine_code; print(runs_machine_code())"
    found = ended([sys.executable, "-c", code], ROOT, SPAN_HPO_INTERPRETED=setting)
    assert found.stdout.strip() == str(is_compiled)


@pytest.mark.parametrize(("setting", "are_loaded"), [("0", True), ("1", False)])
@needs_compiled
def test_compiled_modules_are_imported_with_the_package(setting, are_loaded):
    """The first fit does not wait for compiled modules; the twins do without them."""
    names = set(compiled_modules())
    code = f"import sys, span_hpo; print(len({names} & set(sys.modules)))"
    found = ended([sys.executable, "-c", code], ROOT, SPAN_HPO_INTERPRETED=setting)
    assert int(found.stdout) == (len(names) if are_loaded else 0)


@pytest.mark.parametrize("path", FILES)
def test_compiled_files_and_twins_have_the_same_functions(path):
    """Every public function is marked in the Python file beside it, with the same arguments."""
    assert path.stem.startswith("_")
    found = {}
    for name, arguments in re.findall(
        r"^def (\w+)\((.*?)\):$", path.read_text(), flags=re.MULTILINE | re.DOTALL
    ):
        parts = [part.split("=")[0].split() for part in arguments.split(",")]
        found[name] = [part[-1] for part in parts if part and part != ["*"]]
    assert found == marked_functions(twin_of(path))


def test_every_marked_function_is_compiled():
    """No function is marked without a compiled file beside it."""
    twins = {twin_of(path) for path in COMPILED_FILES}
    for path in (ROOT / "span_hpo").rglob("*.py"):
        assert path in twins or not marked_functions(path), path


@needs_compiled
@pytest.mark.parametrize("path", FILES)
def test_every_file_is_compiled(path):
    """What is compiled is compiled completely."""
    module = importlib.import_module(module_of(path))
    assert np.all([hasattr(module, name) for name in marked_functions(twin_of(path))])
