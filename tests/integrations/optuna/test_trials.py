"""The adapter for Optuna, on real samplers, pruners and studies."""

import math
import pickle
import threading
import time
from pathlib import Path

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState
from sklearn.svm import SVC
from threadpoolctl import threadpool_info, threadpool_limits

from span_hpo import (
    RBF,
    Choice,
    ClassCosts,
    Float,
    Int,
    Polynomial,
    SigmoidScore,
    SpanObjective,
    UniformCost,
)
from span_hpo.integrations.optuna import (
    OptunaObjective,
    abandoned_trials,
    best_model,
    best_trial,
    enqueue_defaults,
    grid_sampler,
    params_of,
    search_space,
    suggest_params,
)
from span_hpo.integrations.optuna.workers import sign
from span_hpo.kernels.functions import FunctionKernel
from tests.problems import two_moons

ATTRIBUTES = {
    "loo_error",
    "loo_error_bounds",
    "smooth_error",
    "n_rows",
    "n_support",
    "n_in_bound",
    "n_undefined",
    "n_refit",
    "seconds",
}


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def objective():
    return SpanObjective(*two_moons(80))


def study_of(seed=0, **arguments):
    arguments.setdefault("sampler", optuna.samplers.TPESampler(seed=seed))
    return optuna.create_study(**arguments)


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
        for name in ATTRIBUTES - {"loo_error_bounds"}:
            assert type(written[name]) in (int, float)
        evaluation = objective.evaluate(trial.params)
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


def test_grid_sampler_gives_the_grid_of_the_paper():
    """33 values of each cost, bit for bit; the study stops by itself."""
    objective = SpanObjective(*two_moons(40), kernel=RBF(gamma=1.0))
    study = study_of(sampler=grid_sampler(objective, {"C_-1": 5, "C_1": 3}, seed=0))
    study.optimize(OptunaObjective(objective))
    visited = {(trial.params["C_-1"], trial.params["C_1"]) for trial in study.trials}
    assert visited == {(2.0**i, 2.0**j) for i in (-6, -2, 2, 6, 10) for j in (-6, 2, 10)}
    assert len(study.trials) == 15
    sampler = grid_sampler(objective, 33)
    assert sampler._search_space["C_1"] == [2.0 ** (-6 + 0.5 * k) for k in range(33)]


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_brute_force_sampler():
    """Steps and options are enumerated, each once."""
    objective = SpanObjective(
        *two_moons(40),
        kernel=Polynomial(degree=Int(1, 5, step=2), gamma=Float(0.5, 1.5, step=0.5)),
        weighting=UniformCost(Choice([0.5, 2.0])),
    )
    study = study_of(sampler=optuna.samplers.BruteForceSampler(seed=0))
    study.optimize(OptunaObjective(objective))
    visited = {tuple(trial.params.values()) for trial in study.trials}
    assert visited == {(d, g, C) for d in (1, 3, 5) for g in (0.5, 1.0, 1.5) for C in (0.5, 2.0)}
    assert len(study.trials) == 18


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
    with pytest.raises(ValueError, match=r"choose one of `study.best_trials`"):
        best_trial(study)
    with pytest.raises(ValueError, match="`budgets` must be one when there are several metrics"):
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


def test_ties_go_to_the_smoother_then_to_the_smaller_model():
    """Equal losses are common with the metric "error"."""
    study = study_of()

    def add(value, smooth_error, n_support, constraint=0.0):
        study.add_trial(
            optuna.create_trial(
                value=value,
                user_attrs={"smooth_error": smooth_error, "n_support": n_support},
                constraints={"n_support": constraint},
            )
        )

    add(0.2, 0.1, 3)
    add(0.1, 0.3, 3)
    add(0.1, 0.2, 9)
    add(0.1, 0.2, 5)
    add(0.1, 0.2, 5)
    add(0.1, 0.1, 2, constraint=1.0)
    assert best_trial(study).number == 3


def test_rank_of_evaluations_follows_the_same_rule(objective):
    """`Evaluation.rank` is what `best_trial` sorts by."""
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=20)
    evaluations = [objective.evaluate(trial.params) for trial in study.trials]
    best = min(evaluations, key=lambda evaluation: evaluation.rank)
    assert best.params == best_trial(study).params


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


def test_a_study_of_failures_tells_why():
    """Without a single model the reason of the last failure is named."""
    objective = SpanObjective(*two_moons(40), kernel=Polynomial(gamma=1e200))
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=2)
    with pytest.raises(ValueError, match=r"0 of them complete. The last failure: .*overflow"):
        best_trial(study)


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


