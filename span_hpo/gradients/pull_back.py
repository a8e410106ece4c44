"""Derivatives of a loss of leave-one-out values, backwards through spans and the fit.

While no row changes its kind, the values of the span-rule are smooth functions of the kernel
matrix and of the costs. Let I be the in-bound and B the bounded rows, ``z = (beta_I, b)``,

    M z = r,    M = [[K_II, 1], [1', 0]],    r = (y_I - K_IB beta_B, -1' beta_B)
    f_j = K_jI beta_I + K_jB beta_B + b,     f^p(x_p) = f_p - beta_p S_p^2

With ``A = (M^-1)_II``, ``lambda_p`` the part of ``M^-1 (K_Ip, 1)`` in I, and ``beta_B = y_B C_B``,

    dz = M^-1 (dr - dM z)
    d(S_p^2) = (A dK_II A)_pp / A_pp^2                                      p in I
    d(S_p^2) = dK_pp - 2 lambda_p' dK_Ip + lambda_p' dK_II lambda_p         p in B

Backwards, let g be the derivatives of the loss by the values, and ``c_p = -g_p beta_p`` those by
the squared spans. One solve with M gives

    (omega, nu) = M^-1 (K_I. h - (g S^2)_I, 1' h),   h_j = g_j outside I
    h_I = -omega
    dL/dC_p = y_p ((K h)_p - nu - g_p S_p^2)                                p in B

and the weights of kernel values of `span_hpo.gradients.derivatives`, with

    Q_II = A diag(c_p / A_pp^2) A + sum_{p in B} c_p lambda_p lambda_p',    Q_pI = -2 c_p lambda_p

and ``s_p = c_p``. The cost is that of a few products of (l, n) matrices, whatever the number of
hyperparameters.

Where in-bound rows depend on each other, I is a set of independent rows among them. A row that is a
combination of others has span 0, and values depend only on ``sum_i beta_i x_i``, so that it does
not matter which of the optimal dual variables are reported.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import blas

from span_hpo.gradients.derivatives import Derivatives, NoGradientError
from span_hpo.kernels import KernelBlocks, first_equal_rows, kernel_times
from span_hpo.loo import free_squared_spans, independent_base
from span_hpo.runtime import FloatArray, IndexArray, rows_of
from span_hpo.solver import CentredGram, DualSolution

LEAST_IN_BOUND = 2  # number of in-bound rows without which spans are undefined


@dataclass(frozen=True, eq=False)
class Fit:
    """A fit of two classes among the rows of a kernel matrix, as derivatives need it.

    Attributes
    ----------
    solution
        The fit.
    K
        Kernel matrix of l rows, all or some of which the fit has used.
    rows
        Indices of the rows of the fit, in increasing order.
    base
        Indices of independent in-bound rows with the affine hull of all.
    gram
        Factored Gram matrix of the base.
    bounded
        Indices of the bounded rows.
    kernel_of_bounded
        Kernel values between the base and the bounded rows, shape (n, m).
    keeps_rank
        Whether in-bound rows are independent, but for equal ones.
    """

    solution: DualSolution
    K: KernelBlocks
    rows: IndexArray
    base: IndexArray
    gram: CentredGram
    bounded: IndexArray
    kernel_of_bounded: FloatArray
    keeps_rank: bool

    @classmethod
    def of(cls, solution: DualSolution, K: KernelBlocks, rows: IndexArray) -> "Fit":
        """Return a fit among the rows of a kernel matrix.

        Raises
        ------
        NoGradientError
            If fewer than two rows are in-bound.
        SolverError
            If the kernel is not positive semi-definite.
        """
        if solution.n_in_bound < LEAST_IN_BOUND:
            raise without_spans(solution.n_in_bound)
        in_bound = rows_of(solution.in_bound)
        base, gram = independent_base(solution)
        keeps_rank = len(base) == len(in_bound)
        if not keeps_rank:
            block = solution.problem.K.block(in_bound, in_bound)
            first = first_equal_rows(solution.problem.K, in_bound, block)
            keeps_rank = len(np.unique(first)) == len(base)
        bounded = rows_of(solution.bounded)
        between = solution.problem.K.block(base, bounded)
        return cls(solution, K, rows, rows[base], gram, rows[bounded], between, keeps_rank)

    def everywhere(self, values: FloatArray) -> FloatArray:
        """Return values of the rows of the fit among zeros for all others, shape (l,)."""
        found = np.zeros(len(self.K))
        found[self.rows] = values
        return found


class OfSpans(NamedTuple):
    """The weights of kernel values that come from spans; see `Derivatives`."""

    inner: IndexArray
    block: FloatArray
    own: FloatArray


def pulled_back(
    solution: DualSolution, K: KernelBlocks, rows: IndexArray, by_value: FloatArray
) -> Derivatives:
    """Return the derivatives of a loss by kernel values and costs from those by the values.

    Parameters
    ----------
    solution
        Fit of two classes.
    K
        Kernel matrix of l rows, all or some of which the fit has used.
    rows
        Indices of the rows of the fit.
    by_value
        Derivative of the loss by the leave-one-out value of each row of the fit, and by the plain
        decision value of each other row, shape (l,).

    Raises
    ------
    NoGradientError
        If fewer than two rows are in-bound.
    SolverError
        If the kernel is not positive semi-definite.
    """
    fit = Fit.of(solution, K, rows)
    spans = fit.everywhere(free_squared_spans(solution))
    by_value = of_moving_values(fit, by_value)
    by_span = -by_value * fit.everywhere(solution.problem.y * solution.alpha)
    weights = fit.gram.affine_weights(fit.kernel_of_bounded)
    base = fit.base
    A = fit.gram.precision() if len(base) > 1 else np.zeros((1, 1))
    needed = spans[base] > 0  # the span of a row that is a combination of others stays 0
    diagonal = np.where(needed, A.diagonal(), 1.0)
    scaled = np.where(needed, by_span[base] / diagonal**2, 0.0)
    block = block_of_spans(A, scaled, weights, by_span[fit.bounded])
    by_beta = -by_value * spans
    of_spans = OfSpans(base, block, by_span[fit.bounded])
    return through_solution(fit, by_value, by_beta[base], by_beta[fit.bounded], of_spans)


def without_spans(count: int) -> NoGradientError:
    """Return the error that says that a fit has too few in-bound rows for derivatives."""
    return NoGradientError(
        f"The fit has {count} in-bound support vectors, and derivatives of leave-one-out values "
        f"need at least {LEAST_IN_BOUND}."
    )


def of_moving_values(fit: Fit, by_value: FloatArray) -> FloatArray:
    """Return derivatives by values without that of a row whose removal leaves one class.

    The value of such a row is -y, whatever the hyperparameters are.
    """
    problem = fit.solution.problem
    moving = by_value.copy()
    for label in (-1.0, 1.0):
        of_class = rows_of((problem.y == label) & (problem.costs > 0))
        if len(of_class) == 1:
            moving[fit.rows[of_class]] = 0.0
    return moving


def block_of_spans(
    A: FloatArray, scaled: FloatArray, weights: FloatArray, by_bounded: FloatArray
) -> FloatArray:
    """Return the weights ``Q`` of kernel values that come from spans, shape (n + m, n).

    Because kernel matrices are symmetric, each pair of in-bound rows has its weight below the
    diagonal, and 0 above it. This takes half of the operations.

    Parameters
    ----------
    A
        The matrix ``A`` of n in-bound rows, shape (n, n).
    scaled
        Derivative of the loss by the squared span of each in-bound row over ``A_pp^2``, shape (n,).
    weights
        Weights ``lambda`` of the in-bound rows in the point closest to each bounded row, shape
        (n, m).
    by_bounded
        Derivative of the loss by the squared span of each bounded row, shape (m,).
    """
    n, m = weights.shape
    block = np.zeros((n + m, n))
    np.multiply(weights.T, -2 * by_bounded[:, None], out=block[n:])
    triangle = block[:n].T  # in Fortran order, so that BLAS can add to it
    for rows, factors in ((A, scaled), (weights.T, by_bounded)):
        for sign in (1.0, -1.0):
            chosen = rows_of(sign * factors > 0)
            if len(chosen):
                part = rows[chosen] * np.sqrt(np.abs(factors[chosen]))[:, None]
                blas.dsyrk(2 * sign, part.T, beta=1.0, c=triangle, overwrite_c=1)
    block[:n].reshape(-1)[:: n + 1] /= 2
    return block


def through_solution(
    fit: Fit,
    by_value: FloatArray,
    by_beta_base: FloatArray,
    by_beta_bounded: FloatArray,
    of_spans: OfSpans,
) -> Derivatives:
    """Return the derivatives through the solution and the spans.

    Parameters
    ----------
    fit
        The fit.
    by_value
        Derivative of the loss by the decision value of each row, shape (l,). Those of in-bound rows
        are ignored, because their decision values are -1 or 1.
    by_beta_base, by_beta_bounded
        Derivatives by ``beta`` of the base and of the bounded rows, besides those through decision
        values, shapes (n,) and (m,).
    of_spans
        Weights of kernel values that come from spans.
    """
    solution, problem = fit.solution, fit.solution.problem
    factors = by_value.copy()
    factors[fit.rows[solution.in_bound]] = 0.0
    nonzero = rows_of(factors)
    products = kernel_times(fit.K, nonzero, factors[nonzero])
    omega, nu = fit.gram.solve(products[fit.base] + by_beta_base, float(factors.sum()))
    factors[fit.base] = -omega
    moved = products[fit.bounded] - omega @ fit.kernel_of_bounded
    by_cost = np.zeros(len(fit.K))
    by_cost[fit.bounded] = problem.y[solution.bounded] * (moved - nu + by_beta_bounded)
    return Derivatives(
        by_cost=by_cost,
        factors=factors,
        beta=fit.everywhere(problem.y * solution.alpha),
        inner=of_spans.inner,
        bounded=fit.bounded,
        block=of_spans.block,
        own=of_spans.own,
        keeps_rank=fit.keeps_rank,
    )
