import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import SVC

from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    Float,
    Laplacian,
    Polynomial,
    PowerScore,
    Problem,
    SigmoidScore,
    UniformCost,
    bounds,
    minimize,
    solve,
)
from span_hpo.objective import RadiusMargin
from tests import programs
from tests.problems import rbf, two_moons

KINDS = ["l1", "l2"]


def moons(count=40, seed=0):
    X, y = two_moons(count, seed=seed)
    return X, np.where(y > 0, "yes", "no")


def by_differences(objective, params, name, step=1e-5):
    """Return the derivative by the logarithm of one hyperparameter, with fourth order."""
    values = [
        objective({**params, name: params[name] * np.exp(share * step)}) for share in (-2, -1, 1, 2)
    ]
    return (8 * (values[2] - values[1]) - (values[3] - values[0])) / (12 * step)


@pytest.mark.parametrize("bound", KINDS)
@pytest.mark.parametrize("params", [(0.1, 0.3), (3.0, 2.0), (100.0, 0.05)])
def test_values_are_those_of_the_formulas(bound, params):
    """The loss is that of the function in `bounds`, and of programs by an interior-point solver."""
    X, labels = moons()
    y = np.where(labels == "yes", 1.0, -1.0)
    C, gamma = params
    objective = RadiusMargin(X, labels, weighting="uniform", bound=bound)
    K, costs = rbf(X, gamma), np.full(40, C)
    if bound == "l1":
        fit = bounds.smooth_radius_margin(solve(Problem(K, y, costs)))
        expected = (programs.squared_radius(K) + 1 / C) * programs.optimum(K, y, costs)
    else:
        fit = bounds.l2_radius_margin(bounds.l2_solution(Problem(K, y, costs)))
        expected = programs.squared_radius(K + np.eye(40) / C)
        expected *= programs.l2_svm(K, y, costs).sum()
    found = objective({"C": C, "gamma": gamma})
    assert found == pytest.approx(fit, rel=1e-9)
    assert found == pytest.approx(expected, rel=1e-6)
    assert objective.value_and_gradient({"C": C, "gamma": gamma}).loss == pytest.approx(found)


@pytest.mark.parametrize("bound", KINDS)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("kernel", "weighting"),
    [
        (RBF(), UniformCost()),
        (RBF(), ClassCosts()),
        (ARD(), ClassCosts()),
        (Laplacian(), SigmoidScore()),
        (Polynomial(degree=2, coef0=1.0), PowerScore()),
    ],
)
def test_gradients_by_central_differences(bound, kernel, weighting, seed):
    """The derivative by each hyperparameter, per factor of it, for kernels and weightings."""
    X, labels = moons(seed=seed)
    rng = np.random.default_rng(seed)
    scores = rng.random(40)
    objective = RadiusMargin(
        X, labels, kernel=kernel, weighting=weighting, bound=bound, scores=scores
    )
    params = {
        name: part.low * (part.high / max(part.low, 1e-3)) ** 0.45
        for name, part in objective.space.items()
    }
    params |= {name: 1.3 for name in ("A", "B", "tau", "gamma") if name in params}
    params = {name: value * rng.uniform(0.8, 1.25) for name, value in params.items()}
    found = objective.value_and_gradient(params)
    assert found.reason == ""
    assert list(found.gradient) == list(objective.space)
    size = max(abs(params[name] * slope) for name, slope in found.gradient.items())
    for name, slope in found.gradient.items():
        expected = by_differences(objective, params, name)
        assert params[name] * slope == pytest.approx(expected, abs=1e-5 * size), name