def test_search_space_is_that_of_the_objective():
    """Every dimension has its distribution, and every distribution its dimension."""
    objective = SpanObjective(
        *two_moons(40),
        kernel=Polynomial(degree=Int(1, 6, step=2), gamma=Float(0.1, 1, log=True), coef0=1.0),
        weighting=ClassCosts([Float(0.5, 2.2, step=0.5), Choice([1.0, 10.0])]),
    )
    assert search_space(objective) == {
        "degree": IntDistribution(1, 5, step=2),
        "gamma": FloatDistribution(0.1, 1, log=True),
        "C_-1": FloatDistribution(0.5, 2.0, step=0.5),
        "C_1": CategoricalDistribution([1.0, 10.0]),
    }
    trial = study_of().ask(search_space(objective))
    assert math.isfinite(objective(trial.params))


def test_optuna_distributions_are_dimensions():
    """Wherever a Float, Int or Choice is taken, so is what Optuna calls it."""
    X, y = two_moons(40)
    ours = SpanObjective(
        X,
        y,
        kernel=Polynomial(degree=Int(1, 5, step=2), gamma=Float(0.1, 1, log=True)),
        weighting=ClassCosts({-1: Float(0.5, 2, step=0.5), 1: Choice([1.0, 10.0])}),
    )
    theirs = SpanObjective(
        X,
        y,
        kernel=Polynomial(
            degree=IntDistribution(1, 5, step=2), gamma=FloatDistribution(0.1, 1, log=True)
        ),
        weighting=ClassCosts(
            {-1: FloatDistribution(0.5, 2, step=0.5), 1: CategoricalDistribution([1.0, 10.0])}
        ),
    )
    assert theirs.space == ours.space
    params = {"degree": 3, "gamma": 0.5, "C_-1": 1.5, "C_1": 10.0}
    assert theirs(params) == ours(params)


def test_functions_of_ones_own():
    """What the adapter is made of serves a user's function as well."""
    objective = SpanObjective(*two_moons(40))
    study = study_of(directions=["minimize", "minimize"])

    def own(trial):
        evaluation = objective.evaluate(suggest_params(trial, objective))
        return evaluation.loss, evaluation.n_support

    study.optimize(own, n_trials=5)
    for trial in study.trials:
        evaluation = objective.evaluate(params_of(trial, objective))
        assert trial.values == [evaluation.loss, evaluation.n_support]


def test_pruned_trials_are_constrained_in_proportion():
    """A fit of half of the rows counts as half of the model."""
    objective = SpanObjective(*two_moons(80))
    study = study_of(pruner=optuna.pruners.ThresholdPruner(upper=-1.0))
    study.optimize(OptunaObjective(objective, budgets=(20, 80), max_support=30), n_trials=3)
    for trial in study.trials:
        assert trial.state == TrialState.PRUNED
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


def test_options_that_are_not_plain_values():
    """A storage gets text for such options, the objective the option itself."""
    seen = []

    def stretched(X, Z, axes):
        seen.append(axes)
        return np.exp(-(((X[:, None] - Z) * np.array(axes)) ** 2).sum(axis=2))

    options = [(1.0, 2.0), (2.0, 1.0)]
    objective = SpanObjective(
        *two_moons(40),
        kernel=FunctionKernel(stretched, {"axes": Choice(options)}),
        weighting=UniformCost(1.0),
    )
    study = study_of()
    enqueue_defaults(study, objective)
    study.optimize(OptunaObjective(objective), n_trials=6)
    assert {trial.params["axes"] for trial in study.trials} <= {"0: (1.0, 2.0)", "1: (2.0, 1.0)"}
    assert set(seen) <= set(options)
    assert best_model(study, objective).predict(objective.data.X).shape == (40,)
    grid = study_of(sampler=grid_sampler(objective, 1))
    grid.optimize(OptunaObjective(objective))
    assert len(grid.trials) == 2


def test_defaults_are_tried_first():
    """Equal and balanced costs, with two widths; those that a study has are not tried again."""
    X, y = two_moons(60)
    X, y = X[10:], y[10:]
    X, y = np.vstack([X, X[y > 0][:10]]), np.concatenate([y, y[y > 0][:10]])
    objective = SpanObjective(X, y)
    study = study_of()
    enqueue_defaults(study, objective)
    enqueue_defaults(study, objective)
    study.optimize(OptunaObjective(objective), n_trials=6)
    tried = [trial.params for trial in study.trials[:4]]
    rows, positive = len(y), int((y > 0).sum())
    balanced = {"C_-1": rows / (2 * (rows - positive)), "C_1": rows / (2 * positive)}
    distances = ((X[:, None] - X) ** 2).sum(axis=2)
    for width in (1 / 2, 1 / np.median(distances[distances > 0])):
        for costs in ({"C_-1": 1.0, "C_1": 1.0}, balanced):
            wanted = {"gamma": width, **costs}
            assert any(params == pytest.approx(wanted) for params in tried)
    assert "fixed_params" in study.trials[3].system_attrs
    assert "fixed_params" not in study.trials[4].system_attrs


