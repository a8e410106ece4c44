"""Classical bounds and estimates of the leave-one-out error from one fit.

Each of them is a function of the solution of a two-class problem, as `solve` returns it, and
returns a share of all rows. A row with cost 0, which takes no part in the fit, always counts as an
error if the fit misclassifies it.

None of them is a proof for weighted fits; each docstring says why. The bounds that are proven are
in `LeaveOneOut.error_bounds`. Where a problem has several solutions, as with equal rows, these
functions describe the solution that was found.
"""

import numpy as np

from span_hpo.bounds.ball import fit_ball
from span_hpo.kernels import entry_range, is_held
from span_hpo.loo import box_squared_spans, largest_box_squared_span, span_exists
from span_hpo.runtime import BoolArray, FloatArray, real, rows_of
from span_hpo.solver import DualSolution, factored_gram


def support_vectors(solution: DualSolution) -> float:
    """Return the share ``n / l`` of the support vectors of a solution.

    This is a bound wherever the offset is unique, because the removal of any other row does not
    change the fit (Vapnik, "Statistical learning theory", 1998).

    Examples
    --------
    The points 0 and 2 are support vectors; the point 3, which lies behind 2, is not.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> problem = Problem(Linear()([[0], [2], [3]]), y=[-1, 1, 1], costs=[1, 1, 1])
    >>> round(bounds.support_vectors(solve(problem)), 3)
    0.667
    """
    return float(np.mean((solution.alpha > 0) | _is_outside_and_wrong(solution)))


def jaakkola_haussler(solution: DualSolution) -> float:
    """Return the share ``mean[alpha_p K_pp - y_p f(x_p) >= 0]`` of the rows of a solution.

    This is a bound for fits without an offset, and an estimate otherwise.

    References
    ----------
    Jaakkola and Haussler, "Probabilistic kernel regression models", 1999.

    Examples
    --------
    The points 0 and 2 have ``alpha_p = 1/2`` and ``y_p f(x_p) = 1``, and ``K_pp`` is 0 and 4.

    >>> from span_hpo import Problem, bounds, solve
    >>> bounds.jaakkola_haussler(solve(Problem([[0, 0], [0, 4]], y=[-1, 1], costs=[1, 1])))
    0.5
    """
    K_pp = solution.problem.K.diagonal()
    margins = solution.problem.y * solution.decision_values
    return float(np.mean(solution.alpha * K_pp - margins >= 0))


def opper_winther(solution: DualSolution) -> float:
    """Return ``mean[alpha_p / (K_SV^-1)_pp >= 1]`` over the kernel matrix of the support vectors.

    This is an estimate, which assumes that the support vectors stay the same, that all of them are
    at the margin, and that there is no offset. ``1 / (K_SV^-1)_pp`` is the squared distance of a
    row from the linear span of the others, which is the affine hull of these and the origin. Time
    grows with the third power of the number of support vectors and memory with the second,
    regardless of the memory limit. A kernel that is not positive semi-definite raises a
    `SolverError`.

    References
    ----------
    Opper and Winther, "Gaussian processes and SVM: mean field and leave-one-out", 2000.

    Examples
    --------
    Two orthogonal rows with the squared lengths 1 and 3 have ``alpha = 1/2``.

    >>> from span_hpo import Problem, bounds, solve
    >>> bounds.opper_winther(solve(Problem([[1, 0], [0, 3]], y=[-1, 1], costs=[1, 1])))
    0.5
    """
    support = rows_of(solution.alpha)
    with_origin = np.zeros((len(support) + 1, len(support) + 1))
    with_origin[:-1, :-1] = solution.problem.K.block(support, support)
    squared = factored_gram(with_origin).own_squared_distances()[:-1]
    is_error = _is_outside_and_wrong(solution)
    is_error[support] = solution.alpha[support] * squared >= 1
    return float(np.mean(is_error))


def xi_alpha(solution: DualSolution, *, spread: float | None = None) -> float:
    """Return ``mean[2 alpha_p R^2 + xi_p >= 1]`` with ``xi_p = max(0, 1 - y_p f(x_p))``.

    This is a bound if all costs are equal and some row is in-bound, and an estimate otherwise.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    spread
        Value of ``R^2`` such that ``c <= K(x, x') <= c + R^2`` for some c. The default is the least
        value for the rows of the fit: their largest kernel value minus their smallest.

    Raises
    ------
    ValueError
        If `spread` is not a number of at least 0.

    References
    ----------
    Joachims, "Estimating the generalization performance of an SVM efficiently", 2000; Yang et al.,
    "Confirming robustness of fuzzy support vector machine via xi-alpha bound", 2015.

    Examples
    --------
    The points 1 and 3 are at the margin, with ``alpha = 1/2``; kernel values range from 0 to 16.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> K = Linear()([[0], [1], [3], [4]])
    >>> solution = solve(Problem(K, y=[-1, -1, 1, 1], costs=[1, 1, 1, 1]))
    >>> bounds.xi_alpha(solution), bounds.xi_alpha(solution, spread=0.9)
    (0.5, 0.0)
    """
    if spread is None:
        least, largest = entry_range(solution.problem.K)
        spread = largest - least
    else:
        spread = real("spread", spread, at_least=0)
    slack = np.maximum(0.0, 1 - solution.problem.y * solution.decision_values)
    return float(np.mean(2 * solution.alpha * spread + slack >= 1))


