import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris, make_blobs

from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    Float,
    FunctionKernel,
    ImbalanceCost,
    Int,
    Laplacian,
    Linear,
    Polynomial,
    PowerScore,
    Precomputed,
    RadiusMargin,
    SigmoidScore,
    SpanObjective,
    UniformCost,
    free_squared_spans,
)
from tests.differences import assert_gradients_agree, differences_of, is_smooth_at
from tests.problems import two_moons

STEPS = (1e-3, 2e-4, 4e-5)


def data(seed=0, count=40):
    """Return half moons with a feature of noise, labels and scores."""
    X, y = two_moons(count, seed=seed)
    rng = np.random.default_rng(seed)
    return np.column_stack([X, rng.normal(size=count)]), y, rng.uniform(0.05, 1.0, count)


def points(objective, count=20, seed=0):
    """Yield random points at which the loss is smooth, with costs that leave rows in-bound."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        params = {}
        for name, part in objective.space.items():
            low, high = part.low, part.high
            if name.startswith("C"):
                low, high = 0.5, 20.0
            elif "gamma" in name:
                low, high = 0.1, 2.0
            params[name] = float(np.exp(rng.uniform(np.log(low + 0.05), np.log(high))))
        if is_smooth_at(objective, params, steps=STEPS):
            yield params


def assert_right(objective, params, **options):
    """Compare a gradient, taken by the logarithms of the hyperparameters, with differences."""
    found = objective.value_and_gradient(params, **options)
    assert found.reason == ""
    evaluation = objective.evaluate(params, options.get("rows"), certify=False)
    assert found.loss == evaluation.loss
    assert found.evaluation.loss == evaluation.loss
    expected = differences_of(objective, params, steps=STEPS, **options)
    by_logarithm = [
        {name: slope * params[name] for name, slope in one.items()}
        for one in (found.gradient, expected)
    ]
    assert_gradients_agree(*by_logarithm, floor=1e-3)


KERNELS = [
    RBF(),
    ARD(),
    ARD(groups=[[0, 2]]),
    Laplacian(),
    Polynomial(degree=2, coef0=Float(0.1, 2)),
    Linear(),
]
WEIGHTINGS = [
    UniformCost(),
    ClassCosts(),
    ImbalanceCost(),
    SigmoidScore(),
    PowerScore(),
    ClassCosts() * SigmoidScore(C=1.0),
    ImbalanceCost() * PowerScore(C=1.0),
]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_gradients_are_those_of_central_differences(kernel, weighting):
    """For every kernel with every weighting, at a random smooth point."""
    X, y, scores = data()
    fixed = {"kernel": kernel, "weighting": weighting, "metric": "smooth_error", "scores": scores}
    objective = SpanObjective(X, y, **fixed)
    assert_right(objective, next(points(objective)))


@pytest.mark.parametrize(
    "metric", ["smooth_error", "hinge", "span_functional", "log_loss", "brier"]
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_and_several_classes(metric, n_classes):
    """Every smooth metric, of two classes and of the pairs of three, with weights of rows."""
    X, y = make_blobs(36, 2, centers=n_classes, cluster_std=3.0, random_state=1)
    weight = np.random.default_rng(0).uniform(0.1, 3.0, 36)
    weight[::6] = 0.0
    objective = SpanObjective(X / 5, y, kernel="ard", metric=metric, metric_weight=weight)
    for params in list(points(objective, 4))[:2]:
        found = objective.value_and_gradient(params)
        assert found.loss == objective(params)
        expected = differences_of(objective, params, steps=STEPS)
        # Platt's sigmoid is fitted to about ten digits, which differences turn into six.
        assert_gradients_agree(found.gradient, expected, 2e-4 if metric in LOOSE else 2e-5)


LOOSE = {"log_loss", "brier"}


@pytest.mark.parametrize("kernel", [RBF(), ARD(), Polynomial(degree=2)])
def test_sparse_features_and_blocks_give_the_same_gradient(kernel):
    """Dense or sparse, and with the kernel matrix in memory or without it."""
    X, y, _ = data()
    X[np.abs(X) < 0.4] = 0.0
    found = []
    for form in (np.asarray, sparse.csr_array):
        for limit in (None, 0):
            objective = SpanObjective(
                form(X), y, kernel=kernel, metric="smooth_error", memory_limit=limit
            )
            params = {name: 0.7 if "gamma" in name else 3.0 for name in objective.space}
            found.append(objective.value_and_gradient(params).gradient)
    for other in found[1:]:
        assert_gradients_agree(other, found[0], 1e-6)


def test_some_of_the_rows():
    """The gradient of a budget of rows is that of its loss, of two classes and of three."""
    for X, y in ((data()[0], data()[1]), load_iris(return_X_y=True)):
        for limit in (None, 0):
            objective = SpanObjective(X, y, metric="smooth_error", kernel="ard", memory_limit=limit)
            params = {name: 0.7 if "gamma" in name else 2.0 for name in objective.space}
            assert is_smooth_at(objective, params, ["gamma_0"], steps=STEPS)
            assert_right(objective, params, rows=30)


def test_names_of_columns_and_groups():
    """The derivative by the width of a group is the sum of those of its features."""
    X, y, _ = data()
    frame = pd.DataFrame(X, columns=["age", "weight", "net income"])
    single = SpanObjective(frame, y, kernel="ard", metric="smooth_error")
    groups = {"body": ["age", "weight"]}
    grouped = SpanObjective(frame, y, kernel=ARD(groups=groups), metric="smooth_error")
    costs = {"C_-1": 2.0, "C_1": 3.0}
    names = ["gamma_age", "gamma_weight", "gamma_net_income"]
    one = single.value_and_gradient(dict.fromkeys(names, 0.7) | costs).gradient
    widths = {"gamma_body": 0.7, "gamma_net_income": 0.7}
    both = grouped.value_and_gradient(widths | costs).gradient
    assert list(one) == [*names, "C_-1", "C_1"]
    assert list(both) == ["gamma_body", "gamma_net_income", "C_-1", "C_1"]
    assert both["gamma_body"] == pytest.approx(one["gamma_age"] + one["gamma_weight"])
    assert both["C_1"] == pytest.approx(one["C_1"])


def test_a_constant_feature_has_slope_zero():
    """It does not matter, however large it is."""
    X, y, _ = data()
    for value in (0.0, 1.0, 1e6):
        X[:, 2] = value
        objective = SpanObjective(X, y, kernel="ard", metric="smooth_error")
        params = {"gamma_0": 1.0, "gamma_1": 0.5, "gamma_2": 2.0, "C_-1": 2.0, "C_1": 3.0}
        gradient = objective.value_and_gradient(params).gradient
        assert gradient["gamma_2"] == 0
        assert abs(gradient["gamma_0"]) > 1e-4


def ugly(seed):
    """Return rows with duplicates, a tiny class, and features of very different units."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 3))
    X[5:10] = X[:5]
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=30) > 0, 1, 0)
    y[5:10] = y[:5]
    if seed % 3 == 0:
        y[:] = 0
        y[rng.permutation(30)[:3]] = 1
    scores = 10.0 ** rng.uniform(-10, 0, size=30)
    units = 10.0 ** np.array([-5.0, 0.0, 5.0])
    return X * units, y, scores, units


