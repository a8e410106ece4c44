import numpy as np
import pytest
from scipy import optimize
from sklearn.svm import SVC

from span_hpo import Problem, solve
from span_hpo.solver import solve_svm_plus
from tests.problems import rbf


def problem(seed, count=30, *, singular=False):
    """Return two kernel matrices and labels, with equal rows and few features if asked for."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(count, 2)), rng.normal(size=(count, 3))
    if singular:
        X[: count // 3], Z[: count // 3] = X[-(count // 3) :], Z[-(count // 3) :]
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=count) > 0, 1.0, -1.0)
    y[:2] = [1.0, -1.0]
    if singular:
        return X @ X.T, Z[:, :1] @ Z[:, :1].T, y
    return rbf(X, 1.0), rbf(Z, 0.5), y


SETTINGS = [(1.0, 1.0), (100.0, 0.1), (0.1, 10.0), (1e4, 1.0), (1.0, 1e-3)]


@pytest.mark.parametrize(("C", "gamma"), SETTINGS)
@pytest.mark.parametrize("singular", [False, True])
def test_optimality_conditions_hold(C, gamma, singular):
    """Margins, slacks, sums and complementarity hold, also with singular kernels."""
    for seed in range(4):
        K, privileged, y = problem(seed, singular=singular)
        solution = solve_svm_plus(K, privileged, y, C=C, gamma=gamma)
        assert solution.kkt_violation() < 1e-6
        assert solution.alpha.min() >= 0
        assert solution.beta.min() >= 0
        short = np.maximum(0, 1 - solution.slacks - y * solution.decision_values)
        assert short.max() < 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_it_is_the_minimum_of_the_primal_problem(seed):
    """A general method on the primal problem with explicit features finds the same functions."""
    rng = np.random.default_rng(seed)
    X, Z = rng.normal(size=(8, 2)), rng.normal(size=(8, 2))
    y = np.array([1.0, -1.0] * 4)
    C, gamma = 2.0, 0.5

    def cost(v):
        return (v[:2] @ v[:2] + gamma * v[3:5] @ v[3:5]) / 2 + C * (Z @ v[3:5] + v[5]).sum()

    sides = [
        {"type": "ineq", "fun": lambda v: y * (X @ v[:2] + v[2]) - 1 + Z @ v[3:5] + v[5]},
        {"type": "ineq", "fun": lambda v: Z @ v[3:5] + v[5]},
    ]
    start = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 2.0])
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = optimize.minimize(cost, start, constraints=sides, method="SLSQP", options=options)
    solution = solve_svm_plus(X @ X.T, Z @ Z.T, y, C=C, gamma=gamma)
    w = X.T @ (y * solution.alpha)
    correcting = Z.T @ (solution.alpha + solution.beta - C) / gamma
    np.testing.assert_allclose(w, found.x[:2], atol=1e-4)
    np.testing.assert_allclose(correcting, found.x[3:5], atol=1e-4)
    np.testing.assert_allclose(solution.slacks, Z @ found.x[3:5] + found.x[5], atol=1e-4)
    assert solution.b == pytest.approx(found.x[2], abs=1e-4)


def test_free_slacks_are_those_of_an_svm():
    """With privileged features that tell all rows apart and a tiny weight, it is a C-SVM."""
    for seed in range(3):
        K, _, y = problem(seed)
        solution = solve_svm_plus(K, np.eye(len(y)), y, C=2.0, gamma=1e-6)
        svc = SVC(C=2.0, kernel="precomputed", tol=1e-10).fit(K, y)
        np.testing.assert_allclose(solution.decision_values, svc.decision_function(K), atol=1e-3)


@pytest.mark.parametrize(("C", "gamma"), SETTINGS)
@pytest.mark.parametrize("singular", [False, True])
def test_a_weighted_svm_has_the_same_solution(C, gamma, singular):
    """With the costs alpha + beta, w is the same, and b is an optimal offset (Theorem 3)."""
    for seed in range(4):
        K, privileged, y = problem(seed, singular=singular)
        solution = solve_svm_plus(K, privileged, y, C=C, gamma=gamma)
        costs = solution.costs
        weighted = solve(Problem(K, y, costs))
        difference = y * (solution.alpha - weighted.alpha)
        size = np.sqrt(max(1.0, (y * weighted.alpha) @ K @ (y * weighted.alpha)))
        assert np.sqrt(max(0.0, difference @ K @ difference)) < 1e-5 * size

        def loss(b, weighted=weighted, costs=costs):
            values = weighted.decision_values - weighted.b + b
            return costs @ np.maximum(0, 1 - weighted.problem.y * values)

        assert loss(solution.b) <= loss(weighted.b) + 1e-5 * (1 + costs.sum())


@pytest.mark.parametrize(("C", "gamma"), SETTINGS)
def test_costs_are_higher_where_losses_are(C, gamma):
    """The mean hinge loss weighted by the costs is at least the plain mean (Lemma 1)."""
    for seed in range(6):
        K, privileged, y = problem(seed, singular=seed % 2 == 1)
        solution = solve_svm_plus(K, privileged, y, C=C, gamma=gamma)
        losses = np.maximum(0, 1 - y * solution.decision_values)
        assert solution.costs @ losses / solution.costs.sum() >= losses.mean() - 1e-6


def test_the_order_of_the_rows_does_not_matter():
    """The decision function is unique if there is a support vector (Theorem 2)."""
    K, privileged, y = problem(0)
    order = np.random.default_rng(1).permutation(len(y))
    one = solve_svm_plus(K, privileged, y, C=3.0, gamma=0.3)
    other = solve_svm_plus(
        K[np.ix_(order, order)], privileged[np.ix_(order, order)], y[order], C=3.0, gamma=0.3
    )
    assert one.is_support.any()
    np.testing.assert_allclose(other.decision_values, one.decision_values[order], atol=1e-6)
    assert "support vectors" in repr(one)
