import pickle

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.svm import SVC

from span_hpo import ARD, RBF, Float, SpanObjective, UniformCost
from span_hpo.kernels.cache import FeatureKernel, KernelCache
from tests.differences import assert_gradients_agree, central_differences
from tests.problems import two_moons

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Z = RNG.normal(size=(7, 4))
WIDTHS = np.array([0.3, 1.2, 0.05, 2.0])


def by_hand(X, Z, widths):
    """Return the kernel from the differences of all pairs."""
    return np.exp(-(((X[:, None] - Z[None]) ** 2) * widths).sum(axis=2))


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_kernel_values_follow_the_formula(form):
    """One width for each feature, dense or sparse, among rows and between two sets of rows."""
    kernel = ARD(gamma=WIDTHS)
    np.testing.assert_allclose(kernel(form(X)), by_hand(X, X, WIDTHS), rtol=1e-12)
    np.testing.assert_allclose(kernel(form(X), form(Z)), by_hand(X, Z, WIDTHS), rtol=1e-12)
    doubled = np.vstack([X, X[:5]])
    K = kernel(form(doubled))
    np.testing.assert_array_equal(K, K.T)
    np.testing.assert_array_equal(K[:5, 30:].diagonal(), 1.0)


def test_equal_widths_are_those_of_rbf():
    """With one number for all features the kernel is the Gaussian one."""
    np.testing.assert_allclose(ARD(gamma=0.7)(X, Z), RBF(gamma=0.7)(X, Z), rtol=1e-12)
    np.testing.assert_allclose(ARD(gamma=0.7)(X), RBF(gamma=0.7)(X), rtol=1e-12)


def test_a_width_of_zero_leaves_a_feature_out():
    """The values are those of the other features."""
    found = ARD(gamma=[0.3, 0.0, 0.05, 0.0])(X)
    np.testing.assert_allclose(found, by_hand(X[:, [0, 2]], X[:, [0, 2]], [0.3, 0.05]), rtol=1e-12)


def test_widths_may_differ_by_ten_orders_of_magnitude():
    """Columns in very different units keep their digits if their widths make up for it."""
    units = 10.0 ** np.array([-5, 0, 3, 5])
    found = ARD(gamma=(WIDTHS / units**2).tolist())(X * units + units)
    np.testing.assert_allclose(found, by_hand(X, X, WIDTHS), rtol=1e-8)


def test_hyperparameters_are_named_after_columns():
    """Columns of an array are numbered; those of a DataFrame have names."""
    assert list(ARD().bind(X).space) == ["gamma_0", "gamma_1", "gamma_2", "gamma_3"]
    y = np.tile([0, 1], 15)
    frame = pd.DataFrame(X, columns=["age", "net income", "größe", "7"])
    names = ["gamma_age", "gamma_net_income", "gamma_größe", "gamma_7"]
    assert list(SpanObjective(frame, y, kernel="ard").kernel.space) == names
    clashing = frame.set_axis(["a b", "a_b", "c", "d"], axis=1)
    assert list(SpanObjective(clashing, y, kernel=ARD()).kernel.space) == [
        f"gamma_{number}" for number in range(4)
    ]


@pytest.mark.parametrize(
    ("names", "groups", "message"),
    [
        ("aabc", None, "`X` must have columns with different names .*, got 'a' twice: rename one"),
        ("abcd", {"b": ["a"]}, "`groups` must have names that differ .*, got 'b' twice"),
    ],
)
def test_a_name_twice_is_an_error(names, groups, message):
    """Two widths cannot have one name, be they those of columns or of groups."""
    frame = pd.DataFrame(X, columns=list(names))
    with pytest.raises(ValueError, match=message):
        SpanObjective(frame, np.tile([0, 1], 15), kernel=ARD(groups=groups))


def test_groups_share_a_width():
    """Groups come first under the name of their first column, or under a name of their own."""
    assert list(ARD(groups=[[2, 1]]).bind(X).space) == ["gamma_2", "gamma_0", "gamma_3"]
    assert list(ARD(groups={"ends": (0, 3)}).bind(X).space) == ["gamma_ends", "gamma_1", "gamma_2"]
    grouped = ARD(gamma=[0.5, 0.1, 2.0], groups=[[2, 1]])
    np.testing.assert_allclose(grouped(X), by_hand(X, X, [0.1, 0.5, 0.5, 2.0]), rtol=1e-12)
    frame = pd.DataFrame(X, columns=list("abcd"))
    kernel = ARD(groups=[["a", "d"], np.array([1])])
    objective = SpanObjective(frame, np.tile([0, 1], 15), kernel=kernel)
    assert list(objective.kernel.space) == ["gamma_a", "gamma_b", "gamma_c"]
    np.testing.assert_array_equal(
        objective.kernel.widths({"gamma_a": 1.0, "gamma_b": 2.0, "gamma_c": 3.0}), [1, 2, 3, 1]
    )


