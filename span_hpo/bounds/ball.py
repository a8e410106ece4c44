"""The smallest ball around the rows of a kernel matrix in feature space.

With ``Q_ij = K_ij - (K_ii + K_jj) / 2``, which is minus half of a squared distance, the squared
radius is the maximum of ``-beta'Q beta`` over ``sum(beta) = 1, beta >= 0``. LIBSVM's one-class
problem has this minimum of ``beta'Q beta`` within a tolerance, and an active-set method goes on to
the minimum in double precision, on which derivatives of the radius depend.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.kernels import ALL, KernelBlocks, as_kernel_blocks, first_equal_rows, is_held
from span_hpo.runtime import FloatArray, IndexArray, check_time, one_blas_thread, read_only, rows_of
from span_hpo.solver import (
    DEFAULT_MAX_ITER,
    INDEFINITE,
    Problem,
    factored_gram,
    one_class_weights,
)

_TOLERANCE = 1e-6  # LIBSVM's tolerance of squared distances, relative to the largest of two rows
_ROUNDING = 1e-13  # the same for the active-set method, which ends when no row is farther outside
_ROUNDS = 200  # largest number of rounds of the active-set method, which usually needs a few


@dataclass(frozen=True, eq=False)
class EnclosingBall:
    """The smallest ball that holds all rows in feature space.

    Attributes
    ----------
    squared_radius
        Squared radius, ``R^2 = max_beta sum_i beta_i K_ii - beta' K beta`` over
        ``sum(beta) = 1, beta >= 0``.
    weights
        Maximiser ``beta``, shape (l,). The centre of the ball is ``sum_i beta_i x_i``. Of equal
        rows, only the first has a weight.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo import bounds
    >>> ball = bounds.EnclosingBall(squared_radius=4.0, weights=np.array([0.5, 0.5]))
    >>> ball.radius, ball.diameter
    (2.0, 4.0)
    """

    squared_radius: float
    weights: FloatArray

    @property
    def radius(self) -> float:
        """The radius ``R``."""
        return float(np.sqrt(self.squared_radius))

    @property
    def diameter(self) -> float:
        """The diameter ``D = 2 R``."""
        return 2 * self.radius


def fit_ball(problem: Problem, ball: EnclosingBall | None = None) -> EnclosingBall:
    """Return the smallest ball around the rows that take part in a fit.

    Parameters
    ----------
    problem
        Problem whose rows of positive cost the ball must hold.
    ball
        This ball, if it is known already: it is then returned as it is.

    Raises
    ------
    ValueError
        If the ball is not given and the kernel matrix is not in memory.
    """
    if ball is not None:
        return ball
    if not is_held(problem.K):
        raise ValueError(
            "`ball` must be given for a kernel matrix that is not in memory, got None."
        )
    kept = rows_of(problem.costs)
    if len(kept) == len(problem):
        return enclosing_ball(problem.K)
    found = enclosing_ball(problem.K.take(kept))
    weights = np.zeros(len(problem))
    weights[kept] = found.weights
    return EnclosingBall(found.squared_radius, read_only(weights))


@one_blas_thread
def enclosing_ball(K: Any) -> EnclosingBall:
    """Return the smallest ball around the rows of a kernel matrix.

    The radius and the weights have double precision, apart from the rounding of the kernel matrix.
    Where this rounding makes distances inconsistent, they may have LIBSVM's tolerance only, a
    relative 1e-6.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), or an object that gives blocks of it.

    Returns
    -------
    The ball, with its radius and the weights of its centre.

    Raises
    ------
    TypeError, ValueError
        If K is not a kernel matrix, or does not fit into memory.
    SolverError
        If K is not positive semi-definite, or LIBSVM does not finish.

    Examples
    --------
    >>> from span_hpo import Linear, bounds
    >>> ball = bounds.enclosing_ball(Linear()([[0], [1], [4]]))
    >>> round(ball.radius, 3), ball.weights.round(3).tolist()
    (2.0, [0.5, 0.0, 0.5])
    """
    blocks: KernelBlocks = as_kernel_blocks(K)
    if not len(blocks):
        raise ValueError("`K` must have at least one row, got none.")
    if not is_held(blocks):
        raise ValueError(
            "`K` must be a kernel matrix that fits into memory, got one that does not."
        )
    values, diagonal = blocks.block(ALL, ALL), blocks.diagonal()
    Q = values - (diagonal[:, None] + diagonal) / 2
    farthest, size = -float(Q.min()), float(np.abs(diagonal).max())
    if float(Q.max()) > INDEFINITE * size:
        raise SolverError(
            "The kernel matrix is not positive semi-definite (a squared distance is "
            f"{-2 * float(Q.max()):.3g}), so there is no enclosing ball."
        )
    if farthest <= np.finfo(float).eps * size:  # all rows are the same
        weights = np.zeros(len(Q))
        weights[0] = 1.0
        return EnclosingBall(0.0, read_only(weights))
    Q /= farthest
    Q += 1.0  # between 0 and 1, which suits LIBSVM's single precision
    rough = one_class_weights(Q, _TOLERANCE, DEFAULT_MAX_ITER)
    first = first_equal_rows(blocks, np.arange(len(Q)), values)
    beta: FloatArray = np.bincount(first, rough, minlength=len(Q)).astype(float)
    distinct = rows_of(first == np.arange(len(Q)))
    beta = _polished(Q, beta, distinct, _ROUNDING * max(1.0, size / farthest))
    used = rows_of(beta)
    squared = farthest * (1 - float(beta[used] @ Q[np.ix_(used, used)] @ beta[used]))
    return EnclosingBall(max(0.0, squared), read_only(beta))


def _polished(Q: FloatArray, beta: FloatArray, distinct: IndexArray, tol: float) -> FloatArray:
    """Return the minimiser of ``beta'Q beta`` by an active-set method.

    Each round either moves to the minimum on the working set, after which rows outside the ball
    join, or to the first weight on the way that becomes zero, whose row then leaves.

    Parameters
    ----------
    Q
        Matrix with a unit diagonal, shape (l, l).
    beta
        Weights to start with, shape (l,).
    distinct
        Rows that are no copies of others.
    tol
        Excess of a squared distance from the centre over the squared radius to stop at.
    """
    working = rows_of(beta)
    one_by_one = False
    for _ in range(_ROUNDS):
        check_time()
        start = beta[working]
        try:
            target, _ = factored_gram(Q[np.ix_(working, working)]).solve(
                np.zeros(len(working)), 1.0
            )
        except SolverError:
            return beta  # distances that rounding has made inconsistent
        falls = target < 0
        if falls.any():
            share = np.full(len(start), np.inf)
            share[falls] = start[falls] / (start[falls] - target[falls])
            step = float(share.min())
            one_by_one |= step == 0
            moved = np.maximum(start + step * (target - start), 0.0)
            moved[share <= step] = 0.0
        else:
            moved = target
        beta = np.zeros(len(Q))
        beta[working] = moved / moved.sum()
        if falls.any():
            working = working[~(share <= step)]
            continue
        # Half the excess of the squared distance from the centre over the squared radius.
        F = Q[distinct[:, None], working] @ beta[working]
        outside = float(beta[distinct] @ F) - F
        outside[np.isin(distinct, working)] = 0.0
        if outside.max() <= tol:
            return beta
        joining = [outside.argmax()] if one_by_one else rows_of(outside > tol)
        working = np.sort(np.append(working, distinct[joining]))
    return beta