@pytest.mark.parametrize("seed", range(6))
def test_ugly_data(seed):
    """Duplicates, a class of three rows, and rows and costs over ten orders of magnitude."""
    X, y, scores, units = ugly(seed)
    fixed = {"kernel": "ard", "metric": "smooth_error", "scores": scores}
    checked = 0
    for weighting in (ClassCosts(), PowerScore()):
        objective = SpanObjective(X, y, weighting=weighting, **fixed)
        rng = np.random.default_rng(seed)
        for _ in range(4):
            params = {f"gamma_{k}": rng.uniform(0.1, 2.0) / unit**2 for k, unit in enumerate(units)}
            params |= {name: rng.uniform(0.5, 20) for name in objective.space if name[0] == "C"}
            params |= {"tau": 1.0} if "tau" in objective.space else {}
            found = objective.value_and_gradient(params)
            if found.gradient is None:
                assert "in-bound support vectors" in found.reason
            elif is_smooth_at(objective, params, steps=STEPS):
                assert_right(objective, params)
                checked += 1
    assert checked >= 1


@pytest.mark.parametrize("eta", [None, 1e-4])
def test_too_few_in_bound_rows(eta):
    """There is a loss but no gradient, and the reason says why; so with one pair of three."""
    X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    objective = SpanObjective(X, y, kernel="linear", metric="smooth_error")
    params = {"C_0": 0.01, "C_1": 0.01}
    found = objective.value_and_gradient(params, eta=eta)
    assert found.gradient is None
    assert "The fit has 0 in-bound support vectors" in found.reason
    assert found.loss == objective(params)
    assert repr(found).startswith(f"Loss {found.loss:.6g} without a gradient")
    X, y = [[0.0], [1.0], [3.0], [4.0], [3.5], [3.6]], [0, 0, 1, 1, 2, 2]
    objective = SpanObjective(X, y, kernel="linear", metric="smooth_error")
    params = {"C_0": 9.0, "C_1": 1e-3, "C_2": 1e-3}
    found = objective.value_and_gradient(params, eta=eta)
    assert found.gradient is None
    assert "in-bound support vectors" in found.reason


