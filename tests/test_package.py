"""The package as a whole: its face, its layout, its version."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import span_hpo

ROOT = Path(__file__).parent.parent
# The order in which data flow; no module imports one that stands later.
LAYOUT = [
    "arrays",
    "errors",
    "checks",
    "summary",
    "threads",
    "once",
    "jit",
    "data",
    "tables",
    "space",
    "gram",
    "kernels",
    "qp",
    "triangular",
    "hull",
    "smo",
    "polish",
    "libsvm",
    "solver",
    "pairwise",
    "weighting",
    "spans",
    "box_spans",
    "certificates",
    "path",
    "tableau",
    "verdict",
    "exact",
    "stopping",
    "loo",
    "bounds",
    "metrics",
    "objective",
    "probability",
    "export",
    "svc",
    "demo",
    "engines",
    "cli",
]
USE_ADAPTERS = {"svc", "demo", "engines"}  # modules that may run a whole search


def imported_modules(path):
    """Return the modules that a file imports, with the names of those imported from."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            yield node.module


@pytest.mark.parametrize("module", LAYOUT)
def test_no_module_imports_a_later_one(module):
    """Data flow one way through the modules."""
    own = [
        name.removeprefix("span_hpo.")
        for name in imported_modules(ROOT / "span_hpo" / f"{module}.py")
        if name.startswith("span_hpo.")
    ]
    before = {
        *LAYOUT[: LAYOUT.index(module)],
        *({"integrations"} if module in USE_ADAPTERS else ()),
    }
    assert set(own) <= before


def test_layout_is_complete():
    """Every module has its place in the order."""
    files = {path.stem for path in (ROOT / "span_hpo").glob("*.py")} - {"__init__"}
    assert files == set(LAYOUT)


def test_only_the_border_knows_a_solver():
    """PIQP stays in `qp`; LIBSVM in `libsvm`, but for the model that `objective` returns."""
    users = {"piqp": set(), "sklearn.svm": set()}
    for module in LAYOUT:
        names = set(imported_modules(ROOT / "span_hpo" / f"{module}.py"))
        for library, known in users.items():
            if library in names:
                known.add(module)
    assert users == {"piqp": {"qp"}, "sklearn.svm": {"libsvm", "objective"}}


@pytest.mark.parametrize("framework", ["flaml", "optuna", "ray"])
def test_only_an_adapter_knows_its_framework(framework):
    """A framework is imported by its own adapter, never by the core."""
    adapter = ROOT / "integrations" / framework
    known = [name for path in adapter.glob("*.py") for name in imported_modules(path)]
    assert any(name.split(".")[0] == framework for name in known)
    for module in LAYOUT:
        names = list(imported_modules(ROOT / "span_hpo" / f"{module}.py"))
        assert framework not in {name.split(".")[0] for name in names}
        adapters = any(name.startswith("span_hpo.integrations") for name in names)
        assert adapters <= (module in USE_ADAPTERS)


@pytest.mark.parametrize("framework", ["flaml", "optuna", "ray"])
@pytest.mark.filterwarnings("ignore")  # of the frameworks
def test_adapters_list_what_is_public(framework):
    """Public names of an adapter are there, sorted and documented."""
    pytest.importorskip(framework)
    adapter = importlib.import_module(f"span_hpo.integrations.{framework}")
    assert list(adapter.__all__) == sorted(adapter.__all__, key=_ruff_order)
    for name in adapter.__all__:
        assert getattr(adapter, name).__doc__, name


@pytest.mark.parametrize("framework", ["flaml", "optuna", "ray"])
def test_missing_extra(framework):
    """Without its framework the import of an adapter tells what to install."""
    code = f"""
import sys
sys.modules[{framework!r}] = None
try:
    import span_hpo.integrations.{framework}
except ImportError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert f"pip install 'span-hpo[{framework}]'" in found.stdout


def test_public_names_exist_and_are_sorted():
    """What is listed is there, and nothing else that is public is."""
    assert list(span_hpo.__all__) == sorted(span_hpo.__all__, key=_ruff_order)
    public = {
        name
        for name, value in vars(span_hpo).items()
        if not name.startswith("_") and getattr(value, "__module__", "").startswith("span_hpo.")
    }
    assert public | {"bounds"} == set(span_hpo.__all__)  # a module


def _ruff_order(name):
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_public_names_are_documented():
    """Every public class and function says what it is, and functions name their parameters."""
    for name in span_hpo.__all__:
        documented = getattr(span_hpo, name).__doc__
        assert documented, name
        assert documented.strip().splitlines()[0].endswith((".", ":")), name


def test_changelog_has_this_version_on_top():
    """The newest entry of the changelog is the version of the package."""
    headings = [
        line for line in (ROOT / "CHANGELOG.md").read_text().splitlines() if line.startswith("## ")
    ]
    assert headings[0].startswith(f"## {span_hpo.__version__}")


def test_import_needs_only_the_core():
    """Importing the package loads no plotting, no framework and no test library."""
    code = """
import sys, sklearn.svm, sklearn.metrics
before = set(sys.modules)
import span_hpo
optional = {"numba", "matplotlib", "pandas", "optuna", "ray", "libsvm", "hypothesis", "pytest"}
print(sorted(optional & (set(sys.modules) - before)))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout.strip() == "[]"


def test_integrations_are_part_of_the_package():
    """The folder `integrations` is installed as `span_hpo.integrations`."""
    import span_hpo.integrations

    assert span_hpo.integrations.__doc__