def test_widths_may_be_given_by_name():
    """Some widths are numbers and others are searched, each over its own range."""
    wide = Float(0.1, 10, log=True)
    kernel = ARD(gamma={"gamma_0": 0.5, "gamma_ends": wide}, groups={"ends": [1, 2, 3]}).bind(X)
    assert kernel.space == {"gamma_ends": wide}
    assert kernel.alike == ("gamma_ends",)
    np.testing.assert_array_equal(kernel.widths(kernel.values({"gamma_ends": 2.0})), [0.5, 2, 2, 2])


def test_names_of_groups_do_not_depend_on_how_widths_are_given():
    """A list and a tuple of widths lead to the same names, and binding twice changes nothing."""
    groups = {"left": [0], "right": [1]}
    X = np.eye(3, 2)
    bound = [
        ARD(gamma=kind([0.1, Float(1.0, 2.0)]), groups=groups).bind(X) for kind in (list, tuple)
    ]
    assert [list(kernel.values({"gamma_right": 1.5})) for kernel in bound] == [
        ["gamma_left", "gamma_right"]
    ] * 2
    assert bound[0].bind(X) == bound[0]


def test_default_ranges_and_starts_follow_the_median_distance():
    """Each width is searched over [1e-4, 1e3] / median, from 1 / d and 1 / median."""
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    median = np.median(squared[squared > 0])
    kernel = ARD().bind(X)
    for part in kernel.space.values():
        np.testing.assert_allclose([part.low, part.high], [1e-4 / median, 1e3 / median])
        assert part.log
    for found, expected in zip(kernel.starts(X), (1 / 4, 1 / median), strict=True):
        assert list(found) == list(kernel.space)
        np.testing.assert_allclose(list(found.values()), expected)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"gamma": [1.0, 2.0]}, ValueError, "`gamma` must have one entry for each of 4 groups"),
        ({"gamma": {"gamma_0": 1.0}}, ValueError, "`gamma` must name exactly"),
        ({"gamma": -1.0}, ValueError, "`gamma_0` must be a finite number of at least 0, got -1.0"),
        ({"gamma": [1, 2, np.nan, 4]}, ValueError, "`gamma_2` must be a finite number"),
        ({"groups": [[0, 1], [1, 2]]}, ValueError, "each column once, got column 1 twice"),
        ({"groups": [[0, 0]]}, ValueError, "each column once, got column 0 twice"),
        ({"groups": [[0], []]}, ValueError, "at least one column in each"),
        ({"groups": [[4]]}, ValueError, "numbers from 0 to 3, got 4"),
        ({"groups": [[-1]]}, ValueError, "numbers from 0 to 3, got -1"),
        ({"groups": [["age"]]}, ValueError, "numbers from 0 to 3 or names, got 'age'"),
        ({"groups": ["ab"]}, TypeError, "`groups` must hold lists of columns, got 'ab'"),
        ({"groups": "ab"}, TypeError, "`groups` must be a list of lists of columns, got 'ab'"),
        ({"columns": ["a", "b"]}, ValueError, "`columns` must name each of the 4 features, got 2"),
    ],
)
def test_wrong_arguments_are_named(arguments, error, message):
    """What cannot be a kernel of these features is an error that says why."""
    with pytest.raises(error) as caught:
        ARD(**arguments).bind(X)
    assert message in str(caught.value)


def test_hyperparameters_are_known_only_with_the_features():
    """A kernel without features says what to do, and one with open widths cannot be called."""
    with pytest.raises(ValueError, match="must know the features before it has hyperparameters"):
        _ = ARD().space
    with pytest.raises(ValueError, match="`gamma_0` must be a fixed value before ARD can be calle"):
        ARD()(X)


