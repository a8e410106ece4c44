"""The objective of a study, on real samplers, pruners and studies."""

import pickle
import threading
import time

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from span_hpo import Float, Polynomial, SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_model, best_trial
from tests.integrations.optuna.parts import study_of
from tests.problems import two_moons

ATTRIBUTES = {
    "loo_error",
    "loo_error_bounds",
    "solver",
    "smooth_error",
    "loo_standard_error",
    "n_rows",
    "n_support",
    "n_in_bound",
    "n_undefined",
    "n_refit",
    "seconds",
}


def test_trials_hold_the_losses_of_the_objective(objective):
    """Values are the objective's to the last bit, and the best model is the best trial's."""
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=15)
    assert [trial.state for trial in study.trials] == [TrialState.COMPLETE] * 15
    for trial in study.trials:
        assert trial.value == objective(trial.params)
        assert trial.intermediate_values == {80: trial.value}
    model = best_model(study, objective)
    expected = objective.fit_model(best_trial(study).params)
    assert isinstance(model, SVC)
    np.testing.assert_array_equal(model.dual_coef_, expected.dual_coef_)


def test_attributes_are_plain_and_true(objective):
    """What is known of a fit is written in types that every storage takes."""
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=3)
    for trial in study.trials:
        written = trial.user_attrs
        assert set(written) == {*ATTRIBUTES, "worker"}
        for name in ATTRIBUTES - {"loo_error_bounds", "solver"}:
            assert type(written[name]) in (int, float)
        evaluation = objective.evaluate(trial.params)
        assert written["solver"] == evaluation.solver
        assert written["loo_error_bounds"] == list(evaluation.loo.error_bounds)
        assert written["n_support"] == evaluation.n_support
        assert written["smooth_error"] == evaluation.smooth_error
        low, high = written["loo_error_bounds"]
        exact = SpanObjective(*two_moons(80), loo_method="exact").evaluate(trial.params)
        assert low <= exact.loo.error <= high


def test_attributes_are_written_once(objective, monkeypatch):
    """However many budgets there are, a storage gets each attribute once per trial."""
    names = []
    original = optuna.Trial.set_user_attr
    monkeypatch.setattr(
        optuna.Trial,
        "set_user_attr",
        lambda self, name, value: names.append(name) or original(self, name, value),
    )
    study_of().optimize(OptunaObjective(objective, budgets=(0.25, 0.5, 1.0)), n_trials=1)
    assert sorted(names) == sorted([*ATTRIBUTES, "worker"])


SAMPLERS = {
    "tpe": lambda: optuna.samplers.TPESampler(seed=0),
    "random": lambda: optuna.samplers.RandomSampler(seed=0),
    "qmc": lambda: optuna.samplers.QMCSampler(seed=0),
    "cma-es": lambda: optuna.samplers.CmaEsSampler(seed=0),
    "gp": lambda: optuna.samplers.GPSampler(seed=0, n_startup_trials=4),
    "nsga-ii": lambda: optuna.samplers.NSGAIISampler(seed=0),
}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize("name", SAMPLERS)
def test_samplers(name, objective):
    """Every sampler finds a better model than the middle of the space."""
    if name == "gp":
        pytest.importorskip("torch")
    study = study_of(sampler=SAMPLERS[name]())
    study.optimize(OptunaObjective(objective), n_trials=8 if name == "gp" else 25)
    middle = {name: part.grid(1)[0] for name, part in objective.space.items()}
    assert study.best_value <= objective(middle)
    assert all(trial.state == TrialState.COMPLETE for trial in study.trials)


PRUNERS = {
    "median": lambda: optuna.pruners.MedianPruner(n_startup_trials=3),
    "successive halving": lambda: optuna.pruners.SuccessiveHalvingPruner(
        min_resource=20, reduction_factor=2
    ),
    "hyperband": lambda: optuna.pruners.HyperbandPruner(
        min_resource=20, max_resource=160, reduction_factor=2
    ),
}


