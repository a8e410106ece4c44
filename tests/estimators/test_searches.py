"""Searches of an estimator: seeds, studies, pruners, limits and Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import optuna
import pytest

from span_hpo import SpanSVC, solve
from tests.places import ROOT
from tests.problems import moons_problem, two_moons


def test_seed_decides_the_search():
    """Equal seeds give equal models, other seeds other trials."""
    X, y = two_moons(60)
    first, again, other = (SpanSVC(n_trials=8, random_state=seed).fit(X, y) for seed in (1, 1, 2))
    assert first.best_params_ == again.best_params_
    trials = [[trial.params for trial in model.study_.trials] for model in (first, other)]
    assert trials[0] != trials[1]


def test_nothing_to_search_needs_no_optuna():
    """One weighted fit with its leave-one-out result, and Optuna is not imported."""
    code = """
import sys
sys.modules["optuna"] = None
import numpy as np
from span_hpo import RBF, SpanSVC, UniformCost
from tests.problems import moons_problem, two_moons
X, y = two_moons(60)
model = SpanSVC(RBF(gamma=0.5), UniformCost(1.0)).fit(X, y)
print(model.study_, model.best_params_, round(model.loo_error_, 6))
try:
    SpanSVC().fit(X, y)
except ImportError as error:
    print(error)
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.splitlines()
    assert found[0].startswith("None {} 0.")
    assert "pip install 'span-hpo[optuna]'" in found[1]


def test_budgets_storage_and_resume(tmp_path):
    """A study in a file goes on: trials that are there count, and are not done again."""
    X, y = two_moons(80)
    settings = {
        "storage": f"sqlite:///{tmp_path}/study.db",
        "study_name": "moons",
        "budgets": (0.25, 1.0),
        "pruner": optuna.pruners.MedianPruner(n_startup_trials=2),
        "random_state": 0,
    }
    SpanSVC(n_trials=5, **settings).fit(X, y)
    model = SpanSVC(n_trials=9, **settings).fit(X, y)
    assert len(model.study_.trials) == 9
    again = SpanSVC(n_trials=9, **settings).fit(X, y)
    assert len(again.study_.trials) == 9
    assert again.best_params_ == model.best_params_
    for one in (model, again):
        one.study_._storage.remove_session()


@pytest.mark.parametrize("pruner", ["median", "percentile", "halving", "hyperband"])
def test_pruners_need_no_budgets(pruner):
    """A pruner of a name stops trials, but not the defaults, and a quarter is complete."""
    X, y = two_moons(160)
    model = SpanSVC(pruner=pruner, sampler="random", n_trials=30, random_state=0).fit(X, y)
    states = [trial.state.name for trial in model.study_.trials]
    assert 8 <= states.count("COMPLETE") < 30
    starts = len(model.objective_.defaults())
    assert states[:starts] == ["COMPLETE"] * starts
    assert model.study_.trials[0].intermediate_values.keys() == {20, 40, 80, 160}


def test_a_pruner_without_budgets_is_named():
    """A pruner object that can stop no trial is worth one warning, which names the budgets."""
    with pytest.warns(UserWarning, match="`budgets` must have several numbers .* MedianPruner can"):
        SpanSVC(pruner=optuna.pruners.MedianPruner(), n_trials=3).fit(*two_moons(40))


def test_another_search():
    """A function may choose the hyperparameters; what it returns is checked."""
    X, y = two_moons(80)
    model = SpanSVC(search=lambda objective: objective.defaults()[1]).fit(X, y)
    assert model.best_params_ == model.objective_.defaults()[1]
    assert model.study_ is None
    with pytest.raises(ValueError, match="`params` must name exactly"):
        SpanSVC(search=lambda objective: {}).fit(X, y)


def test_all_cores_search():
    """With `n_jobs=-1` the trials run in threads, and their losses are those of one thread."""
    X, y = two_moons(60)
    model = SpanSVC(n_trials=8, n_jobs=-1, random_state=0).fit(X, y)
    assert len(model.study_.trials) == 8
    assert model.objective_(model.best_params_) == model.best_loss_ == model.study_.best_value


class Pressing:
    """A metric that presses Ctrl-C at its n-th call."""

    def __init__(self, at):
        self.left = at

    def __call__(self, y, decision_values):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)  # the main thread handles it
        return float(np.mean(y * decision_values <= 0))


@pytest.fixture
def heeded():
    """Let this process heed Ctrl-C, even if it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_ctrl_c_keeps_the_best_so_far(heeded, n_jobs):
    """A warning says how many trials there are, and the model is that of the best of them."""
    X, y = two_moons(60)
    model = SpanSVC(metric=Pressing(at=9), n_trials=10_000, n_jobs=n_jobs, random_state=0)
    with pytest.warns(UserWarning, match=r"interrupted after \d+ trials\. The model is that of"):
        model.fit(X, y)
    losses = [trial.value for trial in model.study_.trials if trial.value is not None]
    assert 7 <= len(losses) <= 12
    assert model.best_loss_ == min(losses)
    assert model.predict(X).shape == (60,)


class Endless(Pressing):
    """A metric that presses Ctrl-C at its n-th call, and from then on keeps threads busy."""

    def __call__(self, y, decision_values):
        loss = super().__call__(y, decision_values)
        give_up = time.monotonic() + 30
        is_trial = threading.current_thread() is not threading.main_thread()
        while is_trial and self.left <= 0 and time.monotonic() < give_up:
            solve(moons_problem(20))
        return loss


def test_ctrl_c_cuts_trials_of_all_threads(heeded):
    """Trials that would take long are given up, also in other threads than the main one."""
    X, y = two_moons(60)
    start = time.monotonic()
    model = SpanSVC(metric=Endless(at=9), n_trials=100, n_jobs=2, random_state=0)
    with pytest.warns(UserWarning, match=r"interrupted after \d+ trials"):
        model.fit(X, y)
    assert time.monotonic() - start < 25
    states = [trial.state.name for trial in model.study_.trials]
    assert "FAIL" in states  # given up
    assert states.count("COMPLETE") >= 6


def test_ctrl_c_before_the_first_trial_interrupts(heeded):
    """Without a finished trial there is no model, and the interrupt is passed on."""
    with pytest.raises(KeyboardInterrupt):
        SpanSVC(metric=Pressing(at=1), random_state=0).fit(*two_moons(60))


def test_as_many_trials_as_the_time_allows():
    """With `n_trials=None` the `timeout` ends the search, and without one there is an error."""
    start = time.monotonic()
    model = SpanSVC(n_trials=None, timeout=0.5, random_state=0).fit(*two_moons(60))
    assert 0.4 < time.monotonic() - start < 10
    assert len(model.study_.trials) > 5
    with pytest.raises(ValueError, match=r"`n_trials` must be .* Give one of the two"):
        SpanSVC(n_trials=None).fit(*two_moons(60))


def test_a_search_that_has_settled_ends():
    """The search stops as soon as so many trials have brought no lower loss."""
    model = SpanSVC(n_trials=500, patience=8, random_state=0).fit(*two_moons(60))
    losses = [trial.value for trial in model.study_.trials]
    assert len(losses) < 500
    assert min(losses[:-8]) == min(losses) == model.best_loss_
    assert min(losses[:-9]) > min(losses[:-8])
    with pytest.raises(ValueError, match="`patience` must be a whole number of at least 1"):
        SpanSVC(patience=0).fit(*two_moons(60))
