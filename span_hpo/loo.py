"""Leave-one-out: what the fit would say about each row without that row."""

from dataclasses import dataclass

import numpy as np

from span_hpo.arrays import BoolArray, FloatArray, IndexArray, read_only
from span_hpo.certificates import Proofs, certified
from span_hpo.checks import whole
from span_hpo.exact import follow_rows
from span_hpo.polish import zero_width
from span_hpo.solver import DualSolution, solve
from span_hpo.spans import free_squared_spans
from span_hpo.stopping import stopped_rows
from span_hpo.threads import one_blas_thread

METHODS = ("span", "exact", "refit", "stopping")


@dataclass(frozen=True, eq=False)
class LeaveOneOut:
    """Leave-one-out decision values of all rows.

    Attributes
    ----------
    y
        Labels, shape (l,), -1 or +1.
    decision_values
        ``f^p(x_p)``: the decision value of row p by the model without row p, shape (l,). Where
        `exact` is False it is an estimate ("span"), a bound that proves its sign ("exact"), or the
        value of a classifier that is proven to have its sign ("stopping"): enough for errors, not
        for rankings.
    squared_spans
        Free squared spans, shape (l,), NaN where undefined; None for method "refit".
    method
        How the values were computed.
    certified
        Mask of the rows whose leave-one-out class is proven; all of them for other methods than
        "span", unless even a refit does not converge.
    exact
        Mask of the rows whose value is known: it solves the problem without the row, up to
        rounding.
    error_bounds
        The least and the largest leave-one-out error that is possible after what is proven.
    n_undefined
        Number of rows whose span is undefined.
    n_refit
        Number of rows answered by a refit.
    """

    y: FloatArray
    decision_values: FloatArray
    squared_spans: FloatArray | None
    method: str
    certified: BoolArray
    exact: BoolArray
    error_bounds: tuple[float, float]
    n_undefined: int
    n_refit: int

    @property
    def error(self) -> float:
        """The leave-one-out error, ``mean(y f^p <= 0)``."""
        return float(np.mean(self.y * self.decision_values <= 0))


