"""The sampler as the registry loads it: from the files of this folder."""

import ast
import importlib.util
import math
import re
import runpy
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

optuna = pytest.importorskip("optuna")

FOLDER = Path(__file__).parents[1]
FIELDS = ("author", "title", "description", "tags", "optuna_versions", "license")
SECTIONS = ("Abstract", "APIs", "Installation", "Example", "Others")


def package() -> ModuleType:
    """Load the package of this folder, without an installation."""
    spec = importlib.util.spec_from_file_location("gradient_steps", FOLDER / "__init__.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_gradients_find_what_draws_do_not(direction: str) -> None:
    """In thirty dimensions, 40 steps come closer to the optimum than as many draws of TPE."""
    module = package()
    sign = 1.0 if direction == "minimize" else -1.0

    def objective(trial: Any) -> float:
        is_step = module.wants_gradient(trial)
        rates = {f"r{k}": trial.suggest_float(f"r{k}", 1e-3, 1e3, log=True) for k in range(30)}
        if is_step:
            slopes = {name: sign * 2 * math.log(rate) / rate for name, rate in rates.items()}
            module.store_gradient(trial, slopes)
        return sign * sum(math.log(rate) ** 2 for rate in rates.values())

    found = []
    for sampler in (module.GradientSampler(seed=0), optuna.samplers.TPESampler(seed=0)):
        study = optuna.create_study(direction=direction, sampler=sampler)
        study.optimize(objective, n_trials=60)
        found.append(sign * study.best_value)
    assert found[0] < 0.5 * found[1]


def test_several_directions_are_refused() -> None:
    """Steps cannot follow several gradients at once."""
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=package().GradientSampler()
    )
    with pytest.raises(ValueError, match="`study` must have one direction"):
        study.optimize(lambda _: (0.0, 1.0), n_trials=1)


def test_the_folder_is_laid_out_for_the_registry() -> None:
    """The front matter, the sections and the files are those that the registry asks for."""
    page = (FOLDER / "README.md").read_text()
    head, text = page.removeprefix("---\n").split("\n---\n")
    assert tuple(line.split(": ")[0] for line in head.splitlines()) == FIELDS
    assert "tags: [sampler" in head
    assert head.endswith("license: MIT License")
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == SECTIONS
    assert not re.search(r"<[a-zA-Z/!]", text)  # the registry allows no HTML
    assert (FOLDER / "LICENSE").read_text().startswith("MIT License")
    assert (FOLDER / "requirements.txt").read_text() == "span-hpo[optuna]\n"
    module = package()
    assert module.__all__ == ["GradientSampler", "store_gradient", "wants_gradient"]
    assert issubclass(module.GradientSampler, optuna.samplers.BaseSampler)


def test_the_example_is_that_of_the_page() -> None:
    """The page and the file show the same program, which uses the registry's own call."""
    block = re.findall(r"```python\n(.+?)```", (FOLDER / "README.md").read_text(), re.DOTALL)[0]
    calls = [
        {ast.unparse(node) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)}
        for text in (block, (FOLDER / "example.py").read_text())
    ]
    assert "optunahub.load_module('samplers/gradient_steps')" in calls[0] & calls[1]


def test_the_example_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints a value near zero; the registry's loader is replaced by the files of this folder.

    The loader would fetch the package from the registry.
    """
    loader = SimpleNamespace(load_module=lambda name: package())
    monkeypatch.setitem(sys.modules, "optunahub", loader)
    runpy.run_path(str(FOLDER / "example.py"), run_name="__main__")
    printed = re.search(r"best value (\S+) in trial (\d+)", capsys.readouterr().out)
    assert printed is not None
    assert float(printed[1]) < 100