@pytest.mark.parametrize("name", PRUNERS)
def test_pruners(name):
    """Trials end early, at a step that is a number of rows, with what is known there."""
    objective = SpanObjective(*two_moons(160))
    study = study_of(pruner=PRUNERS[name](), sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(OptunaObjective(objective, budgets=(0.125, 0.25, 80, 1.0)), n_trials=40)
    pruned = study.get_trials(states=(TrialState.PRUNED,))
    complete = study.get_trials(states=(TrialState.COMPLETE,))
    assert len(pruned) >= 3
    assert complete
    for trial in study.trials:
        steps = list(trial.intermediate_values)
        assert steps == [20, 40, 80, 160][: len(steps)]
        assert trial.user_attrs["n_rows"] == steps[-1]
        last = objective.evaluate(trial.params, rows=steps[-1]).loss
        assert trial.intermediate_values[steps[-1]] == last
    assert all(len(trial.intermediate_values) == 4 for trial in complete)


def test_without_a_pruner_only_the_last_budget_counts():
    """The value is the loss on all rows, and what stands at smaller steps is for pruners."""
    objective = SpanObjective(*two_moons(80))
    study = study_of(pruner=optuna.pruners.NopPruner())
    study.optimize(OptunaObjective(objective, budgets=(20, 1.0)), n_trials=3)
    for trial in study.trials:
        assert trial.value == objective(trial.params)
        assert set(trial.intermediate_values) == {20, 80}


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ((), "`budgets` must have at least one number or share of rows, got none"),
        (0.5, "`budgets` must be a list of numbers or shares of rows, got 0.5"),
        ((0.5, 0.25), "`budgets` must increase, got [0.5, 0.25], which is [40, 20] rows"),
        ((0.5, 40), "`budgets` must increase"),
        ((1.5,), "`budgets` must have shares of at most 1.0, got 1.5"),
        ((81,), "`budgets` must be a whole number from 1 to 80, got 81"),
        ((1,), "`budgets` must have at least 2 rows to hold all classes, got [1]"),
        ((-0.5,), "`budgets` must be a finite number above 0, got -0.5"),
        (("all",), "`budgets` must be a whole number from 1 to 80, got 'all'"),
    ],
)
def test_wrong_budgets_are_named(objective, budgets, message):
    """Budgets that cannot be are refused at once."""
    with pytest.raises(ValueError, match="budgets") as caught:
        OptunaObjective(objective, budgets=budgets)
    assert message in str(caught.value)


def test_several_metrics_are_several_objectives():
    """Each metric is a value; the trials on the front are not dominated."""
    objective = SpanObjective(*two_moons(80), metric=("error", "log_loss"))
    study = study_of(directions=["minimize", "minimize"])
    study.optimize(OptunaObjective(objective), n_trials=12)
    for trial in study.trials:
        losses = objective.evaluate(trial.params).losses
        assert trial.values == [losses["error"], losses["log_loss"]]
    assert study.best_trials
    with pytest.raises(ValueError, match=r"Choose one of `study.best_trials`"):
        best_trial(study)
    with pytest.raises(
        ValueError, match="`budgets` must hold one budget if there are several metrics"
    ):
        OptunaObjective(objective, budgets=(0.5, 1.0))


@pytest.mark.parametrize("direction", [{"direction": "maximize"}, {"directions": ["minimize"] * 2}])
def test_study_must_minimise(objective, direction):
    """A study that would look for the worst model is refused, in every trial."""
    study = study_of(**direction)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"`study` must have directions=\['minimize'\]"):
            study.optimize(OptunaObjective(objective), n_trials=1)


