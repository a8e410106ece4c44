"""The reference in double precision: by hand, against scikit-learn and against the referee."""

import sys

import numpy as np
import pytest
from sklearn.svm import SVC

from benchmarks.robustness.families import make
from benchmarks.robustness.referee import exact_value
from benchmarks.robustness.reference import leave_one_out_margins, offset_interval, solve_dual
from tests.places import ROOT
from tests.processes import ended


def test_three_rows_by_hand():
    """f(x) = x - 1, or 2/3 x - 1 without the second row; the first one is the last of its class."""
    X, y = np.array([[0.0], [2.0], [3.0]]), np.array([-1.0, 1.0, 1.0])
    found = leave_one_out_margins(X @ X.T, y, np.ones(3))
    np.testing.assert_allclose(found.margins, [-1, 1 / 3, 2], atol=1e-12)
    assert (found.errors < 1e-6).all()


def test_a_free_offset_is_the_middle_by_hand():
    """With two bounded rows at -1 and 1, f(x) = 0.2 x, and the offset is between -0.8 and 0.8."""
    X, y = np.array([[-1.0], [1.0], [3.0]]), np.array([-1.0, 1.0, 1.0])
    K, costs = X @ X.T, np.array([0.1, 0.1, 0.0])
    beta = solve_dual(K, y, costs, np.zeros(3))
    assert beta.tolist() == [-0.1, 0.1, 0.0]
    assert offset_interval(y, costs, beta, K @ beta) == pytest.approx((-0.8, 0.8))
    found = leave_one_out_margins(K, y, costs)
    assert found.margins[2] == pytest.approx(0.6, abs=1e-12)
    assert found.errors[2] < 1e-12


def test_costs_that_nearly_balance_are_not_trusted():
    """0.1 + 0.1 + 0.1 is not 0.3 in doubles, so the offset is unique, which doubles cannot see."""
    X = np.array([[1.0], [2.0], [3.0], [-2.0], [0.5]])
    y = np.array([1.0, 1.0, 1.0, -1.0, 1.0])
    costs = np.array([0.1, 0.1, 0.1, 0.3, 1e-9]) * 1e-3
    assert leave_one_out_margins(X @ X.T, y, costs).errors[4] == np.inf


@pytest.mark.parametrize("seed", range(10))
def test_ordinary_problems_agree_with_refits_of_scikit_learn(seed):
    """SVC without each row gives the same decision values, up to its single precision."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(15, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=15) > 0, 1.0, -1.0)
    y[:4] = 1.0, 1.0, -1.0, -1.0
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    costs = rng.uniform(0.5, 5.0, size=15)
    found = leave_one_out_margins(K, y, costs)
    for p in range(15):
        others = np.delete(np.arange(15), p)
        svc = SVC(C=1.0, kernel="precomputed", tol=1e-8)
        svc.fit(K[np.ix_(others, others)], y[others], sample_weight=costs[others])
        value = svc.decision_function(K[[p]][:, others])[0]
        if abs(svc.dual_coef_).max() < costs.max():  # an offset that is not free
            assert found.margins[p] == pytest.approx(y[p] * value, abs=1e-4)


FAMILIES = ["blobs", "linear", "norms", "huge_row", "ties", "shifted", "wide_costs", "edges"]


@pytest.mark.parametrize("family", FAMILIES)
def test_errors_of_the_reference_are_within_its_bounds(family):
    """The exact margin of a row differs from the reference by less than the bound."""
    rng = np.random.default_rng(0)
    for number in range(6):
        instance = make(family, 1_000 + number)
        found = leave_one_out_margins(instance.K, instance.y, instance.costs)
        if len(instance.y) > 30:
            continue
        p = int(rng.integers(len(instance.y)))
        costs = np.where(np.arange(len(instance.y)) == p, 0.0, instance.costs)
        if len(np.unique(instance.y[costs > 0])) == 2:
            exact = exact_value(instance.K.tolist(), instance.y, costs, p, found.betas[p])
            margin = float(instance.y[p]) * float(exact)
            assert abs(margin - found.margins[p]) <= found.errors[p]


def test_the_judges_import_nothing_of_the_package():
    """Reference, referee and families share no code with what they judge."""
    program = """
import sys
import benchmarks.robustness.families, benchmarks.robustness.truths
print([name for name in sys.modules if name.split(".")[0] == "span_hpo"])
"""
    assert ended([sys.executable, "-c", program], ROOT).stdout.strip() == "[]"
