"""The methods that compute leave-one-out decision values."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.kernels import ALL
from span_hpo.loo.accurate import accurate_value
from span_hpo.loo.elsewhere import values_elsewhere
from span_hpo.loo.ends import proven_values
from span_hpo.loo.immediate import fit_proofs, immediate_proofs, proofs_by_definition
from span_hpo.loo.path import follow_rows
from span_hpo.loo.proofs import ACCURATE, Proofs
from span_hpo.loo.result import LeaveOneOut, error_bounds
from span_hpo.loo.span_rule import as_spans, free_squared_spans
from span_hpo.loo.stopping import alpha_without, stopped_rows
from span_hpo.runtime import (
    BoolArray,
    FloatArray,
    IndexArray,
    check_time,
    one_blas_thread,
    read_only,
    rows_of,
    thread_count,
)
from span_hpo.solver import (
    DualSolution,
    PairwiseSolution,
    Problem,
    check_definite,
    decided,
    solve,
    voted,
    zero_width,
)

_WANTED = 1e-6  # accuracy, in units of the margin, to which the ends of paths are improved
_TWO_OF_EACH = 4  # the sum of l labels, -1 and +1, is at most l - 4 with two rows in each class
_FEW_UNDEFINED = 64  # largest number of rows without a span whose paths are followed to the end
_FEW_ROWS = 4  # number of rows that are not worth a search for equal ones
_RESOLVED = 1e-9  # accuracy, in units of the margin, that a refit would not improve


@one_blas_thread
def leave_one_out(
    solution: DualSolution | PairwiseSolution,
    method: str = "span",
    complete: bool = False,
    certify: bool = True,
    n_jobs: int = 1,
    spans: str = "closed",
) -> LeaveOneOut:
    """Compute the decision value that every row would get from a fit without that row.

    - "span": the span-rule ``f^p(x_p) = f(x_p) - y_p alpha_p S_p^2`` with the free span. It is an
      estimate, and exact if the removal of p changes neither the in-bound nor the bounded set. A
      row whose span is undefined follows its dual path to its end. If there are more than 64 such
      rows, paths may be long, and end where the class is proven; the value is then -1 or 1. What
      the fit alone proves is stated in `LeaveOneOut.certified` and `LeaveOneOut.error_bounds`.
    - "exact": the class of every row is proven, by a certificate or along its dual path.
    - "refit": the fit is repeated without each row, by brute force. It is the reference for all
      other methods.
    - "stopping": one fit is made for each row that the fit of all rows leaves open, and stopped as
      soon as the class of the row is proven. This is the best published method, included for
      comparison; it is slower than "exact".

    In all methods, a row whose removal leaves only one class is an error, ``f^p(x_p) = -y_p``. A
    row with cost 0 keeps its value ``f(x_p)``, and so does every zero row if the offset is unique.
    Except by "span", rows that cannot be proven in any other way are refitted, and decided with
    more digits than a double has. All proofs allow for rounding.

    Parameters
    ----------
    solution
        Solution of a two-class problem, or the solutions of all pairs of several classes.
    method
        Name of the method: "span", "exact", "refit" or "stopping".
    complete
        Continue until the value itself is known, not only its sign; for "span" this concerns many
        rows whose spans are undefined.
    certify
        For "span": prove what can be proven from the fit alone. If False, the values are the same,
        but only errors by definition and rows that follow their path are certified.
    n_jobs
        Number of threads that follow dual paths, if they are compiled; -1 stands for all cores.
        More than one is worthwhile for a single large fit; in a search it is better to run trials
        in parallel.
    spans
        How spans without the box are computed: "closed" or "piqp"; see `free_squared_spans`.

    Returns
    -------
    The leave-one-out values, and what is proven about them.

    Raises
    ------
    ValueError
        If `method` or `spans` is unknown, or `n_jobs` is neither positive nor -1.
    SolverError
        For all methods but "refit", if a negative pivot or a negative squared distance leads to a
        negative eigenvalue, so that the kernel is not positive semi-definite, which all proofs
        assume. There is no search for such cases.

    References
    ----------
    Sarafis, Diou and Delopoulos, "Span error bound for weighted SVM with applications in
    hyperparameter selection", Theorem 2.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, leave_one_out, solve
    >>> solution = solve(Problem(Linear()([[0], [1], [3], [4]]), [-1, -1, 1, 1], costs=[0.2] * 4))
    >>> leave_one_out(solution).decision_values.round(3).tolist()
    [-0.6, -0.5, 0.5, 0.6]
    >>> exact = leave_one_out(solution, method="exact", complete=True)
    >>> exact.decision_values.round(3).tolist()
    [-0.4, -0.3, 0.3, 0.4]
    """
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {list(METHODS)}, got {method!r}.")
    n_jobs = thread_count("n_jobs", n_jobs)
    answer = _ANSWER_OF_METHOD[method]
    request = _Request(complete, certify, threads=n_jobs, spans=as_spans(spans))
    if isinstance(solution, PairwiseSolution):
        found = [answer(part, request) for part in solution.solutions]
        return _elected(solution, method, found, request.certify)
    return _of_two_classes(solution, method, answer(solution, request))


@dataclass(frozen=True)
class _Request:
    """The options of `leave_one_out` that a method may need."""

    complete: bool
    certify: bool
    threads: int
    spans: str


@dataclass(frozen=True, eq=False)
class _Answers:
    """The answers of a method about the rows of one fit.

    Attributes
    ----------
    proofs
        Proofs of the classes and the values.
    values
        Leave-one-out decision values, proven or estimated, shape (l,).
    spans
        Free squared spans, shape (l,), or None if they were not computed.
    refitted
        Indices of the rows that were refitted.
    """

    proofs: Proofs
    values: FloatArray
    spans: FloatArray | None
    refitted: IndexArray


def _by_span_rule(solution: DualSolution, request: _Request) -> _Answers:
    """Estimate all values from the spans; a row whose span is undefined follows its path."""
    spans, basic = _spans(solution, request), solution.basic
    undefined = np.isnan(spans)
    estimates = solution.decision_values - solution.problem.y * solution.alpha * spans
    is_plain = solution.problem.costs.all() and (basic is solution or basic.in_bound.any())
    if not request.certify and is_plain and not undefined.any():
        # Nothing has to be followed, and the estimates of zero rows are their values.
        count, values = len(spans), estimates
        if abs(solution.problem.y.sum()) <= count - _TWO_OF_EACH:
            proofs = Proofs.none(count)  # no row is the last one of its class
        else:
            proofs = proofs_by_definition(solution)
            values = np.where(proofs.solved, _proven_values(solution, proofs), estimates)
        return _Answers(proofs, values, spans, np.empty(0, dtype=np.intp))
    proofs = fit_proofs(basic) if request.certify else immediate_proofs(basic, certify=False)
    refitted = rows_of(undefined & ~proofs.solved)
    to_end = request.complete or len(refitted) <= _FEW_UNDEFINED
    if len(refitted):
        refitted = _follow_or_refit(basic, proofs, refitted, to_end=to_end, threads=request.threads)
    known = undefined | proofs.solved
    if basic is not solution:
        # A row may be a zero row of the basic solution only; the estimate does not depend on that.
        known &= undefined | (solution.alpha == 0) | (basic.alpha > 0)
        proofs.accuracy[~known] = np.inf  # what is proven about the class of a row remains so
    values = np.where(known, _proven_values(solution, proofs), estimates)
    if not to_end:
        # The bound that has proven a class depends on the order of the rows.
        only_class = undefined & proofs.proven & ~proofs.exact
        values = np.where(only_class, np.where(values > 0, 1.0, -1.0), values)
    return _Answers(proofs, values, spans, refitted)


def _by_paths(solution: DualSolution, request: _Request) -> _Answers:
    """Prove the class of every row, by certificates and along dual paths."""
    spans, basic = _spans(solution, request), solution.basic
    proofs = immediate_proofs(basic) if request.complete else fit_proofs(basic)
    rows = rows_of(~_is_settled(proofs, request.complete))
    refitted = _follow_or_refit(
        basic, proofs, rows, to_end=request.complete, threads=request.threads
    )
    return _Answers(proofs, _proven_values(solution, proofs), spans, refitted)


def _by_stopped_fits(solution: DualSolution, request: _Request) -> _Answers:
    """Fit without each open row until its class is proven."""
    spans, basic = _spans(solution, request), solution.basic
    proofs = immediate_proofs(basic)
    proofs.put(proofs.open, stopped_rows(basic, proofs.open, complete=request.complete))
    rows = rows_of(~_is_settled(proofs, request.complete))
    refitted = _refit(basic, proofs, rows, to_end=request.complete)
    return _Answers(proofs, _proven_values(solution, proofs), spans, refitted)


def _by_refits(solution: DualSolution, request: _Request) -> _Answers:
    """Fit without each row, by brute force."""
    proofs = proofs_by_definition(solution)
    rows = rows_of(~_is_settled(proofs, to_end=True))
    for p in rows:
        _solve_without(solution, proofs, p)
    return _Answers(proofs, _proven_values(solution, proofs), None, rows)


_ANSWER_OF_METHOD: dict[str, Callable[[DualSolution, _Request], _Answers]] = {
    "span": _by_span_rule,
    "exact": _by_paths,
    "refit": _by_refits,
    "stopping": _by_stopped_fits,
}
METHODS = tuple(_ANSWER_OF_METHOD)


def _spans(solution: DualSolution, request: _Request) -> FloatArray:
    """Return the free squared spans, all undefined if rounding prevents their computation."""
    try:
        return free_squared_spans(solution, spans=request.spans)
    except SolverError:
        check_definite(solution.problem.K)
        return np.where(solution.alpha > 0, np.nan, 0.0)


def _follow_or_refit(
    solution: DualSolution, proofs: Proofs, rows: IndexArray, *, to_end: bool, threads: int
) -> IndexArray:
    """Follow the paths of some rows, enter the proofs, and return the rows that were refitted."""
    unknown = rows[~proofs.solved[rows]]
    if len(unknown) and solution.is_optimal:
        try:
            proofs.put(unknown, follow_rows(solution, unknown, complete=to_end, threads=threads))
        except SolverError:
            check_definite(solution.problem.K)
    problem, left = solution.problem, rows[~_is_settled(proofs, to_end)[rows]]
    for p, equal in _equal_rows(problem, left).items():
        if p in proofs.ends and not _is_settled(proofs, to_end)[p]:
            wanted = ACCURATE if proofs.proven[p] else _WANTED
            _enter_accurate(problem, proofs, p, proofs.ends[p], wanted, equal)
    settled = _is_settled(proofs, to_end) | (proofs.accuracy <= _RESOLVED)
    return _refit(solution, proofs, rows[~settled[rows]], to_end=to_end)


def _is_settled(proofs: Proofs, to_end: bool) -> BoolArray:
    """Return a mask of the rows whose class, and if asked for whose value, is proven."""
    return proofs.proven & proofs.exact if to_end else proofs.proven


def _refit(solution: DualSolution, proofs: Proofs, rows: IndexArray, *, to_end: bool) -> IndexArray:
    """Refit without each of some rows, enter the results, and return the rows."""
    problem = solution.problem
    for p, equal in _equal_rows(problem, rows).items():
        if _is_settled(proofs, to_end)[p] or proofs.accuracy[p] <= _RESOLVED:
            continue  # together with an equal row
        _enter_accurate(problem, proofs, p, alpha_without(solution, p), _RESOLVED, equal)
        if not (_is_settled(proofs, to_end)[p] or proofs.accuracy[p] <= _RESOLVED):
            _solve_without(solution, proofs, p)
    return rows


def _equal_rows(problem: Problem, rows: IndexArray) -> dict[int, IndexArray]:
    """Return for each of some rows those of them with the same kernel values, label and cost.

    Such rows can be exchanged for each other, so that they have the same leave-one-out value.
    """
    if len(rows) <= _FEW_ROWS:
        return {int(p): np.array([p]) for p in rows}
    groups = defaultdict(list)
    for p in rows:
        values = problem.K.block(np.array([p]), ALL)
        groups[sha256(values.tobytes()).digest(), problem.y[p], problem.costs[p]].append(int(p))
    group_of = {p: np.array(group) for group in groups.values() for p in group}
    return {int(p): group_of[int(p)] for p in rows}


def _solve_without(solution: DualSolution, proofs: Proofs, p: int) -> None:
    """Solve the problem without a row from the beginning, and enter its value."""
    problem = solution.problem
    refit = solve(problem.without(p), tol=solution.tol, max_iter=solution.max_iter).basic
    row = np.array([p])
    found = proven_values(refit, row)
    proofs.improve(row, found)
    if not _is_settled(proofs, to_end=True)[p]:
        _enter_accurate(problem, proofs, p, refit.alpha, _WANTED, row)
    if not (proofs.proven[p] or proofs.exact[p]):
        proofs.put(row, found)  # without a proof, the value of the refit is the most plausible one


def _enter_accurate(
    problem: Problem, proofs: Proofs, p: int, alpha: FloatArray, wanted: float, equal: IndexArray
) -> None:
    """Compute the value of a row beyond double precision, and enter it for all rows equal to it."""
    check_time()  # once for each row that is refitted or computed anew
    found = accurate_value(problem, p, alpha, wanted)
    margin, accuracy = np.full(len(equal), found.margin), np.full(len(equal), found.accuracy)
    proofs.improve(equal, Proofs.of_values(margin, accuracy))


def _proven_values(solution: DualSolution, proofs: Proofs) -> FloatArray:
    """Return the decision values of the proofs; unproven ones within rounding of 0 become 0."""
    unproven = proofs.solved & ~proofs.proven
    if unproven.any():
        proofs.set_to_zero(unproven & (np.abs(proofs.margin) <= zero_width(solution.margin_noise)))
    values: FloatArray = solution.problem.y * proofs.margin
    return values


def _of_two_classes(solution: DualSolution, method: str, found: _Answers) -> LeaveOneOut:
    """Return the result for two classes."""
    proofs = found.proofs
    return LeaveOneOut(
        y=solution.problem.y,
        decision_values=read_only(found.values),
        squared_spans=found.spans,
        method=method,
        certified=read_only(proofs.proven),
        exact=read_only(proofs.exact),
        accuracy=read_only(proofs.accuracy),
        error_bounds=error_bounds(proofs.proven, proofs.margin <= 0),
        n_undefined=0 if found.spans is None else int(np.count_nonzero(np.isnan(found.spans))),
        n_refit=len(found.refitted),
    )


def _elected(
    solution: PairwiseSolution, method: str, found: list[_Answers], certify: bool
) -> LeaveOneOut:
    """Return the result for several classes.

    Without row p, only the fits of its own class change. The class of p is proven if the votes that
    are proven decide it, whatever the others are.
    """
    codes = solution.codes
    values, votes = solution.decision_values.copy(), solution.decision_values.copy()
    accuracy, certain = np.empty(values.shape), np.empty(values.shape, dtype=bool)
    spans = None if method == "refit" else np.zeros(values.shape)
    undefined, refitted = np.zeros((2, len(codes)), dtype=bool)
    for column, (rows, part, answer) in enumerate(
        zip(solution.rows, solution.solutions, found, strict=True)
    ):
        values[rows, column] = answer.values
        votes[rows, column] = part.problem.y * answer.proofs.margin
        certain[rows, column] = answer.proofs.proven
        accuracy[rows, column] = answer.proofs.accuracy
        others = np.delete(np.arange(len(codes)), rows)
        elsewhere = values_elsewhere(
            part, solution.K, rows, others, values[others, column], certify=certify
        )
        values[others, column] = votes[others, column] = elsewhere.margin
        certain[others, column] = elsewhere.proven
        accuracy[others, column] = elsewhere.accuracy
        refitted[rows[answer.refitted]] = True
        if spans is not None and answer.spans is not None:
            spans[rows, column] = answer.spans
            undefined[rows] |= np.isnan(answer.spans)
    is_certified = decided(codes, votes, certain)
    worst = accuracy.max(axis=1)
    return LeaveOneOut(
        y=codes.astype(float),
        decision_values=read_only(values),
        squared_spans=spans,
        method=method,
        certified=read_only(is_certified),
        exact=read_only(worst <= ACCURATE),
        accuracy=read_only(worst),
        error_bounds=error_bounds(is_certified, voted(codes, votes) != codes),
        n_undefined=int(np.count_nonzero(undefined)),
        n_refit=int(np.count_nonzero(refitted)),
    )