def test_a_name_that_the_weighting_searches_too_is_an_error():
    """A column cannot get the name of a hyperparameter of the weighting."""

    class Own:
        space = {"gamma_b": Float(1, 2)}  # noqa: RUF012  what a user would write

        def costs(self, data, params):
            return np.full(len(data), params["gamma_b"])

    frame = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(ValueError, match="`gamma_b` must be searched once"):
        SpanObjective(frame, np.tile([0, 1], 15), kernel="ard", weighting=Own())


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("groups", [None, [[3, 0]]])
def test_gradient_is_that_of_central_differences(form, groups):
    """The derivative of any weighted sum of kernel values, among rows or between two sets."""
    rng = np.random.default_rng(1)
    kernel = ARD(groups=groups).bind(form(X))
    params = dict(zip(kernel.space, rng.uniform(0.1, 1.0, len(kernel.space)), strict=True))
    for statistic, count in (
        (kernel.statistic(form(X)), 30),
        (kernel.cross_statistic(form(X), form(Z)), 7),
    ):
        weights = rng.normal(size=(30, count))

        def total(values, statistic=statistic, weights=weights):
            return float(np.vdot(weights, kernel.matrix(statistic, **values)))

        K = kernel.matrix(statistic, **params)
        found = kernel.gradient(statistic, K, weights.copy(), **params)
        assert_gradients_agree(found, central_differences(total, params), 1e-9)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_derivatives_keep_their_digits_for_close_rows(form):
    """Weights that count only rows that nearly agree, far from the origin, leave no rounding."""
    rows = np.vstack([X, X]) + 1e4
    rows[30:] += 1e-4 * RNG.normal(size=(30, 4))
    kernel = ARD().bind(form(rows))
    params = dict(zip(kernel.space, WIDTHS.tolist(), strict=True))
    weights = np.zeros((60, 60))
    weights[np.arange(30), np.arange(30, 60)] = RNG.normal(size=30)
    statistic = kernel.statistic(form(rows))
    K = kernel.matrix(statistic, **params)
    found = list(kernel.gradient(statistic, K, weights.copy(), **params).values())
    differences = (rows[:30] - rows[30:]).astype(np.longdouble)
    of_pairs = weights[:30, 30:].diagonal() * K[:30, 30:].diagonal()
    np.testing.assert_allclose(found, -(of_pairs[:, None] * differences**2).sum(axis=0), rtol=1e-9)


def test_derivatives_of_constant_and_of_unused_features():
    """A constant feature has slope 0 exactly; a width of 0 has a slope, from one side."""
    rows = X.copy()
    rows[:, 1] = 1e6
    kernel = ARD().bind(rows)
    params = dict(zip(kernel.space, [0.3, 1.2, 0.0, 2.0], strict=True))
    weights = RNG.normal(size=(30, 30))
    statistic = kernel.statistic(rows)
    K = kernel.matrix(statistic, **params)
    found = kernel.gradient(statistic, K, weights.copy(), **params)
    assert found["gamma_1"] == 0
    ends = [kernel.matrix(statistic, **{**params, "gamma_2": at}) for at in (1e-6, 2e-6)]
    slope = (4 * np.vdot(weights, ends[0] - K) - np.vdot(weights, ends[1] - K)) / 2e-6
    assert found["gamma_2"] == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_models_have_the_same_kernel(form):
    """scikit-learn's SVC, with the kernel as a function or on scaled features, agrees."""
    rows, y = two_moons(60)
    kernel = ARD(gamma=[0.4, 3.0]).bind(rows)
    values, others = kernel.values({}), two_moons(20, seed=3)[0]
    expected = SVC(kernel="precomputed").fit(by_hand(rows, rows, [0.4, 3.0]), y)
    wanted = expected.decision_function(by_hand(others, rows, [0.4, 3.0]))
    arguments = kernel.svc_arguments(**values)
    by_function = SVC(**arguments).fit(rows, y)
    np.testing.assert_allclose(by_function.decision_function(others), wanted, atol=1e-6)
    scaled, arguments = kernel.features_of_fit(form(rows), **values)
    there, _ = kernel.features_of_fit(form(others), **values)
    found = SVC(**arguments).fit(scaled, y).decision_function(there)
    np.testing.assert_allclose(found, wanted, atol=1e-6)


def test_kernel_matrices_beyond_the_memory_limit():
    """Blocks from the features give the values and the derivatives of the matrix."""
    kernel = ARD().bind(X)
    params = dict(zip(kernel.space, WIDTHS.tolist(), strict=True))
    held, blocked = KernelCache(kernel, X), KernelCache(kernel, X, memory_limit=0)
    K, parts = held.matrix(params), blocked.matrix(params)
    assert isinstance(parts, FeatureKernel)
    every = np.arange(30)
    np.testing.assert_allclose(parts.block(every, every), K.values, rtol=1e-12)
    np.testing.assert_array_equal(parts.diagonal(), 1.0)
    weights = RNG.normal(size=(30, 30))
    found = [
        cache.gradient(matrix, params, [(every, every, weights.copy())])
        for cache, matrix in ((held, K), (blocked, parts))
    ]
    assert_gradients_agree(*found, 1e-12)


def test_objectives_with_many_widths_can_be_pickled():
    """A copy has the same hyperparameters and the same loss."""
    rows, y = two_moons(40)
    objective = SpanObjective(rows, y, kernel="ard", weighting=UniformCost(C=2.0))
    copy = pickle.loads(pickle.dumps(objective))
    params = {"gamma_0": 0.5, "gamma_1": 2.0}
    assert copy.space == objective.space
    assert copy(params) == objective(params)
