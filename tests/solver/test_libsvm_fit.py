import numpy as np
import pytest
from sklearn.svm import SVC

import span_hpo.solver.libsvm_fit as libsvm_module
from span_hpo import Problem, solve
from span_hpo.runtime import interpreted
from tests.problems import moons_problem, rbf


def test_alpha_above_its_cost_by_the_last_bit():
    """LIBSVM may return alpha one bit above the cost; the row is bounded all the same."""
    for seed in (53, 246, 326, 327, 373, 566):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(12, 2))
        x[6:] = x[:6]
        y = np.where(x[:, 0] + rng.normal(size=12) > 0, 1.0, -1.0)
        costs = rng.uniform(0.1, 0.9) * rng.integers(1, 4, 12)
        problem = Problem(rbf(x, 1e-5), y, costs)
        assert (solve(problem, polish=False).alpha <= costs).all()
        assert solve(problem).kkt_violation() < 1e-9


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e50, 1e200])
def test_kernels_beyond_single_precision(size):
    """LIBSVM keeps kernel values in single precision; others are brought into its range."""
    problem = moons_problem(40, cost=2.0)
    scaled = solve(Problem(size * problem.K.values, problem.y, problem.costs / size))
    plain = solve(problem)
    np.testing.assert_allclose(scaled.decision_values, plain.decision_values, atol=1e-9)
    np.testing.assert_allclose(size * scaled.alpha, plain.alpha, rtol=1e-6, atol=1e-9)


def test_unpolished_fit_is_scikit_learns():
    """Without polish, alpha and the decision values are those of a weighted SVC."""
    problem = moons_problem(80, cost=3.0)
    solution = solve(problem, polish=False)
    svc = SVC(C=1.0, kernel="precomputed").fit(
        problem.K.values, problem.y, sample_weight=problem.costs
    )
    alpha = np.zeros(80)
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    np.testing.assert_allclose(solution.alpha, alpha, atol=5e-3)
    np.testing.assert_allclose(
        solution.decision_values, svc.decision_function(problem.K.values), atol=2e-3
    )
    assert 1e-9 < solution.kkt_violation() < 2e-3


def test_private_and_public_libsvm_give_the_same(monkeypatch):
    """The fast call is used on this scikit-learn, and the fall-back gives the same solution."""
    assert libsvm_module.checked_private_fit() is not None
    problem = moons_problem(60, cost=10.0)
    with interpreted():
        fast = solve(problem)
        monkeypatch.setattr(libsvm_module, "checked_private_fit", lambda: None)
        slow = solve(problem)
    np.testing.assert_array_equal(fast.alpha, slow.alpha)
    assert fast.b == slow.b


@pytest.mark.parametrize("change", ["missing", "raises", "different"])
def test_changed_private_function_is_not_used(monkeypatch, change):
    """A private function that is gone, fails or answers otherwise is left alone."""
    from sklearn.svm import _libsvm

    original = _libsvm.fit
    if change == "missing":
        monkeypatch.delattr(_libsvm, "fit")
    elif change == "raises":
        monkeypatch.setattr(_libsvm, "fit", lambda *a, **k: 1 / 0)
    else:
        # The public class calls it too, but with a class_weight.
        def other(*args, **kwargs):
            found = list(original(*args, **kwargs))
            if "class_weight" not in kwargs:
                found[3] = 2 * found[3]
            return tuple(found)

        monkeypatch.setattr(_libsvm, "fit", other)
    if change != "different":
        monkeypatch.setattr(libsvm_module, "_public_fit", lambda *a: (None, None, True))
    assert libsvm_module.checked_private_fit.__wrapped__() is None