def test_defaults_that_failed_are_tried_again(objective):
    """An interrupted trial does not count as tried."""
    study = study_of()
    enqueue_defaults(study, objective)
    waiting = len(study.trials)
    study.tell(study.ask(), state=TrialState.FAIL)
    enqueue_defaults(study, objective)
    assert len(study.trials) == waiting + 1
    study.optimize(OptunaObjective(objective), n_trials=waiting)
    enqueue_defaults(study, objective)
    assert len(study.trials) == waiting + 1


def test_defaults_of_other_weightings():
    """Guesses stay in their range; what nothing is known of starts in the middle."""
    X, y = two_moons(40)
    scores = np.linspace(0, 1, 40)
    objective = SpanObjective(
        X,
        y,
        scores=scores,
        kernel=RBF(gamma=0.5),
        weighting=ClassCosts(Float(2, 8)) * SigmoidScore(C=Choice([3.0, 5.0])),
    )
    assert objective.defaults() == [{"C_-1": 2.0, "C_1": 2.0, "A": 5.5, "B": 0.45, "C": 3.0}]

    class Own:
        space = {"scale": Int(1, 9)}  # noqa: RUF012  as a user may write it

        def costs(self, data, params):
            return np.full(len(data), float(params["scale"]))

    assert SpanObjective(X, y, kernel=RBF(gamma=0.5), weighting=Own()).defaults() == [{"scale": 5}]


def test_a_process_that_is_alive_has_abandoned_nothing(objective):
    """Trials of this process, of other machines and of other programs are not judged."""
    study = study_of()
    own, foreign, unsigned = study.ask(), study.ask(), study.ask()
    sign(own)
    foreign.set_user_attr("worker", {**own.user_attrs["worker"], "host": "elsewhere", "pid": 1})
    container = study.ask()
    container.set_user_attr("worker", {**own.user_attrs["worker"], "place": "other", "pid": 2**22})
    odd = study.ask()
    odd.set_user_attr("worker", {"host": own.user_attrs["worker"]["host"]})
    assert abandoned_trials(study, fail=True) == []
    states = [study.trials[t.number].state for t in (own, foreign, unsigned, container, odd)]
    assert states == [TrialState.RUNNING] * 5


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes cannot be judged")
def test_a_number_that_another_process_has_taken():
    """A process that has the number of a worker, but started later, is not that worker."""
    study = study_of()
    trial = study.ask()
    sign(trial)
    trial.set_user_attr("worker", {**trial.user_attrs["worker"], "started": 1})
    assert [found.number for found in abandoned_trials(study)] == [trial.number]


def test_options_that_a_storage_cannot_tell_apart(tmp_path):
    """True and 1, NaN, arrays and functions are options like any other, also after a restart."""
    seen = []

    def own(X, Z, option):
        seen.append(option)
        return X @ Z.T

    for options in ([True, 1], [math.nan, 1.0], [np.array([1.0, 2.0]), 3], [max, min], [own, 1]):
        objective = SpanObjective(
            *two_moons(20),
            kernel=FunctionKernel(own, {"option": Choice(options)}),
            weighting=UniformCost(1.0),
        )
        seen.clear()
        storage = optuna.storages.JournalStorage(
            optuna.storages.journal.JournalFileBackend(str(tmp_path / f"{id(options)}.log"))
        )
        study = study_of(sampler=grid_sampler(objective, 1), storage=storage, study_name="options")
        enqueue_defaults(study, objective)
        study.optimize(OptunaObjective(objective), n_trials=4)
        assert {id(option) for option in seen} == {id(option) for option in options}
        loaded = optuna.load_study(storage=storage, study_name="options")
        assert any(params_of(loaded.trials[0], objective)["option"] is one for one in options)


def test_trials_of_something_else_are_named(objective):
    """A study of other parameters gives no model."""
    study = study_of()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(ValueError, match=r"`trial` must have the parameters \['gamma', "):
        best_model(study, objective)
    study = study_of(direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(ValueError, match="`study` must minimise, got maximize"):
        best_trial(study)
    with pytest.raises(TypeError, match="`objective` must be a SpanObjective, got Study"):
        search_space(study)
    assert search_space(OptunaObjective(objective)) == search_space(objective)


def test_wrong_objective_is_named():
    """What is wrapped must be a SpanObjective."""
    with pytest.raises(TypeError, match="`objective` must be a SpanObjective, got"):
        OptunaObjective(lambda params: 0.0)