def test_dependent_rows():
    """Costs keep their derivatives; those of a kernel whose rank may change are not known."""
    X = np.array([[0.0, 0], [0, 2], [2, 0], [2, 2], [0.2, 1.0], [5, 1], [-3, 1]])
    y, scores = [0, 0, 1, 1, 1, 1, 0], np.array([3.0, 4.0, 5.0, 6.0, 0.2, 1.0, 1.0]) / 6
    fixed = {"weighting": PowerScore(tau=1.0), "scores": scores, "metric": "smooth_error"}
    linear = SpanObjective(X, y, kernel="linear", **fixed)
    params = {"C": 6.0}
    assert linear.solution(params).n_in_bound == 4
    assert is_smooth_at(linear, params, steps=STEPS)
    assert_right(linear, params)
    params = {"gamma": 1.0, "C": 6.0}
    wider = SpanObjective(X, y, kernel=Polynomial(1, gamma=Float(0.1, 2), coef0=0.0), **fixed)
    found = wider.value_and_gradient(params)
    assert found.loss == wider(params)
    assert found.gradient is None
    assert "Some in-bound support vectors are combinations of others" in found.reason


@pytest.mark.parametrize(
    ("kernel", "zero"),
    [
        (ARD(gamma=Float(0.0, 10.0)), "gamma_1"),
        (Polynomial(2, gamma=1.0, coef0=Float(0.0, 3.0)), "coef0"),
    ],
)
def test_rows_that_are_equal_only_at_zero(kernel, zero):
    """There is no gradient where a hyperparameter of 0 makes rows equal that are not."""
    rng = np.random.default_rng(0)
    half = rng.normal(size=(15, 2))
    other = np.column_stack([half[:, 0], rng.normal(size=15)]) if zero == "gamma_1" else -half
    X, y = np.vstack([half, other]), rng.integers(2, size=30)
    for objective in (
        SpanObjective(X, y, kernel=kernel, weighting="uniform", metric="smooth_error"),
        RadiusMargin(X, y, kernel=kernel),
    ):
        params = {**dict.fromkeys(objective.space, 1.0), zero: 0.0}
        found = objective.value_and_gradient(params)
        assert found.gradient is None
        assert f"equal only because {zero} is 0" in found.reason
        assert found.loss == objective(params)
        assert objective.value_and_gradient({**params, zero: 0.1}).gradient is not None