def span_bound(solution: DualSolution, *, diameter: float | None = None) -> float:
    """Return ``(S sum_p max(D, 1 / sqrt(C_p)) alpha_p + k + m) / l``.

    The sum is over the in-bound rows p that have a box span (see `span_exists`), S is the largest
    of these spans, k is the number of other in-bound rows, m is the number of bounded rows, and D
    is the diameter of the smallest ball that holds all rows of positive cost. This is Theorem 1 of
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection". Its Lemma 2 can fail if a fit without p has no in-bound row, and the
    value is not proven then.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    diameter
        Diameter D, if it is known already. It depends only on the kernel; see `enclosing_ball`.

    Returns
    -------
    Bound on the share of errors, which may exceed 1.

    Raises
    ------
    ValueError
        If `diameter` is not a number of at least 0, or if it is not given and the kernel matrix is
        not in memory.
    SolverError
        If the kernel is not positive semi-definite, or a quadratic program cannot be solved.

    Examples
    --------
    The points 0 and 4 are in-bound with ``alpha = 1/40``, so that S and D are 4; the others are
    bounded.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> problem = Problem(Linear()([[0], [1], [3], [4]]), y=[-1, -1, 1, 1], costs=[0.2] * 4)
    >>> round(bounds.span_bound(solve(problem)), 3)
    0.7
    """
    return _span_bound(solution, diameter, np.sqrt(largest_box_squared_span(solution)))


def own_span_bound(solution: DualSolution, *, diameter: float | None = None) -> float:
    """Return ``(sum_p S_p max(D, 1 / sqrt(C_p)) alpha_p + k + m) / l``.

    Each in-bound row p counts with its own box span ``S_p`` instead of the largest one. The value
    is never larger than `span_bound`, whose proof passes through it (eq. 66 of the same paper), and
    takes more time, because all box spans of in-bound rows are computed.

    Parameters
    ----------
    solution
        Solution of a two-class problem, as `solve` returns it.
    diameter
        Diameter D, if it is known already. It depends only on the kernel; see `enclosing_ball`.

    Returns
    -------
    Bound on the share of errors, which may exceed 1. It is not proven where `span_bound` is not.

    Raises
    ------
    ValueError
        If `diameter` is not a number of at least 0, or if it is not given and the kernel matrix is
        not in memory.
    SolverError
        If the kernel is not positive semi-definite, or a quadratic program cannot be solved.

    Examples
    --------
    The point 0 can be replaced by the point 1, at the distance 1, but not the other way round.

    >>> from span_hpo import Linear, Problem, bounds, solve
    >>> problem = Problem(Linear()([[0], [1], [3]]), y=[-1, 1, -1], costs=[9, 9, 0.1])
    >>> round(bounds.own_span_bound(solve(problem)), 3)  # (3 * 2.2 + 2) / 3
    2.867
    """
    spans = np.sqrt(box_squared_spans(solution, in_bound_only=True))
    return _span_bound(solution, diameter, spans)


def _span_bound(solution: DualSolution, diameter: float | None, spans: float | FloatArray) -> float:
    """Return the span bound with one span for all rows, or with one for each row."""
    problem, alpha = solution.problem, solution.alpha
    if diameter is None and not is_held(problem.K):
        raise ValueError(
            "`diameter` must be given for a kernel matrix that is not in memory, got None."
        )
    if diameter is None:
        diameter = fit_ball(problem).diameter
    else:
        diameter = real("diameter", diameter, at_least=0)
    has_span = solution.in_bound & span_exists(solution)
    own = spans[has_span] if isinstance(spans, np.ndarray) else spans
    sizes = np.maximum(diameter, problem.costs[has_span] ** -0.5) * alpha[has_span]
    counted = (alpha > 0) & ~has_span | _is_outside_and_wrong(solution)
    return float((np.sum(own * sizes) + np.count_nonzero(counted)) / len(problem))


def _is_outside_and_wrong(solution: DualSolution) -> BoolArray:
    """Return a mask of the rows that take no part in the fit and are misclassified by it."""
    problem = solution.problem
    is_wrong: BoolArray = (problem.costs == 0) & (problem.y * solution.decision_values <= 0)
    return is_wrong