@one_blas_thread
def leave_one_out(
    solution: DualSolution, method: str = "span", complete: bool = False, n_jobs: int = 1
) -> LeaveOneOut:
    """Find the decision value that every row would get if it were left out.

    - "span": the span-rule ``f^p(x_p) = f(x_p) - y_p alpha_p S_p^2`` with the free span, an
      estimate that is exact where the removal of p changes no set. A row whose span is undefined
      follows its dual path. What the fit alone proves is told by `LeaveOneOut.certified` and
      `LeaveOneOut.error_bounds`.
    - "exact": the class of every row is proven, by a certificate or along its dual path.
    - "refit": one fit for each row, by brute force: the measure of everything else.
    - "stopping": a fit for each row that the fit of all leaves open, stopped when its answer is
      proven. The best that was published, to compare with; slower than "exact".

    In all of them a row whose removal leaves one class is an error, ``f^p(x_p) = -y_p``, and a
    row with cost 0 keeps ``f(x_p)``; so does any zero row if the offset is unique. Rows that cannot
    be proven in another way are refitted.

    Parameters
    ----------
    solution
        A fit.
    method
        "span", "exact", "refit" or "stopping".
    complete
        For "exact" and "stopping": go on until the value itself is known, not only its sign.
    n_jobs
        Threads that follow dual paths, if Numba is installed. More than one pays for a single large
        fit; in a search it is better to run trials in parallel.

    Returns
    -------
    The leave-one-out values.

    Raises
    ------
    ValueError
        If the method is unknown, or `n_jobs` is not a positive number.
    SolverError
        For all but "refit", if the kernel is seen not to be positive semi-definite, which all
        proofs assume: a pivot or a squared distance is negative. It is not searched for.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", Theorem 2.
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {list(METHODS)}, got {method!r}.")
    n_jobs = whole("n_jobs", n_jobs, at_least=1)
    spans = None if method == "refit" else free_squared_spans(solution)
    undefined = np.zeros(len(solution.alpha), dtype=bool) if spans is None else np.isnan(spans)
    optimal = solution.is_optimal
    proofs = _known(solution, optimal, zero_rows=method != "refit")
    if method == "stopping":
        proofs.put(proofs.open, stopped_rows(solution, proofs.open, complete=complete))
    elif method == "span" or (method == "exact" and not complete):
        proofs.put(proofs.open, certified(solution, proofs.open))
    needed = np.flatnonzero(undefined & ~proofs.exact) if method == "span" else proofs.open
    if optimal and method in ("span", "exact"):
        to_end = complete or method == "span"
        proofs.put(needed, follow_rows(solution, needed, complete=to_end, threads=n_jobs))
        needed = needed[~proofs.proven[needed]]
    proofs.put(needed, _refitted(solution, needed))
    return _summary(solution, method, proofs, spans, n_refit=len(needed))


def _known(solution: DualSolution, optimal: bool, *, zero_rows: bool) -> Proofs:
    """Return what needs no computation: lone rows, rows with cost 0, zero rows at the optimum."""
    y, f = solution.problem.y, solution.decision_values
    proofs = Proofs.none(len(y))
    known = solution.problem.costs == 0
    if zero_rows and optimal:
        known = solution.alpha == 0
        f = _zero_row_values(solution)
    proofs.margin[known] = (y * f)[known]
    proofs.exact[known] = proofs.proven[known] = optimal
    alone = _last_of_class(solution)
    proofs.margin[alone] = -1.0
    proofs.exact[alone] = proofs.proven[alone] = True
    return proofs


def _summary(
    solution: DualSolution, method: str, proofs: Proofs, spans: FloatArray | None, n_refit: int
) -> LeaveOneOut:
    """Return the values that the method gives, and what is proven of them."""
    y = solution.problem.y
    tiny = proofs.exact & (np.abs(proofs.margin) <= zero_width(solution.margin_noise))
    proofs.margin[tiny] = 0.0
    values = y * proofs.margin
    if method == "span":
        assert spans is not None
        estimates = solution.decision_values - y * solution.alpha * spans
        values = np.where(proofs.exact | np.isnan(spans), values, estimates)
    wrong = proofs.margin <= 0
    return LeaveOneOut(
        y=y,
        decision_values=read_only(values),
        squared_spans=spans,
        method=method,
        certified=read_only(proofs.proven),
        exact=read_only(proofs.exact),
        error_bounds=(
            float(np.mean(proofs.proven & wrong)),
            float(np.mean(~proofs.proven | wrong)),
        ),
        n_undefined=0 if spans is None else int(np.count_nonzero(np.isnan(spans))),
        n_refit=n_refit,
    )


def _last_of_class(solution: DualSolution) -> BoolArray:
    """Tell which rows are the only ones of their class that take part in the fit."""
    kept, positive = solution.problem.costs > 0, solution.problem.y > 0
    alone = np.zeros(len(kept), dtype=bool)
    for of_class in (kept & positive, kept & ~positive):
        if np.count_nonzero(of_class) == 1:
            alone |= of_class
    return alone


def _refitted(solution: DualSolution, rows: IndexArray) -> Proofs:
    """Return what polished fits without each of the rows say about it."""
    problem = solution.problem
    proofs = Proofs.none(len(rows))
    for i, p in enumerate(rows):
        others: IndexArray = np.delete(np.arange(len(problem)), p)
        refit = solve(problem.take(others), tol=solution.tol, max_iter=solution.max_iter)
        K_p = problem.K.block(np.array([p]), others)[0]
        value = float(K_p @ (refit.problem.y * refit.alpha)) + refit.b
        proofs.margin[i] = problem.y[p] * value
        proofs.exact[i] = proofs.proven[i] = refit.is_optimal
    return proofs


def _zero_row_values(solution: DualSolution) -> FloatArray:
    """Return the decision values of zero rows when they are left out, shape (l,).

    Without a zero row the dual variables stay. If no row is in-bound the interval of optimal
    offsets may widen to the second strictest limit; its middle is taken, as LIBSVM does.
    """
    values = solution.decision_values
    if solution.in_bound.any():
        return values
    limits = solution.offset_limits
    lower, upper = limits.lower, limits.upper
    second_lower, strictest_lower = np.sort(lower)[-2:]
    strictest_upper, second_upper = np.sort(upper)[:2]
    without_lower = np.where(lower == strictest_lower, second_lower, strictest_lower)
    without_upper = np.where(upper == strictest_upper, second_upper, strictest_upper)
    middle: FloatArray = (without_lower + without_upper) / 2
    return values + (middle - solution.b)
