"""The callback as the registry loads it: from the files of this folder."""

import ast
import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

optuna = pytest.importorskip("optuna")

FOLDER = Path(__file__).parents[1]
FIELDS = ("author", "title", "description", "tags", "optuna_versions", "license")
SECTIONS = ("Abstract", "APIs", "Installation", "Example", "Others")


def package() -> ModuleType:
    """Load the package of this folder, without an installation."""
    spec = importlib.util.spec_from_file_location("stop_when_settled", FOLDER / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_study_stops(direction: str) -> None:
    """A study whose values do not get better stops after `patience` more trials."""
    values = [0.0, 0.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.0]
    sign = 1.0 if direction == "maximize" else -1.0
    study = optuna.create_study(direction=direction)
    callback = package().StopWhenSettled(patience=3)
    study.optimize(lambda trial: sign * values[trial.number], n_trials=8, callbacks=[callback])
    assert len(study.trials) == 6


def test_several_directions_are_refused() -> None:
    """Values of several directions cannot be compared."""
    study = optuna.create_study(directions=["minimize", "minimize"])
    with pytest.raises(ValueError, match="`study` must have one direction to settle, got 2"):
        study.optimize(lambda _: (0.0, 1.0), n_trials=2, callbacks=[package().StopWhenSettled()])


def test_the_folder_is_laid_out_for_the_registry() -> None:
    """The front matter, the sections and the files are those that the registry asks for."""
    page = (FOLDER / "README.md").read_text()
    head, text = page.removeprefix("---\n").split("\n---\n")
    assert tuple(line.split(": ")[0] for line in head.splitlines()) == FIELDS
    assert "callback" in head
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == SECTIONS
    assert "<" not in text  # the registry allows no HTML
    assert (FOLDER / "LICENSE").read_text().startswith("MIT License")
    assert package().__all__ == ["StopWhenSettled"]


def test_the_example_is_that_of_the_page() -> None:
    """The page and the file show the same program, which uses the registry's own call."""
    (block,) = re.findall(r"```python\n(.+?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    calls = [
        {ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
        for text in (block, (FOLDER / "example.py").read_text())
    ]
    assert "optunahub.load_module('callbacks/stop_when_settled')" in calls[0] & calls[1]