def drawn_objective(seed, bound):
    """Return one of many random objectives, with parameters anywhere in the space."""
    rng = np.random.default_rng(seed)
    count, features = int(rng.integers(10, 50)), int(rng.integers(1, 6))
    X = rng.normal(size=(count, features)) * 10.0 ** rng.uniform(-1, 1, size=features)
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(2, count // 2), size=count)]  # copies
    y = np.where(X[:, 0] + rng.normal(size=count) * X[:, 0].std() > 0, 1, 0)
    y[:2] = 0, 1
    kernel = [RBF(), ARD(), Laplacian(), Polynomial(degree=3, coef0=1.0)][int(rng.integers(4))]
    weightings = [UniformCost(), ClassCosts(), SigmoidScore(), ClassCosts() * PowerScore(C=1.0)]
    weighting = weightings[int(rng.integers(4))]
    objective = RadiusMargin(
        X, y, kernel=kernel, weighting=weighting, bound=bound, scores=rng.random(count)
    )
    params = {}
    for name, part in objective.space.items():
        share = rng.uniform(0.2, 0.8)
        is_log = part.log and part.low > 0
        between = part.low ** (1 - share) * part.high**share if is_log else None
        params[name] = between if is_log else part.low + share * (part.high - part.low)
    return objective, params


@pytest.mark.slow
@pytest.mark.parametrize("bound", KINDS)
def test_many_gradients_by_central_differences(bound):
    """On 500 random problems, no derivative is off by more than 1e-6 of the largest one.

    Where two steps give different slopes, the value has a kink in its slope nearby, or is too
    rounded to tell; such problems are few.
    """
    unclear = 0
    for seed in range(500):
        objective, params = drawn_objective(seed, bound)
        found = objective.value_and_gradient(params)
        if found.gradient is None:
            unclear += 1
            continue
        slopes = np.array([params[name] * slope for name, slope in found.gradient.items()])
        steps = (1e-4, 1e-5)
        coarse, fine = (
            np.array([by_differences(objective, params, name, step) for name in found.gradient])
            for step in steps
        )
        size = np.abs(slopes).max()
        if np.abs(coarse - fine).max() > 1e-5 * size:
            unclear += 1
            continue
        np.testing.assert_allclose(slopes, fine, rtol=0, atol=1e-6 * size, err_msg=f"seed {seed}")
    assert unclear < 10


def test_the_kink_in_single_costs():
    """Where no row is in-bound, single costs have a kink, and the result says so.

    Of two rows at the squared distance 1.25 with costs of 0.1, the slopes by one cost are 0 and
    3.75 times ``R^2``. One cost for both has a derivative there.
    """
    X, y = [[0.0, 0.0], [1.0, 0.5]], [0, 1]
    single = RadiusMargin(X, y, kernel="linear", weighting=ClassCosts(), penalty=0.0)
    at = {"C_0": 0.1, "C_1": 0.1}
    found = single.value_and_gradient(at)
    assert found.gradient is None
    assert "kink" in found.reason
    assert "offset of the fit is not unique" in found.reason
    step, R2 = 1e-6, 1.25 / 4
    right = (single({"C_0": 0.1, "C_1": 0.1 + step}) - found.loss) / step
    left = (found.loss - single({"C_0": 0.1, "C_1": 0.1 - step})) / step
    assert right / R2 == pytest.approx(0.0, abs=1e-5)
    assert left / R2 == pytest.approx(3.75, abs=1e-5)
    common = RadiusMargin(X, y, kernel="linear", penalty=0.0)
    assert common.value_and_gradient({"C": 0.1}).gradient["C"] / R2 == pytest.approx(3.75)
    squared = RadiusMargin(X, y, kernel="linear", weighting=ClassCosts(), bound="l2")
    assert set(squared.value_and_gradient(at).gradient) == {"C_0", "C_1"}


def test_unequal_costs_have_no_kink():
    """Next to the kink, the slope by a cost that binds is that of its side."""
    X, y = [[0.0, 0.0], [1.0, 0.5]], [0, 1]
    objective = RadiusMargin(X, y, kernel="linear", weighting=ClassCosts(), penalty=0.0)
    found = objective.value_and_gradient({"C_0": 0.1, "C_1": 0.1 + 1e-6})
    assert found.gradient["C_0"] * 4 / 1.25 == pytest.approx(3.75, rel=1e-5)
    assert found.gradient["C_1"] == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize("bound", KINDS)
def test_ugly_data(bound):
    """Duplicates, features and costs over ten orders of magnitude, and one row of a class."""
    X, _ = two_moons(24)
    X = np.repeat(X, 2, axis=0) * [1e-5, 1e5]
    y = np.where(np.arange(48) < 1, "rare", "many")
    objective = RadiusMargin(X, y, kernel=ARD(), weighting=ClassCosts(), bound=bound)
    for costs in [(1e-5, 1e5), (1e5, 1e-5), (1e5, 3e5)]:
        params = {"gamma_0": 1e10, "gamma_1": 1e-10, "C_many": costs[0], "C_rare": costs[1]}
        found = objective.value_and_gradient(params)
        assert 0 < found.loss < np.inf
        assert found.reason == ""
        for name in params:
            expected = by_differences(objective, params, name)
            slope = params[name] * found.gradient[name]
            assert slope == pytest.approx(expected, abs=2e-5 * found.loss), name


def test_one_cost_is_searched_by_default():
    """A cost per class would let the minimum of "l1" give up one class."""
    assert list(RadiusMargin(*moons()).space) == ["gamma", "C"]


@pytest.mark.parametrize("bound", KINDS)
def test_rows_without_cost(bound):
    """Rows of score 0 under a power have cost 0, and the value is that of the others."""
    X, labels = moons()
    scores = np.ones(40)
    scores[:6] = 0.0
    with_all = RadiusMargin(X, labels, weighting=PowerScore(tau=1.0), bound=bound, scores=scores)
    others = RadiusMargin(X[6:], labels[6:], weighting="uniform", bound=bound)
    params = {"C": 2.0, "gamma": 1.0}
    found = with_all.value_and_gradient(params)
    expected = others.value_and_gradient(params)
    assert found.loss == pytest.approx(expected.loss, rel=1e-9)
    for name, slope in expected.gradient.items():
        assert found.gradient[name] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("bound", KINDS)
def test_models_are_those_that_the_bound_judges(bound):
    """The model has the decision values of the fit, and predicts labels of new rows."""
    X, labels = moons(60)
    objective = RadiusMargin(X, labels, weighting=ClassCosts(), bound=bound)
    params = {"gamma": 0.8, "C_no": 3.0, "C_yes": 5.0}
    fit, model = objective.solution(params), objective.fit_model(params)
    assert isinstance(model, SVC) == (bound == "l1")
    np.testing.assert_allclose(model.decision_function(X), fit.decision_values, atol=1e-4)
    new, new_labels = moons(200, seed=1)
    assert np.mean(model.predict(new) == new_labels) > 0.8
    assert set(model.predict(new)) <= {"no", "yes"}


def test_l2_models_by_hand():
    """Decision values of new rows follow from the dual variables, for each kind of kernel."""
    X, labels = moons(50)
    y = np.where(labels == "yes", 1.0, -1.0)
    new = moons(9, seed=2)[0]
    params = {"gamma": 0.5, "C": 2.0}
    objective = RadiusMargin(X, labels, weighting="uniform", bound="l2")
    alpha = programs.l2_svm(rbf(X, 0.5), y, np.full(50, 2.0))
    model = objective.fit_model(params)
    squared = ((new[:, None] - X) ** 2).sum(axis=2)
    expected = np.exp(-0.5 * squared) @ (y * alpha) + model.offset
    np.testing.assert_allclose(model.decision_function(new), expected, atol=1e-5)
    given = RadiusMargin(rbf(X, 0.5), labels, kernel="precomputed", weighting="uniform", bound="l2")
    by_matrix = given.fit_model({"C": 2.0}).decision_function(np.exp(-0.5 * squared))
    np.testing.assert_allclose(by_matrix, model.decision_function(new), atol=1e-9)
    with pytest.raises(ValueError, match=r"`X` must have the 2 columns of the fit, got 3"):
        model.decision_function(np.ones((1, 3)))


@pytest.mark.parametrize("bound", KINDS)
def test_data_frames_and_sparse_features(bound):
    """Column names become names of widths, and sparse features give the same values."""
    X, labels = moons()
    frame = pd.DataFrame(X, columns=["east", "north"])
    objective = RadiusMargin(frame, labels, kernel=ARD(), weighting="uniform", bound=bound)
    assert set(objective.space) == {"gamma_east", "gamma_north", "C"}
    params = {"gamma_east": 1.0, "gamma_north": 0.3, "C": 5.0}
    rows = sparse.csr_matrix(X)
    other = RadiusMargin(rows, labels, kernel=ARD(), weighting="uniform", bound=bound)
    found = objective.value_and_gradient(params)
    alike = other.value_and_gradient(dict(zip(other.space, (1.0, 0.3, 5.0), strict=True)))
    assert alike.loss == pytest.approx(found.loss, rel=1e-9)
    np.testing.assert_allclose(
        list(alike.gradient.values()), list(found.gradient.values()), rtol=1e-6
    )


@pytest.mark.parametrize("bound", KINDS)
def test_copies_for_other_processes(bound):
    """An objective can be pickled, and gives the same numbers afterwards."""
    objective = RadiusMargin(*moons(), weighting=ClassCosts(), bound=bound, penalty=0.7)
    copied = pickle.loads(pickle.dumps(objective))
    params = {"gamma": 1.0, "C_no": 1.0, "C_yes": 2.0}
    assert copied(params) == objective(params)
    assert copied.description() == objective.description()


def test_what_an_objective_says_of_itself():
    """Words and descriptions name the bound, and differ between bounds, penalties and data."""
    X, labels = moons()
    first = RadiusMargin(X, labels)
    assert "eq. 3.3" in first.in_words()
    assert "L2-SVM" in RadiusMargin(X, labels, bound="l2").in_words()
    assert "40 rows with 2 features" in repr(first)
    others = [
        RadiusMargin(X, labels, bound="l2"),
        RadiusMargin(X, labels, penalty=0.5),
        RadiusMargin(X[1:], labels[1:]),
        RadiusMargin(X, labels, kernel="laplacian"),
        RadiusMargin(X, labels, weighting=ClassCosts()),
    ]
    assert all(other.description() != first.description() for other in others)
    assert RadiusMargin(X, labels).description() == first.description()


def test_a_fit_that_has_not_converged():
    """There is no gradient then, and the reason says why."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)  # nothing to learn
    objective = RadiusMargin(X, y, kernel="linear", weighting="uniform", max_iter=1)
    with pytest.warns(match="KKT violation"):
        found = objective.value_and_gradient({"C": 1e12})
    assert found.gradient is None
    assert "has not converged" in found.reason


def test_wrong_arguments_are_named():
    """Messages tell the argument, what was received and what is wanted."""
    X, labels = moons()
    with pytest.raises(ValueError, match=r"`y` must hold two classes.*got 3.*SpanObjective"):
        RadiusMargin(*load_iris(return_X_y=True))
    for wrong in ("l3", None, ["l1"]):
        with pytest.raises(ValueError, match=r"`bound` must be one of \['l1', 'l2'\], got"):
            RadiusMargin(X, labels, bound=wrong)
    with pytest.raises(ValueError, match=r"`penalty`.*-1"):
        RadiusMargin(X, labels, penalty=-1)
    with pytest.raises(ValueError, match=r"`tol`.*0"):
        RadiusMargin(X, labels, tol=0)
    with pytest.raises(ValueError, match=r"`memory_limit` must allow for the whole kernel matrix"):
        RadiusMargin(*moons(600), memory_limit=0.5)
    with pytest.raises(ValueError, match="gamma"):
        RadiusMargin(X, labels, kernel=RBF(gamma=Float(0.1, 1.0)), weighting=_Twice())
    objective = RadiusMargin(X, labels, weighting=ClassCosts())
    for options in ({"metric": "error"}, {"rows": 20}):
        with pytest.raises(TypeError, match=rf"`options` must be empty.*{next(iter(options))}"):
            minimize(objective, **options)
    for call in (objective, objective.value_and_gradient, objective.solution, objective.fit_model):
        with pytest.raises(ValueError, match="C_yes"):
            call({"gamma": 1.0, "C_no": 1.0})
        with pytest.raises(ValueError, match="other"):
            call({"gamma": 1.0, "C_no": 1.0, "C_yes": 1.0, "other": 1.0})


class _Twice:
    """A weighting that searches a name of the kernel too."""

    space = {"gamma": Float(0.1, 1.0)}  # noqa: RUF012

    def costs(self, data, params):
        return np.full(len(data), params["gamma"])


class _Plain:
    """A weighting of a user, without derivatives."""

    space = {"C": Float(0.1, 10.0, log=True)}  # noqa: RUF012

    def costs(self, data, params):
        return np.full(len(data), params["C"])


def test_weightings_without_derivatives():
    """They have values, and their gradient is an error that names them."""
    objective = RadiusMargin(*moons(), kernel=RBF(gamma=1.0), weighting=_Plain())
    assert objective({"C": 1.0}) > 0
    with pytest.raises(ValueError, match="_Plain"):
        objective.value_and_gradient({"C": 1.0})
