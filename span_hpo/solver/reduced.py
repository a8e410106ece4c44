"""The problem that is fitted in place of the one that was asked for, and the way back.

A fit needs no rows of cost 0, and one row can stand for several that are equal. The class of the
first row counts as +1, so that swapped classes give the same last bits.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from span_hpo.data import not_negative
from span_hpo.kernels import kernel_product
from span_hpo.runtime import FloatArray, IndexArray, rows_of
from span_hpo.solver.active_set import DualPoint
from span_hpo.solver.centred_gram import CentredGram
from span_hpo.solver.merged_rows import MergedRows, merged_rows
from span_hpo.solver.problem import DualSolution, Problem

_KEPT_SHARE = 0.9  # if at most this share of the rows has a positive cost, the others are left out
_AT_COST = 1 - 1e-12  # share of a cost from which on a dual variable begins at the cost

Start = tuple[FloatArray, FloatArray]


class Answer(NamedTuple):
    """What a fit has found about all rows of the problem that was asked for.

    `alpha` are dual variables from which paths can start, and `reported` are those that one rule
    has chosen among all solutions. `F` is ``K (y alpha)``. `spans` are the squared spans with the
    reported dual variables, and `gram` belongs to the in-bound rows of `alpha`; both are None if
    the fit does not tell them.
    """

    alpha: FloatArray
    reported: FloatArray
    F: FloatArray
    spans: FloatArray | None
    gram: CentredGram | None


@dataclass(frozen=True, eq=False)
class ReducedProblem:
    """A problem without the rows that a fit does not need.

    Attributes
    ----------
    whole
        The problem in which the first one of equal rows has the costs of all.
    merged
        The groups of equal rows, or None if each row stands for itself.
    kept
        Rows with a positive cost in `whole`.
    fitted
        The problem that is fitted: `whole`, or its kept rows alone.
    sign
        Label of the first row that is kept.
    """

    whole: Problem
    merged: MergedRows | None
    kept: IndexArray
    fitted: Problem
    sign: float

    @classmethod
    def of(cls, problem: Problem, *, merge: bool) -> "ReducedProblem":
        """Return what is fitted for a problem, with equal rows as one if `merge` is true."""
        merged = merged_rows(problem) if merge else None
        whole = problem
        if merged is not None:
            whole = Problem.of_checked(problem.K, problem.y, merged.costs)
        kept = rows_of(whole.costs)
        # Rows with cost 0 never move. It takes less time to keep a few than to copy the matrix.
        fitted = whole if len(kept) > _KEPT_SHARE * len(whole) else whole.take(kept)
        return cls(whole, merged, kept, fitted, float(problem.y[kept[0]]))

    def start(self, start: Any) -> Start | None:
        """Return a feasible ``alpha`` and its ``K (y alpha)`` to begin at, or None for zero.

        It is the multiple of the given dual variables that lies in the box and has the largest
        dual value. If all costs grow by the same factor, bounded rows then stay bounded.

        Parameters
        ----------
        start
            Solution of a problem with as many rows, dual variables, or None.
        """
        if start is None:
            return None
        alpha, F = self._given(start)
        y, costs = self.whole.y, self.whole.costs
        linear, square, support = float(alpha.sum()), float(alpha @ (y * F)), rows_of(alpha)
        if not len(support):
            return None
        factor = float((costs[support] / alpha[support]).min())
        if square > 0:
            factor = min(factor, linear / square)
        if not 0 < factor < np.inf or not np.isfinite(square):
            return None
        alpha = np.minimum(factor * alpha, costs)
        alpha = np.where(alpha >= _AT_COST * costs, costs, alpha)
        F = self.sign * (factor * F)
        return (alpha, F) if self.fitted is self.whole else (alpha[self.kept], F[self.kept])

    def _given(self, start: Any) -> Start:
        """Return the dual variables that the caller gave, balanced, and ``K (y alpha)``."""
        K, y, costs = self.whole.K, self.whole.y, self.whole.costs
        F = None
        if isinstance(start, DualSolution):
            if len(start.problem) != len(y):
                raise ValueError(
                    f"`start` must be the solution of a problem with {len(y)} rows, got one with "
                    f"{len(start.problem)}."
                )
            alpha, other = start.alpha, start.problem
            if other.K is K and (other.y is y or np.array_equal(other.y, y)):
                F = start.decision_values - start.b
        else:
            alpha = not_negative(start, "start", len(y))
        if self.merged is not None:
            alpha = self.merged.gathered(alpha)
        if F is None:
            alpha = _balanced(np.minimum(alpha, costs), y)
            F = kernel_product(K, y * alpha)
        return alpha, F

    def answer(self, point: DualPoint, reported: FloatArray) -> Answer:
        """Return what a fit says about all rows.

        Parameters
        ----------
        point
            Where the fit ended.
        reported
            Dual variables of the fit that one rule has chosen; ``point.alpha`` itself if it is the
            only solution.
        """
        alpha, F, gram = point.alpha, self.sign * point.F, point.gram
        is_basic = reported is alpha
        spans = point.spans if is_basic else None
        if self.fitted is not self.whole:
            alpha = self._among_all(alpha)
            reported = alpha if is_basic else self._among_all(reported)
            F = kernel_product(self.whole.K, self.whole.y * alpha)
            spans = None if spans is None else self._among_all(spans)
        if self.merged is not None:
            spans = None if spans is None else self.merged.spans(spans, reported)
            shared = self.merged.shared(alpha)
            reported = shared if is_basic else self.merged.shared(reported)
            alpha, is_known = self.merged.basic(alpha, shared)
            gram = gram if is_known else None
        return Answer(alpha, reported, F, spans, gram)

    def _among_all(self, values: FloatArray) -> FloatArray:
        """Return values of the kept rows among zeros for the others."""
        everywhere = np.zeros(len(self.whole))
        everywhere[self.kept] = values
        return everywhere


def _balanced(alpha: FloatArray, y: FloatArray) -> FloatArray:
    """Return dual variables of which those of the class with the larger sum are scaled down."""
    positive, negative = float(alpha[y > 0].sum()), float(alpha[y < 0].sum())
    heavy, light = max(positive, negative), min(positive, negative)
    if heavy == light:
        return alpha
    return np.where((y > 0) == (positive > negative), alpha * (light / heavy), alpha)
