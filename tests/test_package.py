"""The package as a whole: its face, its layout, its version."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib

import pytest

import span_hpo
from tests.compiled import COMPILED_FILES
from tests.places import ROOT

# The order in which data flow; no room imports one that stands later. A room is a package with the
# order of its files, or a single module.
LAYOUT = {
    "ctrl_c": [],
    "runtime": [
        "arrays",
        "checks",
        "printing",
        "threads",
        "deadlines",
        "memo",
        "compilation",
        "accurate",
    ],
    "errors": [],
    "data": [],
    "space": [],
    "kernels": [
        "blocks",
        "distances",
        "row_pairs",
        "kernel",
        "functions",
        "ard",
        "names",
        "cache",
    ],
    "solver": [
        "rounding",
        "lapack",
        "box_qp",
        "centred_gram",
        "one_call",
        "offsets",
        "gaps",
        "margin_errors",
        "problem",
        "smo",
        "active_set",
        "extended",
        "optimal_face",
        "merged_rows",
        "reduced",
        "libsvm_fit",
        "fit",
        "pairwise",
        "svm_plus",
    ],
    "weighting": [
        "products",
        "class_costs",
        "scores",
        "knots",
        "group_costs",
        "confidence",
        "names",
    ],
    "loo": [
        "span_rule",
        "box_spans",
        "proofs",
        "ends",
        "certificates",
        "immediate",
        "path",
        "stopping",
        "accurate",
        "elsewhere",
        "result",
        "left_out",
        "methods",
    ],
    "bounds": ["ball", "classical", "radius_margin", "rescaling", "l2_svm", "derivatives"],
    "calibration": [],
    "metrics": ["rows", "functions", "slopes", "metric", "standard_errors"],
    "suspects": ["densities", "wrong_labels"],
    "gradients": ["derivatives", "pull_back", "continuous"],
    "objective": [
        "evaluation",
        "arguments",
        "budgets",
        "description",
        "folds",
        "models",
        "starts",
        "words",
        "row_losses",
        "derivatives",
        "searched",
        "span_objective",
        "differentiable",
        "relevance",
        "rescaled",
        "radius_margin",
        "left_out",
    ],
    "selection": [
        "patience",
        "bootstrap",
        "tables",
        "honest",
        "thresholds",
        "ensembles",
        "honest_ensembles",
        "members",
        "trials",
    ],
    "io": [
        "atomic",
        "unpacking",
        "schema",
        "numbering",
        "scaling",
        "tables",
        "dialects",
        "table_files",
        "libsvm_text",
        "model_json",
        "encoding",
        "targets",
        "samples",
        "parts",
        "ensemble",
        "predictor",
    ],
    "search": [
        "written",
        "names",
        "limits",
        "budgets",
        "forecasts",
        "coordinates",
        "spread",
        "steps",
        "watched",
        "adam",
        "alignment",
        "exploration",
        "bfgs",
        "descent",
    ],
    "integrations.optuna": [
        "spaces",
        "workers",
        "journals",
        "delegating",
        "pruners",
        "gradients",
        "descents",
        "gradient_sampler",
        "samplers",
        "claims",
        "trials",
        "stopping",
        "studies",
        "points",
        "selection",
        "refinement",
    ],
    "estimators": [
        "scaling",
        "scaling_inside",
        "columns",
        "row_weights",
        "plain",
        "svc_arguments",
        "leaks",
        "defaults",
        "searches",
        "gradients",
        "left_out",
        "thresholds",
        "widths",
        "fitted",
        "span_svc",
        "loo_svc",
        "all_rows",
        "loo_scorers",
        "learner",
        "candidates",
        "pipelines",
        "search_rows",
        "shared_objectives",
        "scoring",
        "outcomes",
        "candidate_search",
        "search_results",
        "search_cv",
        "svm_plus",
    ],
    "integrations.ray": ["spaces", "trainable", "searchers", "stopping", "selection", "tuners"],
    "integrations.flaml": ["learners"],
    "cli": [
        "options",
        "decisions",
        "hyperparameters",
        "output",
        "files",
        "interrupts",
        "gradient_engine",
        "search_engines",
        "results",
        "estimates",
        "demo",
        "commands",
        "exit_codes",
    ],
}
SHARED_LOOPS = {"runtime.loops", "runtime.sums"}  # declarations that all compiled files may use
INNER = {  # packages within a room
    "loo.path": ["segments", "tableau", "view", "check", "one_call", "follow"],
}
ROOMS = list(LAYOUT)
MOST_LINES = 450
# Optuna is optional, and the adapter of Ray is large: these import adapters inside functions.
LATE = {"estimators", "cli"}


def folder_of(room):
    """Return the folder of a package, or None for a single module."""
    inside = ROOT.joinpath(*room.split("."))
    folder = (
        inside if room.startswith("integrations") else ROOT.joinpath("span_hpo", *room.split("."))
    )
    return folder if folder.is_dir() else None


def files():
    """Yield every source file with the room it is in and its name there."""
    for room in ROOMS:
        folder = folder_of(room)
        if folder is None:
            yield ROOT / "span_hpo" / f"{room}.py", room, ""
            continue
        for path in sorted(folder.rglob("*.py")):
            yield path, room, ".".join(path.relative_to(folder).with_suffix("").parts)


def imports_of(path):
    """Yield (module, name or None) of everything that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            yield from ((node.module, alias.name) for alias in node.names)


