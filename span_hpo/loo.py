"""Leave-one-out: what the fit would say about each row without that row."""

from dataclasses import dataclass

import numpy as np

from span_hpo.arrays import BoolArray, FloatArray, IndexArray, read_only
from span_hpo.solver import DualSolution, solve
from span_hpo.spans import free_squared_spans
from span_hpo.threads import one_blas_thread

METHODS = ("span", "refit")


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out decision values of all rows.

    Attributes
    ----------
    y
        Labels, shape (l,), -1 or +1.
    decision_values
        ``f^p(x_p)``: the decision value of row p by the model without row p, shape (l,).
    squared_spans
        Free squared spans, shape (l,), NaN where undefined; None for method "refit".
    method
        How the values were computed.
    n_undefined
        Number of rows whose span is undefined.
    n_refit
        Number of rows answered by a refit.
    """

    y: FloatArray
    decision_values: FloatArray
    squared_spans: FloatArray | None
    method: str
    n_undefined: int
    n_refit: int

    @property
    def error(self) -> float:
        """The leave-one-out error, ``mean(y f^p <= 0)``."""
        return float(np.mean(self.y * self.decision_values <= 0))


@one_blas_thread
def leave_one_out(solution: DualSolution, method: str = "span") -> LeaveOneOut:
    """Estimate the decision value that every row would get if it were left out.

    - "span": ``f^p(x_p) = f(x_p) - y_p alpha_p S_p^2`` with the free span. Exact where the removal
      of p changes no set; zero rows keep ``f(x_p)``. A row whose span is undefined is refitted.
    - "refit": one fit for each row, by brute force. Exact, and the measure of everything else.

    In both, a row whose removal leaves one class is an error, ``f^p(x_p) = -y_p``, and a row with
    cost 0 keeps ``f(x_p)``.

    Parameters
    ----------
    solution
        A fit.
    method
        "span" or "refit".

    Returns
    -------
    The leave-one-out values.

    Raises
    ------
    ValueError
        If the method is unknown.
    SolverError
        For "span", if the kernel is not positive semi-definite.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", Theorem 2.
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {list(METHODS)}, got {method!r}.")
    y = solution.problem.y
    alone = _last_of_class(solution)
    squared_spans = free_squared_spans(solution) if method == "span" else None
    if squared_spans is None:
        values = solution.decision_values.copy()
        undefined = np.zeros(len(y), dtype=bool)
        refitted = (solution.problem.costs > 0) & ~alone
    else:
        values = _span_values(solution, squared_spans)
        undefined = np.isnan(squared_spans)
        refitted = undefined & ~alone
    values[alone] = -y[alone]
    for p in np.flatnonzero(refitted):
        values[p] = _refitted_value(solution, int(p))
    return LeaveOneOut(
        y=y,
        decision_values=read_only(values),
        squared_spans=squared_spans,
        method=method,
        n_undefined=int(np.count_nonzero(undefined)),
        n_refit=int(np.count_nonzero(refitted)),
    )


def _span_values(solution: DualSolution, squared_spans: FloatArray) -> FloatArray:
    """Return ``f(x_p) - y_p alpha_p S_p^2``, NaN where the span is undefined."""
    shift = solution.problem.y * solution.alpha * squared_spans
    values: FloatArray = solution.decision_values - shift
    if not solution.in_bound.any():
        zero = solution.alpha == 0
        values[zero] += _offsets_without(solution)[zero] - solution.b
    return values


def _last_of_class(solution: DualSolution) -> BoolArray:
    """Tell which rows are the only ones of their class that take part in the fit."""
    kept, positive = solution.problem.costs > 0, solution.problem.y > 0
    alone = np.zeros(len(kept), dtype=bool)
    for of_class in (kept & positive, kept & ~positive):
        if np.count_nonzero(of_class) == 1:
            alone |= of_class
    return alone


def _refitted_value(solution: DualSolution, p: int) -> float:
    """Return the decision value of row p by the polished fit of all others."""
    problem = solution.problem
    others: IndexArray = np.delete(np.arange(len(problem)), p)
    refit = solve(problem.take(others), tol=solution.tol, max_iter=solution.max_iter)
    K_p = problem.K.block(np.array([p]), others)[0]
    return float(K_p @ (refit.problem.y * refit.alpha)) + refit.b


def _offsets_without(solution: DualSolution) -> FloatArray:
    """Return, for every zero row, the offset when that row is left out, shape (l,).

    Without a zero row the dual variables stay; only the interval of optimal offsets may widen to
    the second strictest limit. Its middle is taken, as LIBSVM does.
    """
    limits = solution.offset_limits
    lower, upper = limits.lower, limits.upper
    second_lower, strictest_lower = np.sort(lower)[-2:]
    strictest_upper, second_upper = np.sort(upper)[:2]
    without_lower = np.where(lower == strictest_lower, second_lower, strictest_lower)
    without_upper = np.where(upper == strictest_upper, second_upper, strictest_upper)
    middle: FloatArray = (without_lower + without_upper) / 2
    return middle