def test_max_support_is_a_constraint(objective):
    """Trials with too many support vectors stay, but are not the best."""
    study = study_of()
    study.optimize(OptunaObjective(objective, max_support=30), n_trials=30)
    supports = [trial.user_attrs["n_support"] for trial in study.trials]
    assert min(supports) <= 30 < max(supports)
    for trial, n_support in zip(study.trials, supports, strict=True):
        assert trial.constraints == {"n_support": n_support - 30}
    best = best_trial(study)
    assert best.user_attrs["n_support"] <= 30
    assert best.value == study.best_value
    study = study_of()
    study.optimize(OptunaObjective(objective, max_support=2), n_trials=2)
    with pytest.raises(ValueError, match="keeps its constraints, got 2 trials, 2 of them complete"):
        best_trial(study)
    with pytest.raises(ValueError, match="`max_support` must be a whole number of at least 2"):
        OptunaObjective(objective, max_support=1)


def test_failed_fit_is_a_failed_trial():
    """A SolverError becomes FAIL with its message; the study goes on."""
    for metric in ("error", ("error", "hinge")):
        objective = SpanObjective(
            *two_moons(40), kernel=Polynomial(gamma=Float(1e-2, 1e200, log=True)), metric=metric
        )
        study = study_of(directions=["minimize"] * len(objective.metrics))
        for gamma in (1e150, 1.0):
            study.enqueue_trial({"gamma": gamma, "C_-1": 1.0, "C_1": 1.0})
        study.optimize(OptunaObjective(objective), n_trials=2)
        failed, good = study.trials
        assert failed.state == TrialState.FAIL
        assert "overflow" in failed.user_attrs["failure"]
        assert good.state == TrialState.COMPLETE


def test_other_exceptions_surface(objective, monkeypatch):
    """A mistake in the user's code is not a failed trial, and the next try is not poisoned."""

    def broken(y, f):
        raise ZeroDivisionError

    wrong = OptunaObjective(SpanObjective(*two_moons(40), metric=broken))
    study = study_of()
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            study.optimize(wrong, n_trials=1)
    assert [trial.state for trial in study.trials] == [TrialState.FAIL] * 2
    assert "failure" not in study.trials[0].user_attrs


def counting(objective, monkeypatch, seconds=0.0):
    calls = []
    original = SpanObjective.evaluate

    def evaluate(self, params, rows=None, **options):
        calls.append((tuple(params.values()), rows))
        time.sleep(seconds)
        return original(self, params, rows, **options)

    monkeypatch.setattr(SpanObjective, "evaluate", evaluate)
    return calls