def own_imports(path):
    """Yield (room, file within it, name) of what a file imports from this project."""
    for module, name in imports_of(path):
        if module.split(".")[0] != "span_hpo":
            continue
        parts = module.split(".")[1:]
        if parts == ["integrations"] and name is not None:
            parts, name = [*parts, name], None
        if not parts and name in ROOMS:
            yield name, "", None
        elif not parts:
            yield "", "", name
        else:
            depth = 2 if parts[0] == "integrations" else 1
            yield ".".join(parts[:depth]), ".".join(parts[depth:]), name


SOURCES = [pytest.param(*file, id=f"{file[1]}.{file[2]}") for file in files()]


@pytest.mark.parametrize(("path", "room", "file"), SOURCES)
def test_data_flow_one_way(path, room, file):
    """No file imports from a later room, nor from a later file of its own room."""
    order = LAYOUT[room]
    for other, other_file, name in own_imports(path):
        if room in ("cli", "objective") and name == "__version__":
            continue
        assert other, f"{path} imports {name} from the root"
        if other != room:
            assert ROOMS.index(other) < ROOMS.index(room) or (
                room in LATE and other.startswith("integrations.")
            ), f"{path} imports from {other}"
        elif order and file != "__init__" and other_file:
            own, others = file.split(".")[0], other_file.split(".")[0]
            if own != others:
                assert order.index(others) < order.index(own), f"{path} imports {others}"
            else:
                inner = INNER[f"{room}.{own}"]
                own, others = file.split(".")[1], other_file.split(".")[1]
                assert own == "__init__" or inner.index(others) < inner.index(own)


@pytest.mark.parametrize(("path", "room", "file"), SOURCES)
def test_only_the_front_door_of_a_room_is_used(path, room, file):
    """From another room only what its `__init__` lists is imported."""
    for other, other_file, name in own_imports(path):
        if other in ("", room) or folder_of(other) is None:
            continue
        assert not other_file, f"{path} imports from {other}.{other_file}"
        if name is not None:
            assert name in listed(other), f"{path} imports {name}, which {other} does not list"


def listed(room):
    """Return what the `__init__` of a package lists in `__all__`."""
    for node in ast.parse((folder_of(room) / "__init__.py").read_text()).body:
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__":
            return ast.literal_eval(node.value)
    raise AssertionError(f"{room} has no __all__")


@pytest.mark.parametrize("framework", ["flaml", "optuna", "ray"])
def test_adapters_import_only_what_adapters_share(framework):
    """An adapter translates: it imports no numerics, but foundations and what is meant for it."""
    allowed = {"runtime", "errors", "space", "objective", "selection", "search", "io"}
    allowed |= {"estimators"} if framework == "flaml" else set()
    allowed |= {"integrations.optuna"} if framework == "ray" else set()
    own = f"integrations.{framework}"
    for path, room, _ in files():
        if room == own:
            assert {other for other, _, _ in own_imports(path)} <= allowed | {own}, path


@pytest.mark.parametrize("folder", ["benchmarks", "examples"])
def test_benchmarks_and_examples_use_front_doors(folder):
    """Benchmarks import only what packages list, and examples only what users have."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        for room, file, name in own_imports(path):
            if room and folder_of(room) is not None:
                assert not file, path
                assert name is None or name in listed(room), f"{path} imports {name} from {room}"
            if folder == "examples":
                assert room in ("", "bounds") or room.startswith("integrations."), path


def test_layout_is_complete():
    """Every file has its place in the order."""
    folder = ROOT / "span_hpo"
    rooms = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    rooms |= {path.parent.name for path in folder.glob("*/__init__.py")} - {"integrations"}
    rooms |= {
        f"integrations.{path.parent.name}" for path in (ROOT / "integrations").glob("*/__init__.py")
    }
    assert rooms == set(ROOMS)
    for room, order in (LAYOUT | INNER).items():
        place = folder_of(room)
        if place is not None:
            here = {path.stem for path in place.glob("*.py")} - {"__init__"}
            here |= {path.parent.name for path in place.glob("*/__init__.py")}
            assert here == set(order), room


def test_all_packages_are_installed():
    """The list of packages in pyproject.toml is complete."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    found = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "span_hpo").rglob("__init__.py")
        if "integrations" not in path.parts
    }
    found |= {
        ".".join(["span_hpo", *path.parent.relative_to(ROOT).parts])
        for path in (ROOT / "integrations").rglob("__init__.py")
        if "optunahub" not in path.parts  # copied to the registry, not installed
    }
    assert set(settings["packages"]) == found


