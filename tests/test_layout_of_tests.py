"""Where tests stand, and what they may use."""

import ast

import pytest

from tests.places import ROOT

TESTS = ROOT / "tests"
WITHOUT_TESTS = {"__init__", "__main__", "errors"}  # lists of names, and what does nothing


def modules():
    """Yield the place of every module within the package: loo/path/follow."""
    for folder in (ROOT / "span_hpo", ROOT / "integrations"):
        start = ROOT if folder.name == "integrations" else folder
        for path in sorted(folder.rglob("*.py")):
            place = path.relative_to(start).with_suffix("")
            # The folders for OptunaHub hold their own tests, as its registry asks for.
            if place.name not in WITHOUT_TESTS and "optunahub" not in place.parts:
                yield place


MODULES = [pytest.param(place, id=str(place)) for place in modules()]
TEST_FILES = [
    pytest.param(path, id=str(path.relative_to(TESTS))) for path in sorted(TESTS.rglob("*.py"))
]


@pytest.mark.parametrize("place", MODULES)
def test_every_module_has_its_test_file(place):
    """Tests of span_hpo/package/module.py stand in tests/package/test_module.py."""
    file = TESTS / place.parent / f"test_{place.name}.py"
    assert file.is_file(), f"{file.relative_to(ROOT)} is missing"
    assert any(node.name.startswith("test_") for node in functions(file))


@pytest.mark.parametrize("path", TEST_FILES)
def test_tests_use_no_private_name_of_the_package(path):
    """No private name is imported from the package, or called on one of its modules or classes."""
    tree = ast.parse(path.read_text())
    ours = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            ours |= {alias.asname for alias in node.names if alias.name.startswith("span_hpo.")}
        elif isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "span_hpo":
            private = [alias.name for alias in node.names if is_private(alias.name)]
            assert not private, f"{private} of {node.module}"
            assert not any(is_private(part) for part in node.module.split("."))
            ours |= {alias.asname or alias.name for alias in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = node.func.value
            is_ours = isinstance(owner, ast.Name) and owner.id in ours
            assert not (is_ours and is_private(node.func.attr)), f"line {node.lineno}"


@pytest.mark.parametrize("path", TEST_FILES)
def test_every_test_states_its_promise(path):
    """Every test has a docstring whose first line is a sentence."""
    for node in functions(path):
        if node.name.startswith("test_"):
            promise = ast.get_docstring(node) or ""
            assert promise.partition("\n")[0].endswith("."), node.name


@pytest.mark.parametrize("path", TEST_FILES)
def test_helpers_are_not_imported_from_test_files(path):
    """What several files need stands in a file of its own."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "tests":
            assert not any(part.startswith("test_") for part in node.module.split("."))


def functions(path):
    """Return the functions of a file that stand outside of others."""
    return [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]


def is_private(name):
    """Return whether a name begins with one underscore."""
    return name.startswith("_") and not name.startswith("__")