def test_equal_parameters_are_evaluated_once(objective, monkeypatch):
    """A deterministic objective need not be asked twice; every trial is complete all the same."""
    calls = counting(objective, monkeypatch)
    study = study_of()
    params = {"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0}
    for _ in range(3):
        study.enqueue_trial(params)
    study.enqueue_trial({**params, "C_1": 3.0})
    study.optimize(OptunaObjective(objective, budgets=(0.5, 1.0)), n_trials=4)
    assert [rows for _, rows in calls] == [40, 80, 40, 80]
    assert len({trial.value for trial in study.trials[:3]}) == 1
    assert study.trials[2].user_attrs["n_support"] == study.trials[0].user_attrs["n_support"]


def test_equal_parameters_in_another_adapter(objective, monkeypatch):
    """A notebook cell that is run again knows what it has found."""
    calls = counting(objective, monkeypatch)
    for _ in range(2):
        study = study_of()
        study.enqueue_trial({"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0})
        study.optimize(OptunaObjective(objective), n_trials=1)
    assert len(calls) == 1


def test_equal_parameters_in_two_threads(objective, monkeypatch):
    """The second thread waits for the first instead of doing the same work."""
    calls = counting(objective, monkeypatch, seconds=0.2)
    study = study_of()
    for _ in range(4):
        study.enqueue_trial({"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0})
    study.optimize(OptunaObjective(objective), n_trials=4, n_jobs=2)
    assert len(calls) == 1
    assert len({trial.value for trial in study.trials}) == 1


def test_threads_give_the_values_of_one(objective):
    """Parallel trials share the kernel cache and one BLAS thread, and change no number."""
    seen = set()

    def watching(y, f):
        blas = [
            one
            for one in threadpool_info()
            if one["user_api"] == "blas" and "torch" not in one["filepath"]
        ]
        seen.add((threading.get_ident(), max(one["num_threads"] for one in blas)))
        return float(np.mean(y * f <= 0))

    watched = SpanObjective(*two_moons(80), metric=watching)
    study = study_of(sampler=optuna.samplers.RandomSampler(seed=0))
    with threadpool_limits(2, user_api="blas"):
        study.optimize(OptunaObjective(watched), n_trials=30, n_jobs=2)
    assert len({thread for thread, _ in seen}) == 2
    for trial in study.trials:
        assert trial.value == objective(trial.params)
    assert {threads for _, threads in seen} == {1}


def test_pickled_objective_starts_with_an_empty_memory(objective):
    """A copy in another process knows the data and the settings, nothing else."""
    original = OptunaObjective(objective, budgets=(0.5, 1.0), max_support=40)
    study = study_of()
    study.optimize(original, n_trials=2)
    copy = pickle.loads(pickle.dumps(original))
    assert copy.budgets == (40, 80)
    assert copy.max_support == 40
    again = study_of()
    again.optimize(copy, n_trials=2)
    assert [trial.value for trial in again.trials] == [trial.value for trial in study.trials]


def test_fixed_trial(objective):
    """A function of a trial can be tried without a study."""
    params = {"gamma": 1.0, "C_-1": 1.0, "C_1": 2.0}
    trial = optuna.trial.FixedTrial(params)
    assert OptunaObjective(objective)(trial) == objective(params)
    assert trial.user_attrs["n_rows"] == 80


def test_pruned_trials_are_constrained_in_proportion():
    """A fit of half of the rows counts as half of the model."""
    objective = SpanObjective(*two_moons(80))
    study = study_of(pruner=optuna.pruners.ThresholdPruner(upper=-1.0))
    study.optimize(OptunaObjective(objective, budgets=(20, 80), max_support=30), n_trials=4)
    pruned = study.get_trials(states=(TrialState.PRUNED,))
    assert len(pruned) == 3
    for trial in pruned:
        wanted = 4 * trial.user_attrs["n_support"] - 30
        assert trial.constraints == {"n_support": pytest.approx(wanted)}


def test_shares_meet_the_rungs_of_successive_halving():
    """Shares that double are row counts that at least double, whatever the number of rows."""
    X, y = two_moons(200)
    for count in range(40, 60):
        rows = [*range(count // 2), *range(100, 100 + count - count // 2)]
        objective = SpanObjective(X[rows], y[rows])
        first, *others = OptunaObjective(objective, budgets=(0.125, 0.25, 0.5, 1.0)).budgets
        assert all(later >= first * 2**k for k, later in enumerate(others, start=1))
        assert others[-1] == count


def test_wrong_objective_is_named():
    """What is wrapped must be a SpanObjective."""
    with pytest.raises(TypeError, match="`objective` must be a SpanObjective, got"):
        OptunaObjective(lambda params: 0.0)


def test_a_study_says_what_it_minimises():
    """New studies get names of metrics and a description, unless they have their own."""
    objective = SpanObjective(*two_moons(40), metric=("error", "auc"))
    study = optuna.create_study(directions=["minimize"] * 2)
    study.optimize(OptunaObjective(objective), n_trials=2)
    assert study.metric_names == ["error", "1 - auc"]
    assert study.user_attrs["description"] == objective.in_words()
    assert "values_1 - auc" in study.trials_dataframe().columns
    named = optuna.create_study(directions=["minimize"] * 2)
    with pytest.warns(optuna.exceptions.ExperimentalWarning):
        named.set_metric_names(["mine", "other"])
    named.set_user_attr("description", "My study.")
    named.optimize(OptunaObjective(objective), n_trials=1)
    assert named.metric_names == ["mine", "other"]
    assert named.user_attrs["description"] == "My study."
