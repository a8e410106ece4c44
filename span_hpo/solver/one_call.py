"""Fit two classes and compute all spans in one call of compiled code.

An evaluation on a few hundred rows takes less time than the Python code between its steps. The
extension `span_hpo.solver._one_call` takes all of these steps in one call, without the GIL:

1. pairwise steps from zero, or from a given start, to a tolerance of its own, as in
   `span_hpo.solver.smo`
2. rounds of an active-set method to the exact solution, as in `span_hpo.solver.active_set`, with an
   interior-point method of its own where many rows leave the box
3. the Cholesky factor of the in-bound rows about their centroid, as in
   `span_hpo.solver.centred_gram`
4. the dual variables once more from nothing but the in-bound and the bounded rows, so that they do
   not depend on the start
5. the free squared spans of all rows, as in `span_hpo.loo.span_rule`

If a fit needs more than that, the call gives up, and the modules above compute the answer. That is
rare: among thousands of fits on real data, and of random problems with equal rows and singular
kernels, fewer than one in a thousand gave up. Ctrl-C ends the call within about a second.
"""

import logging
from dataclasses import dataclass

from span_hpo.runtime import FloatArray, compiled, read_only
from span_hpo.solver.centred_gram import CentredGram

_NOT_COMPILED = 0
_REASONS = {
    _NOT_COMPILED: "nothing is compiled",
    1: "there is too little memory",
    2: "a number is not finite",
    3: "a matrix is singular or indefinite",
    4: "there are too many rounds",
    5: "a squared span is negative",
    6: "it takes too long",
}
_LEAST_WORK = 2e9  # multiplications that every fit may take, about half a second
_Factor = tuple[FloatArray, float, float, FloatArray, float, float, FloatArray]
_Parts = tuple[
    FloatArray, FloatArray, float, float, FloatArray, bool, _Factor | None, int, int, float
]
_logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class OneCall:
    """The solution of the dual, and the squared spans of its rows.

    Attributes
    ----------
    alpha
        Dual variables, shape (l,); those at a bound equal 0 or the cost bit for bit.
    F
        ``K (y alpha)``, shape (l,).
    b
        Mean offset of the in-bound rows, or the middle of the offset limits if there are none.
    offset_gap
        How far the limits of the offset contradict each other; at most rounding at the optimum.
    squared_spans
        Free squared spans, shape (l,): 0 for zero rows, and NaN where they are undefined.
    is_only
        Whether the in-bound rows are independent and clearly inside their boxes, and no other row
        is at its margin, so that no other dual variables are optimal.
    gram
        Factored Gram matrix of the in-bound rows, or None if there are none.
    steps, rounds
        Numbers of pairwise steps of the start and of rounds of the active-set method.
    work
        Number of multiplications, of which those in factorisations count a fifth.
    """

    alpha: FloatArray
    F: FloatArray
    b: float
    offset_gap: float
    squared_spans: FloatArray
    is_only: bool
    gram: CentredGram | None
    steps: int
    rounds: int
    work: float


def fitted(
    K: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    tol: float,
    max_iter: int,
    start: tuple[FloatArray, FloatArray] | None = None,
    most_work: float | None = None,
) -> OneCall | None:
    """Return the solution of the dual with all spans, or None if the call gives up.

    Without compiled code, it always gives up.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), in C order; it may be read-only.
    y
        Labels, shape (l,), -1 or +1.
    costs
        Upper bounds of the dual variables, shape (l,); rows with cost 0 never move.
    tol
        Tolerance, in units of the margin, at which the pairwise steps end.
    max_iter
        Largest number of pairwise steps.
    start
        Feasible dual variables to begin at and their ``K (y alpha)``, each of shape (l,), or None
        to begin at zero.
    most_work
        Number of multiplications to give up after, so that the answer does not depend on the speed
        of the machine. By default, fits of real data stay far below it.
    """
    if most_work is None:
        most_work = _LEAST_WORK + float(len(y)) ** 3
    alpha, F = (None, None) if start is None else start
    answer = parts_of_fit(K, y, costs, tol, max_iter, alpha, F, most_work)
    if isinstance(answer, int):
        _logger.debug("Fit without the call, because %s.", _REASONS[answer])
        return None
    alpha, F, b, offset_gap, spans, is_only, factor, steps, rounds, work = answer
    gram = None
    if factor is not None:
        row_means, mean, scale, L, jitter, largest, inverse_diagonal = factor
        gram = CentredGram(row_means, mean, scale, L, jitter, largest)
        gram.__dict__["_inverse_diagonal"] = read_only(inverse_diagonal)  # a cached property
    return OneCall(alpha, F, b, offset_gap, read_only(spans), is_only, gram, steps, rounds, work)


@compiled
def parts_of_fit(
    K: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    tol: float,
    max_iter: int,
    alpha: FloatArray | None,
    F: FloatArray | None,
    most_work: float,
) -> _Parts | int:
    """Return the parts of a `OneCall`, or the number of the reason to give up."""
    return _NOT_COMPILED