def test_equal_rows_have_a_gradient_at_zero():
    """Rows that stay equal do not matter where a width is 0."""
    half = np.random.default_rng(0).normal(size=(15, 2))
    X, y = np.vstack([half, half]), np.random.default_rng(1).integers(2, size=30)
    kernel = ARD(gamma=Float(0.0, 10.0))
    objective = SpanObjective(X, y, kernel=kernel, weighting="uniform", metric="smooth_error")
    found = objective.value_and_gradient({"gamma_0": 1.0, "gamma_1": 0.0, "C": 1.0})
    step = {"gamma_0": 1.0, "gamma_1": 1e-6, "C": 1.0}
    slope = (objective(step) - found.loss) / 1e-6
    assert found.gradient["gamma_1"] == pytest.approx(slope, rel=1e-3)


def test_a_fit_that_has_not_converged():
    """There is no gradient then, and the reason says why."""
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(60, 2)) * [1, 30], rng.integers(0, 2, 60)
    options = {"kernel": "poly", "weighting": "uniform", "metric": "smooth_error"}
    objective = SpanObjective(X, y, max_iter=50, solver="libsvm", **options)
    with pytest.warns(match="KKT violation"):
        found = objective.value_and_gradient({"gamma": 0.01, "C": 30720.0})
    assert not found.evaluation.converged
    assert found.gradient is None
    assert found.reason.startswith("The fit has not converged")


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_the_span_functional_is_the_sum_over_support_vectors(shift):
    """Its terms follow from the solution, wherever the origin of the features is."""
    for seed in range(5):
        X, y, _ = data(seed)
        objective = SpanObjective(
            X + shift, y, kernel="linear", weighting="uniform", metric="span_functional"
        )
        solution = objective.solution({"C": 2.0})
        f, signs = solution.decision_values, solution.problem.y
        terms = solution.alpha * free_squared_spans(solution) - signs * f
        expected = terms[solution.alpha > 0].sum() / len(y)
        assert objective({"C": 2.0}) == pytest.approx(expected, abs=1e-6)


def test_whole_numbers_and_options_have_no_derivative():
    """They are left out of the gradient; the others keep the order of the space."""
    X, y, _ = data()
    kernel = Polynomial(degree=Int(1, 4), gamma=Float(0.1, 2), coef0=Float(0, 2))
    objective = SpanObjective(X, y, kernel=kernel, metric="smooth_error")
    params = {"degree": 2, "gamma": 0.4, "coef0": 0.7, "C_-1": 2.0, "C_1": 3.0}
    found = objective.value_and_gradient(params)
    assert list(found.gradient) == ["gamma", "coef0", "C_-1", "C_1"]
    matrix = SpanObjective(X @ X.T, y, kernel=Precomputed(), metric="smooth_error")
    assert list(matrix.value_and_gradient({"C_-1": 2.0, "C_1": 3.0}).gradient) == ["C_-1", "C_1"]
    fixed = SpanObjective(X, y, kernel=RBF(1.0), weighting=UniformCost(1.0), metric="hinge")
    found = fixed.value_and_gradient({})
    assert found.gradient == {}
    assert repr(found) == f"Loss {found.loss:.6g} with a gradient"


def test_another_metric_than_that_of_the_objective():
    """A search by gradients can use a smooth metric of an objective that counts errors."""
    X, y, _ = data()
    counting = SpanObjective(X, y)
    smooth = SpanObjective(X, y, metric="smooth_error")
    params = {"gamma": 0.7, "C_-1": 2.0, "C_1": 3.0}
    found, expected = (
        counting.value_and_gradient(params, metric="smooth_error"),
        smooth.value_and_gradient(params),
    )
    assert found.loss == expected.loss
    assert found.gradient == expected.gradient
    assert found.evaluation.loss == counting(params)
    assert repr(found).startswith(f"Loss {found.loss:.6g} with a gradient")


