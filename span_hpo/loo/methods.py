"""Leave-one-out: what the fit would say about each row without that row."""

from dataclasses import dataclass

import numpy as np

from span_hpo.loo.certificates import Proofs, certified
from span_hpo.loo.path import follow_rows
from span_hpo.loo.span_rule import free_squared_spans
from span_hpo.loo.stopping import stopped_rows
from span_hpo.runtime import (
    BoolArray,
    FloatArray,
    IndexArray,
    Printable,
    counted,
    one_blas_thread,
    read_only,
    rows_of,
    whole,
)
from span_hpo.solver import DualSolution, PairwiseSolution, is_wrong, solve, voted, zero_width

METHODS = ("span", "exact", "refit", "stopping")


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut(Printable):
    """Leave-one-out decision values of all rows.

    Attributes
    ----------
    y
        Labels, shape (l,), -1 or +1; the numbers of the classes if there are more than two.
    decision_values
        ``f^p(x_p)``: the decision value of row p by the model without row p, shape (l,); of k > 2
        classes one for each pair, shape (l, k (k - 1) / 2), positive for the second class. Where
        `exact` is False it is an estimate ("span"), a bound that proves its sign ("exact"), or the
        value of a classifier that is proven to have its sign ("stopping"): enough for errors, not
        for rankings.
    squared_spans
        Free squared spans, shaped as the values, NaN where undefined and 0 where a row takes no
        part; None for method "refit".
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
        """The leave-one-out error, ``mean(y f^p <= 0)``; of several classes, by their vote."""
        return float(np.mean(is_wrong(self.y, self.decision_values)))

    def _summary(self) -> tuple[str, dict[str, str]]:
        count = len(self.y)
        low, high = (f"{bound:.4f}" for bound in self.error_bounds)
        lines = {
            "error": f"{self.error:.4f} ({round(self.error * count):,} of {count:,})",
            "proven": f"{counted(int(self.certified.sum()), 'row')}: the error is "
            + (low if low == high else f"between {low} and {high}"),
            "exact values": counted(int(self.exact.sum()), "row"),
            "undefined spans": counted(self.n_undefined, "row"),
            "refitted": counted(self.n_refit, "row"),
        }
        return f"Leave-one-out by method {self.method!r}", lines


@one_blas_thread
def leave_one_out(
    solution: DualSolution | PairwiseSolution,
    method: str = "span",
    complete: bool = False,
    certify: bool = True,
    n_jobs: int = 1,
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
        A fit, or the fits of all pairs of several classes.
    method
        "span", "exact", "refit" or "stopping".
    complete
        For "exact" and "stopping": go on until the value itself is known, not only its sign.
    certify
        For "span": prove what the fit alone can prove. Without it the values are the same, and
        only zero rows and rows that follow their path are certified.
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
    if isinstance(solution, PairwiseSolution):
        found = [_answers(part, method, complete, certify, n_jobs) for part in solution.solutions]
        return _elected(solution, method, found)
    return _of_two_classes(solution, method, _answers(solution, method, complete, certify, n_jobs))


@dataclass(frozen=True, eq=False)
class _Answers:
    """What a method says about the rows of one fit.

    Attributes
    ----------
    proofs
        What is proven.
    values
        Decision values, proven or estimated, shape (l,).
    spans
        Free squared spans, if they were computed.
    refitted
        The rows that were refitted.
    """

    proofs: Proofs
    values: FloatArray
    spans: FloatArray | None
    refitted: IndexArray


def _answers(
    solution: DualSolution, method: str, complete: bool, certify: bool, n_jobs: int
) -> _Answers:
    """Answer for all rows of one fit."""
    spans = None if method == "refit" else free_squared_spans(solution)
    undefined = np.zeros(len(solution.alpha), dtype=bool) if spans is None else np.isnan(spans)
    optimal = solution.is_optimal
    proofs = _known(solution, optimal, zero_rows=method != "refit")
    if method == "stopping":
        proofs.put(proofs.open, stopped_rows(solution, proofs.open, complete=complete))
    elif (method == "span" and certify) or (method == "exact" and not complete):
        proofs.put(proofs.open, certified(solution, proofs.open))
    needed = rows_of(undefined & ~proofs.exact) if method == "span" else proofs.open
    if len(needed) and optimal and method in ("span", "exact"):
        to_end = complete or method == "span"
        proofs.put(needed, follow_rows(solution, needed, complete=to_end, threads=n_jobs))
        needed = needed[~proofs.proven[needed]]
    if len(needed):
        proofs.put(needed, _refitted(solution, needed))
    tiny = proofs.exact & (np.abs(proofs.margin) <= zero_width(solution.margin_noise))
    proofs.margin[tiny] = 0.0
    y = solution.problem.y
    values = y * proofs.margin
    if method == "span" and spans is not None:
        estimates = solution.decision_values - y * solution.alpha * spans
        values = np.where(proofs.exact | undefined, values, estimates)
    return _Answers(proofs, values, spans, refitted=needed)


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


def _of_two_classes(solution: DualSolution, method: str, found: _Answers) -> LeaveOneOut:
    """Return what was found for two classes."""
    proofs = found.proofs
    return LeaveOneOut(
        y=solution.problem.y,
        decision_values=read_only(found.values),
        squared_spans=found.spans,
        method=method,
        certified=read_only(proofs.proven),
        exact=read_only(proofs.exact),
        error_bounds=_error_bounds(proofs.proven, proofs.margin <= 0),
        n_undefined=0 if found.spans is None else int(np.count_nonzero(np.isnan(found.spans))),
        n_refit=len(found.refitted),
    )


def _elected(solution: PairwiseSolution, method: str, found: list[_Answers]) -> LeaveOneOut:
    """Return what was found for several classes.

    Without row p only the fits of its own class change. Its class is proven if these prove their
    votes, and the other fits are solved.
    """
    codes = solution.codes
    values, proven_values = solution.decision_values.copy(), solution.decision_values.copy()
    spans = None if method == "refit" else np.zeros(values.shape)
    optimal = all(part.is_optimal for part in solution.solutions)
    is_certified, exact = np.full(len(codes), optimal), np.full(len(codes), optimal)
    undefined, refitted = np.zeros((2, len(codes)), dtype=bool)
    for column, (rows, part, answer) in enumerate(
        zip(solution.rows, solution.solutions, found, strict=True)
    ):
        values[rows, column] = answer.values
        proven_values[rows, column] = part.problem.y * answer.proofs.margin
        is_certified[rows] &= answer.proofs.proven
        refitted[rows[answer.refitted]] = True
        exact[rows] &= answer.proofs.exact
        if spans is not None and answer.spans is not None:
            spans[rows, column] = answer.spans
            undefined[rows] |= np.isnan(answer.spans)
    return LeaveOneOut(
        y=codes.astype(float),
        decision_values=read_only(values),
        squared_spans=spans,
        method=method,
        certified=read_only(is_certified),
        exact=read_only(exact),
        error_bounds=_error_bounds(is_certified, voted(codes, proven_values) != codes),
        n_undefined=int(np.count_nonzero(undefined)),
        n_refit=int(np.count_nonzero(refitted)),
    )


def _error_bounds(proven: BoolArray, wrong: BoolArray) -> tuple[float, float]:
    """Return the least and the largest error that the proofs allow."""
    count, known_wrong = len(wrong), np.count_nonzero(proven & wrong)
    unproven = count - np.count_nonzero(proven)
    return known_wrong / count, (known_wrong + unproven) / count


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
        refit = solve(problem.without(p), tol=solution.tol, max_iter=solution.max_iter)
        proofs.margin[i] = problem.y[p] * refit.decision_values[p]
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
