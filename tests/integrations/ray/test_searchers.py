from collections import Counter

import numpy as np
import optuna
import pytest

from span_hpo import ARD, RBF, Choice, SpanObjective, UniformCost
from span_hpo.integrations import optuna as optuna_adapter
from span_hpo.integrations.optuna.descents import Descents, Pace
from span_hpo.search import DEFAULT_PENALTY
from tests.integrations.ray.parts import FailsFrom, moons
from tests.problems import two_moons

pytest.importorskip("ray")
from span_hpo.integrations.ray import StudySearch, best_result, params_of, tuner

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_stopped_trials_are_pruned_in_the_study(cluster, tmp_path):
    """Optuna is told what the scheduler did: pruned at so many rows, or complete."""
    objective = moons(metric="smooth_error")
    search = StudySearch(objective, seed=0)
    results = tuner(objective, num_samples=16, search=search, storage_path=tmp_path).fit()
    trials = search.study.get_trials()
    assert len(trials) == 16
    by_params = {tuple(sorted(result.config.items())): result for result in results}
    states = Counter()
    for trial in trials:
        metrics = by_params[tuple(sorted(trial.params.items()))].metrics
        states[trial.state.name] += 1
        assert trial.state.name == ("COMPLETE" if metrics["n_rows"] == 120 else "PRUNED")
        assert trial.value == metrics["loss"]
        assert max(trial.intermediate_values) == metrics["n_rows"]
        for rows, loss in trial.intermediate_values.items():
            assert loss == pytest.approx(objective.evaluate(trial.params, rows).loss, abs=1e-12)
    assert states["PRUNED"] >= 3
    assert states["COMPLETE"] >= 1
    best = optuna_adapter.best_trial(search.study)
    assert best.params == best_result(results, objective).config
    assert trials[0].params == pytest.approx(objective.defaults()[0])


def test_steps_along_gradients(cluster, tmp_path):
    """Some trials are steps of descents, on all rows at once, and the study holds their gradients.

    Each step was taken where the gradients of the steps before it lead to, on which worker ever.
    """
    X, y = two_moons(120)
    X = np.column_stack([X, np.random.default_rng(0).normal(size=(120, 2))])
    objective = SpanObjective(
        X, y, kernel=ARD(), weighting="uniform", metric="smooth_error", tol=1e-6
    )
    sampler = optuna_adapter.GradientSampler(n_startup=4, n_steps=6, seed=0)
    search = StudySearch(objective, optuna_adapter.new_study(sampler=sampler))
    results = tuner(objective, num_samples=24, search=search, storage_path=tmp_path).fit()
    assert results.num_errors == 0
    trials = search.study.get_trials()
    steps = [trial for trial in trials if "descent" in trial.user_attrs]
    assert len(trials) == 24
    assert len(steps) >= 6
    taken = {}
    for trial in steps:
        assert list(trial.intermediate_values) == [120]
        assert trial.value == pytest.approx(objective(trial.params), abs=1e-6)
        label = trial.user_attrs["descent"]
        earlier = [trials[label["start"]], *taken.setdefault(label["start"], [])]
        wanted = Descents(earlier, Pace(6, DEFAULT_PENALTY)).standing(label["start"]).step
        assert (wanted.number, wanted.params) == (label["step"], trial.params)
        taken[label["start"]].append(trial)
        own = objective.value_and_gradient(trial.params).gradient
        of_cost = optuna_adapter.gradient_of(trial)["C"]  # which has no penalty
        assert of_cost == pytest.approx(own["C"], rel=1e-3, abs=1e-6)
    assert all(trial.user_attrs["penalty"] >= 0 for trial in trials if trial.value is not None)
    best = best_result(results, objective)
    assert objective(params_of(best, objective)) == pytest.approx(best.metrics["loss"], abs=1e-6)


