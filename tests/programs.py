"""Quadratic programs by PIQP, which the tests compare fits and balls with."""

import numpy as np
import piqp


def minimiser(P, c, a, b, upper=np.inf):
    """Return the minimiser of ``x'P x / 2 + c'x`` over ``a'x = b``, ``0 <= x <= upper``."""
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-11
    solver.settings.max_iter = 1000
    solver.setup(
        P=np.asfortranarray(P),
        c=c,
        A=np.asfortranarray(a[None, :]),
        b=np.array([b]),
        x_l=np.zeros(len(c)),
        x_u=np.full(len(c), upper) if np.isscalar(upper) else upper,
    )
    assert solver.solve() == piqp.PIQP_SOLVED
    return solver.result.x


def squared_radius(K):
    """Return the squared radius of the smallest ball around the rows of a kernel matrix."""
    unit = np.abs(K).max() or 1.0
    beta = minimiser(2 * K / unit, -K.diagonal() / unit, np.ones(len(K)), 1.0)
    beta = np.maximum(beta, 0) / np.maximum(beta, 0).sum()
    return max(0.0, float(beta @ K.diagonal() - beta @ K @ beta))


def hard_margin(K, y):
    """Return the dual variables of an SVM with a hard margin."""
    # The dual variables have the size of the inverse of a squared distance.
    unit = np.trace(K) / len(K)
    return minimiser(K * np.outer(y, y) / unit, -np.ones(len(y)), y, 0.0) / unit


def l2_svm(K, y, costs):
    """Return the dual variables of the L2-SVM, a hard margin on ``K + diag(1 / C_i)``."""
    return hard_margin(K + np.diag(1 / costs), y)


def optimum(K, y, costs):
    """Return ``|w|^2 + 2 sum_i C_i xi_i``, twice the optimal value of an SVM."""
    Q = K * np.outer(y, y)
    unit = costs.max()
    alpha = unit * minimiser(Q * unit, -np.ones(len(y)), y, 0.0, costs / unit)
    return float(2 * alpha.sum() - alpha @ Q @ alpha)
