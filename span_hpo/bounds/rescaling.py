"""The radius-margin value after the data are rescaled in feature space."""

import numpy as np

from span_hpo.kernels import is_held
from span_hpo.runtime import one_blas_thread, rows_of
from span_hpo.solver import DualSolution


@one_blas_thread
def rescaled_radius_margin(solution: DualSolution) -> float:
    """Return ``sum_k lambda_k^2 max_i A_ik^2 (sum_i A_ik y_i alpha_i)^2``.

    The columns of A are the orthonormal eigenvectors of the kernel matrix about the centroid of the
    rows, and ``lambda_k`` are its eigenvalues. A ball is a poor description of data that fill a
    flat ellipsoid. Therefore the data are rescaled along the axes of their covariance, so that they
    fill a box of side one: the k-th term is the squared product of the k-th coordinate of the
    weight vector and the largest k-th coordinate of a row.

    The paper states this for centred data and a hard margin. Here the centroid of the rows of
    positive cost is the origin of the feature space, which does not change the fit, costs do not
    change the axes, and the weight vector is that of the fit, with a soft margin too. As with
    `radius_margin`, only fits with one set of costs should be compared by it. Where eigenvalues
    coincide, the axes are not unique, and neither is the value. Time grows with the third power of
    the number of rows and memory with the second.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.

    Raises
    ------
    ValueError
        If the kernel matrix is not in memory.

    References
    ----------
    Chapelle and Vapnik, "Model selection for support vector machines", 1999, section 4.

    Examples
    --------
    The weight vector (1, 0) sees only the first coordinate, whose distance from the mean is 1. The
    distance of the second one, which `radius_margin` counts, is 2.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> points = [[-1, -2], [-1, 2], [1, -2], [1, 2]]
    >>> fit = solve(Problem(Linear()(points), y=[-1, -1, 1, 1], costs=[9] * 4))
    >>> round(bounds.rescaled_radius_margin(fit), 3), round(bounds.radius_margin(fit), 3)
    (1.0, 5.0)
    """
    problem = solution.problem
    if not is_held(problem.K):
        raise ValueError("`solution` must have a kernel matrix in memory, got one that has not.")
    rows = rows_of(problem.costs)
    G = np.array(problem.K.block(rows, rows))
    means = G.mean(axis=1)
    G -= means[:, None] + means - means.mean()
    eigenvalues, A = np.linalg.eigh(G)
    eigenvalues = np.maximum(eigenvalues, 0.0)  # those that rounding has made negative
    products = A.T @ (problem.y * solution.alpha)[rows]
    return float(np.sum((eigenvalues * np.abs(A).max(axis=0) * products) ** 2))
