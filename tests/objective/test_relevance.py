"""How much features contribute to a kernel with a width for each."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from span_hpo import ARD, SpanObjective, UniformCost, feature_relevance
from tests.relevant import thinned, two_of_twelve


def objective_of(X, y, **settings):
    """Return an objective whose only hyperparameters are those of the kernel."""
    return SpanObjective(X, y, weighting=UniformCost(1.0), **settings)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_half_the_mean_contribution_to_the_exponent(seed, is_sparse):
    """The relevance is half of the mean of gamma (x - z)^2 over all pairs of rows."""
    rng = np.random.default_rng(seed)
    X, y = two_of_twelve(30, seed)
    X = thinned(X * 10.0 ** rng.uniform(-3, 3, 12) + rng.normal(size=12), seed=seed)
    rows = X.toarray()
    gamma = 10.0 ** rng.uniform(-4, 2, 12)
    objective = objective_of(X if is_sparse else rows, y, kernel=ARD(gamma=gamma))
    found = feature_relevance(objective, {})
    differences = rows[:, None, :] - rows[None, :, :]
    expected = 0.5 * (gamma * differences**2).mean(axis=(0, 1))
    np.testing.assert_allclose([found[k] for k in range(12)], expected, rtol=1e-10)
    assert list(found) == sorted(found, key=found.get, reverse=True)


def test_sum_is_that_of_the_kernel():
    """Twice the sum of the relevances is the mean of minus the logarithm of the kernel values."""
    X, y = two_of_twelve(40)
    kernel = ARD(gamma=np.linspace(0.01, 0.5, 12).tolist())
    found = feature_relevance(objective_of(X, y, kernel=kernel), {})
    assert 2 * sum(found.values()) == pytest.approx(-np.log(kernel(X)).mean())


def test_units_do_not_matter():
    """Shifted and multiplied features with widths of the same meaning have the same relevance."""
    X, y = two_of_twelve(40)
    gamma, units = np.linspace(0.1, 1, 12), 10.0 ** np.linspace(-4, 4, 12)
    own = feature_relevance(objective_of(X, y, kernel=ARD(gamma=gamma)), {})
    other = objective_of(X * units + 7 * units, y, kernel=ARD(gamma=gamma / units**2))
    found = feature_relevance(other, {})
    assert list(found) == list(own)
    np.testing.assert_allclose(list(found.values()), list(own.values()), rtol=1e-9)


def test_features_of_a_group_have_its_width():
    """Each feature has the width of its group times its own variance, under its own name."""
    X, y = two_of_twelve(40)
    frame = pd.DataFrame(X[:, :3] * [1, 2, 3], columns=["a", "b", "c"])
    objective = objective_of(frame, y, kernel=ARD(groups={"ends": ["a", "c"]}))
    found = feature_relevance(objective, {"gamma_ends": 0.5, "gamma_b": 2.0})
    spread = frame.var(ddof=0)
    assert found == pytest.approx(
        {"a": 0.5 * spread["a"], "b": 2 * spread["b"], "c": 0.5 * spread["c"]}
    )


def test_features_without_relevance_are_last():
    """A constant feature and one with width 0 have relevance 0, in the order of the columns."""
    X, y = two_of_twelve(40)
    X = np.column_stack([np.full(40, 1e8), X[:, 3], X[:, 8]])
    found = feature_relevance(objective_of(X, y, kernel=ARD(gamma=[1.0, 0.0, 1.0])), {})
    assert list(found) == [2, 0, 1]
    assert [found[0], found[1]] == [0.0, 0.0]


def test_a_sparse_feature_of_large_numbers_keeps_its_variance():
    """Numbers that are far from 0 lose no digits, as they would in a difference of squares."""
    y = np.array([0, 0, 1, 1])
    X = sparse.csr_array(1e8 + np.array([[0.0], [1.0], [2.0], [3.0]]))
    assert feature_relevance(objective_of(X, y, kernel=ARD(gamma=1.0)), {}) == {0: 1.25}


def test_bad_input():
    """Another kernel has no relevance, and the point must be one of the space."""
    X, y = two_of_twelve(20)
    with pytest.raises(ValueError, match=r"`objective` must have a kernel with a width.*got RBF\."):
        feature_relevance(objective_of(X, y), {"gamma": 1.0})
    with pytest.raises(ValueError, match="gamma_1"):
        feature_relevance(objective_of(X[:, :2], y, kernel="ard"), {"gamma_0": 1.0})