class Squares:
    """A user's metric with a derivative."""

    def __call__(self, y, decision_values):
        return float(np.mean((y - decision_values) ** 2))

    def gradient(self, y, decision_values):
        return 2 * (decision_values - y) / len(y)


class GroupCosts:
    """A user's weighting with a derivative."""

    space = {"per_group": Float(0.5, 20)}  # noqa: RUF012  what a user would write

    def costs(self, data, params):
        return np.where(data.groups == "a", 2.0, params["per_group"])

    def gradient(self, data, params, weights):
        return {"per_group": weights[data.groups == "b"].sum()}


def cauchy(A, B, width):
    return 1 / (1 + width * ((A[:, None] - B[None]) ** 2).sum(axis=2))


def slopes_of_cauchy(A, B, weights, width):
    squared = ((A[:, None] - B[None]) ** 2).sum(axis=2)
    return {"width": -(weights * squared / (1 + width * squared) ** 2).sum()}


def test_parts_of_users_with_derivatives():
    """A kernel, a weighting and a metric of one's own may supply their derivatives."""
    X, y, _ = data()
    kernel = FunctionKernel(cauchy, {"width": Float(0.1, 2)}, slopes_of_cauchy)
    groups = np.where(np.arange(40) % 3 == 0, "a", "b")
    objective = SpanObjective(
        X, y, kernel=kernel, weighting=GroupCosts(), groups=groups, metric=Squares()
    )
    checked = list(points(objective, 8))
    assert len(checked) >= 3
    for params in checked:
        assert_right(objective, params)


class WithoutGradient:
    """A user's weighting without a derivative."""

    space = {"own": Float(1, 10)}  # noqa: RUF012  what a user would write

    def costs(self, data, params):
        return np.full(len(data), params["own"])


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ({"metric": "error"}, {}, "`metric` must have a derivative, which error has not"),
        ({"metric": lambda y, f: 0.0}, {}, "`metric` must have a derivative, which <lambda>"),
        ({}, {"metric": "auc"}, "`metric` must have a derivative, which auc has not"),
        ({"loo_method": "exact"}, {}, "`loo_method` must be 'span' for gradients, got 'exact'"),
        ({}, {"eta": 0.0}, "`eta` must be a finite number above 0, got 0.0"),
        ({}, {"eta": "small"}, "`eta` must be a finite number above 0, got 'small'"),
        (
            {"kernel": FunctionKernel(cauchy, {"width": Float(0.1, 2)})},
            {},
            "`kernel` must have a derivative for gradients: pass FunctionKernel(function, hyperpa",
        ),
        (
            {"weighting": WithoutGradient()},
            {},
            "`weighting` must have a derivative, which WithoutGradient has not: give it a method",
        ),
    ],
)
def test_what_has_no_derivative_is_named(arguments, options, message):
    """An error says which part has none, and what to do."""
    X, y, _ = data()
    objective = SpanObjective(X, y, **{"metric": "smooth_error", **arguments})
    params = dict.fromkeys(objective.space, 1.0)
    with pytest.raises(ValueError, match="must") as caught:
        objective.value_and_gradient(params, **options)
    assert message in str(caught.value)


def test_derivatives_that_overflow_are_no_numbers():
    """A gradient is finite, or there is none and the reason says what to do."""

    def huge(A, B, weights, width):
        return {"width": 1.5e308}

    X, y = load_iris(return_X_y=True)
    kernel = FunctionKernel(cauchy, {"width": Float(0.1, 2)}, huge)
    objective = SpanObjective(X[::3], y[::3], kernel=kernel, metric="smooth_error")
    found = objective.value_and_gradient({"width": 0.5, "C_0": 2.0, "C_1": 2.0, "C_2": 2.0})
    assert found.gradient is None
    assert found.reason.startswith("The derivatives overflow: scale the features")
