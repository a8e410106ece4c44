"""The methods of leave-one-out: what the fit would say about each row without that row."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from span_hpo.loo.certificates import certified
from span_hpo.loo.immediate import rows_known_at_once, rows_without_a_say
from span_hpo.loo.path import follow_rows
from span_hpo.loo.proofs import Proofs
from span_hpo.loo.result import LeaveOneOut, error_bounds
from span_hpo.loo.span_rule import free_squared_spans
from span_hpo.loo.stopping import stopped_rows
from span_hpo.runtime import FloatArray, IndexArray, one_blas_thread, read_only, rows_of, whole
from span_hpo.solver import DualSolution, PairwiseSolution, solve, voted, zero_width

METHODS = ("span", "exact", "refit", "stopping")


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
    answer, request = _ANSWERS[method], _Request(complete, certify, threads=n_jobs)
    if isinstance(solution, PairwiseSolution):
        return _elected(solution, method, [answer(part, request) for part in solution.solutions])
    return _of_two_classes(solution, method, answer(solution, request))


@dataclass(frozen=True)
class _Request:
    """What the user asked for beside the method; see `leave_one_out`."""

    complete: bool
    certify: bool
    threads: int


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
        Free squared spans, shape (l,), or None if they were not computed.
    refitted
        The rows that were refitted.
    """

    proofs: Proofs
    values: FloatArray
    spans: FloatArray | None
    refitted: IndexArray


def _by_span_rule(solution: DualSolution, request: _Request) -> _Answers:
    """Estimate all values from the spans; rows whose span is undefined follow their paths."""
    spans, proofs = free_squared_spans(solution), rows_known_at_once(solution)
    undefined = np.isnan(spans)
    if request.certify:
        proofs.put(proofs.open, certified(solution, proofs.open))
    to_follow = rows_of(undefined & ~proofs.exact)
    refitted = _follow_or_refit(solution, proofs, to_follow, to_end=True, threads=request.threads)
    estimates = solution.decision_values - solution.problem.y * solution.alpha * spans
    values = np.where(proofs.exact | undefined, _proven_values(solution, proofs), estimates)
    return _Answers(proofs, values, spans, refitted)


def _by_paths(solution: DualSolution, request: _Request) -> _Answers:
    """Prove the class of every row, by certificates and along dual paths."""
    spans, proofs = free_squared_spans(solution), rows_known_at_once(solution)
    if not request.complete:
        proofs.put(proofs.open, certified(solution, proofs.open))
    refitted = _follow_or_refit(
        solution, proofs, proofs.open, to_end=request.complete, threads=request.threads
    )
    return _Answers(proofs, _proven_values(solution, proofs), spans, refitted)


def _by_stopped_fits(solution: DualSolution, request: _Request) -> _Answers:
    """Fit without each row until its class is proven."""
    spans, proofs = free_squared_spans(solution), rows_known_at_once(solution)
    proofs.put(proofs.open, stopped_rows(solution, proofs.open, complete=request.complete))
    refitted = _refit(solution, proofs, proofs.open)
    return _Answers(proofs, _proven_values(solution, proofs), spans, refitted)


def _by_refits(solution: DualSolution, request: _Request) -> _Answers:
    """Fit without each row, by brute force."""
    proofs = rows_without_a_say(solution)
    refitted = _refit(solution, proofs, proofs.open)
    return _Answers(proofs, _proven_values(solution, proofs), None, refitted)


_ANSWERS: dict[str, Callable[[DualSolution, _Request], _Answers]] = {
    "span": _by_span_rule,
    "exact": _by_paths,
    "refit": _by_refits,
    "stopping": _by_stopped_fits,
}


def _follow_or_refit(
    solution: DualSolution, proofs: Proofs, rows: IndexArray, *, to_end: bool, threads: int
) -> IndexArray:
    """Enter what the paths of some rows prove; return the rows that had to be refitted."""
    if len(rows) and solution.is_optimal:
        proofs.put(rows, follow_rows(solution, rows, complete=to_end, threads=threads))
        rows = rows[~proofs.proven[rows]]
    return _refit(solution, proofs, rows)


def _refit(solution: DualSolution, proofs: Proofs, rows: IndexArray) -> IndexArray:
    """Enter what polished fits without each of some rows say about it; return these rows."""
    problem = solution.problem
    for p in rows:
        refit = solve(problem.without(p), tol=solution.tol, max_iter=solution.max_iter)
        proofs.margin[p] = problem.y[p] * refit.decision_values[p]
        proofs.exact[p] = proofs.proven[p] = refit.is_optimal
    return rows


def _proven_values(solution: DualSolution, proofs: Proofs) -> FloatArray:
    """Return the decision values that are entered, exact ones within rounding of 0 as 0."""
    tiny = proofs.exact & (np.abs(proofs.margin) <= zero_width(solution.margin_noise))
    proofs.margin[tiny] = 0.0
    values: FloatArray = solution.problem.y * proofs.margin
    return values


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
        error_bounds=error_bounds(proofs.proven, proofs.margin <= 0),
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
        error_bounds=error_bounds(is_certified, voted(codes, proven_values) != codes),
        n_undefined=int(np.count_nonzero(undefined)),
        n_refit=int(np.count_nonzero(refitted)),
    )
