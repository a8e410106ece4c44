import math

import numpy as np
import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from span_hpo import RBF, Choice, ClassCosts, Float, Int, Polynomial, SpanObjective, UniformCost
from span_hpo.integrations.optuna import (
    OptunaObjective,
    best_model,
    enqueue_defaults,
    grid_sampler,
    params_of,
    search_space,
    suggest_params,
)
from span_hpo.kernels.functions import FunctionKernel
from tests.integrations.optuna.parts import study_of
from tests.problems import two_moons


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