def test_failed_trials_are_failures(cluster, tmp_path):
    """A fit that cannot be computed is an error of its trial, and failed in the study."""
    kernel, weighting = RBF(gamma=Choice([0.1, 10.0])), UniformCost(1.0)
    wide, narrow = (
        np.abs(moons(kernel=kernel, weighting=weighting).evaluate({"gamma": g}).loo.decision_values)
        for g in (0.1, 10.0)
    )
    metric = FailsFrom(float(wide.sum() + narrow.sum()) / 2, above=narrow.sum() > wide.sum())
    objective = moons(kernel=kernel, weighting=weighting, metric=metric)
    search = StudySearch(objective, seed=0)
    search.study.enqueue_trial({"gamma": 10.0})  # after its default, 0.1
    results = tuner(
        objective,
        num_samples=3,
        search=search,
        scheduler=None,
        max_failures=0,
        storage_path=tmp_path,
    ).fit()
    states = Counter(trial.state.name for trial in search.study.get_trials())
    assert states["FAIL"] == results.num_errors > 0
    assert states["COMPLETE"] == 3 - results.num_errors > 0
    assert params_of(best_result(results, objective), objective) == {"gamma": 0.1}
    with pytest.raises(
        ValueError, match=r"(?s)trials, \d of them with errors. The last one: .*narrow"
    ):
        best_result([result for result in results if result.error is not None], objective)


def test_search_is_saved_and_restored(tmp_path):
    """A restored search knows its trials and goes on telling those that were running."""
    objective = moons()
    search = StudySearch(objective, seed=0)
    configs = {name: search.suggest(name) for name in ("a", "b", "c")}
    report = {"loss": 0.25, "n_rows": 60, "smooth_error": 0.2, "loo_error": 0.25}
    report |= {"loo_error_bounds": [0.2, 0.3], "n_support": 5, "n_in_bound": 3}
    search.on_trial_result("a", report)
    search.on_trial_complete("b", {**report, "n_rows": 120})
    search.save(str(tmp_path / "state"))
    again = StudySearch(objective, seed=1)
    again.restore(str(tmp_path / "state"))
    again.on_trial_complete("a", report)
    again.on_trial_complete("c", None, error=True)
    again.on_trial_complete("unknown", report)
    states = [trial.state.name for trial in again.study.get_trials()]
    assert states[:3] == ["PRUNED", "COMPLETE", "FAIL"]
    assert [trial.params for trial in again.study.get_trials()[:3]] == list(configs.values())
    assert again.study.best_value == 0.25
    again.suggest("d")
    again.on_trial_result("d", report)
    again.on_trial_complete("d")  # stopped while it paused: Ray has no result
    assert again.study.get_trials()[3].state.name == "PRUNED"
    assert not again.set_search_properties("accuracy", "max", {})
    assert not again.set_search_properties("loss", "min", {"C": 1.0})


def test_study_in_a_storage(tmp_path):
    """A study of a journal can be searched, and is there afterwards."""
    objective = moons()
    path = tmp_path / "trials.journal"
    study = optuna_adapter.new_study(storage=path, study_name="moons", seed=0)
    search = StudySearch(objective, study)
    search.suggest("a")
    search.on_trial_complete("a", None, error=True)
    again = optuna.load_study(study_name="moons", storage=optuna_adapter.as_storage(path))
    assert [trial.state.name for trial in again.get_trials()][:1] == ["FAIL"]
    # Saved, and then killed after one more trial has finished and another was asked for.
    search.suggest("b")
    search.save(str(tmp_path / "state"))
    report = {"loss": 0.25, "n_rows": 120, "smooth_error": 0.2, "loo_error": 0.25}
    report |= {"loo_error_bounds": [0.2, 0.3], "n_support": 5, "n_in_bound": 3}
    search.on_trial_complete("b", report)
    search.suggest("c")
    restored = StudySearch(objective, study)
    restored.restore(str(tmp_path / "state"))
    restored.on_trial_complete("b", report)
    states = [trial.state.name for trial in again.get_trials()]
    assert states[:3] == ["FAIL", "COMPLETE", "FAIL"]
    with pytest.raises(ValueError, match=r"metrics was \['error'\], got \['auc'\]"):
        StudySearch(moons(metric="auc"), study)
    with pytest.raises(ValueError, match=r"`study` must have directions=\['minimize'\]"):
        StudySearch(objective, optuna.create_study(direction="maximize"))