def test_sources_of_compiled_modules_are_distributed():
    """A source distribution carries what is compiled, and a wheel what was compiled."""
    lines = (ROOT / "MANIFEST.in").read_text().splitlines()
    (patterns,) = [line.split()[2:] for line in lines if line.startswith("recursive-include span")]
    assert patterns == ["*.pyx", "*.pxd", "*.pxi", "*.h"]
    makefile = (ROOT / "Makefile").read_text()
    assert all(f"-name '{pattern}'" in makefile for pattern in patterns)


@pytest.mark.parametrize("path", COMPILED_FILES, ids=lambda path: path.stem)
def test_compiled_files_import_what_their_twins_import(path):
    """A .pyx file imports from its twin, and otherwise as its twin may import."""
    package = ".".join(path.parent.relative_to(ROOT / "span_hpo").parts)
    order = LAYOUT[package.split(".")[0]]
    for line in path.read_text().splitlines():
        found = re.match(r"from span_hpo\.([\w.]+) (?:cimport|import) (.+)", line)
        if found is None:
            continue
        place, names = found[1], found[2].split(" as ")[0].split(", ")
        room = place.split(".")[0]
        if room != package.split(".")[0] and place not in SHARED_LOOPS:
            assert ROOMS.index(room) < ROOMS.index(package.split(".")[0])
            assert set(names) <= set(listed(room)), line
        elif place == package:
            own = INNER.get(package, order)
            assert all(own.index(name) <= own.index(path.stem[1:]) for name in names), line


def test_modules_are_short():
    """No module has more than 450 lines."""
    lengths = {str(path): len(path.read_text().splitlines()) for path, _, _ in files()}
    lengths |= {
        str(path): len(path.read_text().splitlines())
        for path in [*(ROOT / "benchmarks").rglob("*.py"), *COMPILED_FILES]
    }
    assert not {path: length for path, length in lengths.items() if length > MOST_LINES}


def test_architecture_page_names_every_file():
    """The page on the architecture lists the rooms and their files in the order of the layout."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("| `")]
    for room, order in (LAYOUT | INNER).items():
        place = room.replace(".", "/") + ("/" if order else "")
        (line,) = [line for line in lines if line.startswith(f"| `{place}` |")]
        names = [name.strip("`/") for name in line.split("|")[3].strip().split(", ") if name]
        assert names == order, room


def test_only_the_border_knows_a_solver():
    """Only the border of the solver knows PIQP and LIBSVM, and others the models they return."""
    users = {"piqp": set(), "sklearn.svm": set()}
    for path, room, file in files():
        names = {module for module, _ in imports_of(path)}
        for library, known in users.items():
            if library in names and not room.startswith("integrations"):
                known.add(f"{room}.{file}")
    assert users == {
        "piqp": {"solver.box_qp"},
        "sklearn.svm": {
            "solver.libsvm_fit",
            "objective.models",
            "objective.radius_margin",
            "objective.rescaled",
            "objective.span_objective",
            "estimators.plain",
            "estimators.loo_svc",
            "estimators.pipelines",
        },
    }


@pytest.mark.parametrize("framework", ["flaml", "optuna", "ray"])
def test_only_an_adapter_knows_its_framework(framework):
    """A framework is imported by its own adapter (Optuna also by Ray's), never by the core."""
    users = {
        room
        for path, room, _ in files()
        for module, _ in imports_of(path)
        if module.split(".")[0] == framework
    }
    adapter = f"integrations.{framework}"
    assert users - {"integrations.ray"} == {adapter} - {"integrations.ray"}
    assert adapter in users


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


def test_dir_shows_the_public_names():
    """Completion offers what is public, and no module that was imported on the way."""
    assert dir(span_hpo) == sorted([*span_hpo.__all__, "__version__"])


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
optional = {"matplotlib", "pandas", "optuna", "ray", "libsvm", "hypothesis", "pytest"}
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
