"""Fit several classes as LIBSVM does, with one fit for each pair of classes and a vote.

The pairs of classes (r, s) with r < s are in the order (0, 1), (0, 2), ..., (1, 2), and so on. In
the fit of a pair, class s is +1, so that a positive decision value is a vote for s.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from span_hpo.kernels import KernelBlocks, kernel_times
from span_hpo.runtime import (
    Array,
    BoolArray,
    FloatArray,
    IndexArray,
    Printable,
    counted,
    read_only,
    rows_of,
)
from span_hpo.solver.fit import solve
from span_hpo.solver.problem import DualSolution, Problem


@dataclass(frozen=True, eq=False, repr=False)
class PairwiseSolution(Printable):
    """The fits of all pairs of classes.

    Attributes
    ----------
    K
        Kernel matrix of all rows.
    codes
        Class of each row, shape (l,), from 0 to k - 1.
    rows
        For each pair, the rows of its two classes.
    solutions
        For each pair, the fit of its rows in the order of `rows`.
    decision_values
        Decision values of every row in every fit, shape (l, k (k - 1) / 2).
    """

    K: KernelBlocks
    codes: IndexArray
    rows: tuple[IndexArray, ...]
    solutions: tuple[DualSolution, ...]
    decision_values: FloatArray

    def _summary(self) -> tuple[str, dict[str, str]]:
        fits, rows = counted(len(self.solutions), "fit"), counted(len(self.codes), "row")
        n_converged = sum(solution.converged for solution in self.solutions)
        return f"PairwiseSolution of {rows} in {fits} of two classes", {
            "support vectors": f"{self.n_support:,}, {self.n_in_bound:,} of them in-bound",
            "solver": self.solver,
            "converged": f"{n_converged:,} of {fits}",
        }

    @property
    def converged(self) -> bool:
        """Whether all fits have converged."""
        return all(solution.converged for solution in self.solutions)

    @property
    def solver(self) -> str:
        """What computed the first fits, such as "smo", or "libsvm, smo" if they differ."""
        return ", ".join(sorted({solution.solver for solution in self.solutions}))

    @property
    def n_support(self) -> int:
        """The number of rows that are a support vector of some fit."""
        return self._in_some_fit([solution.alpha > 0 for solution in self.solutions])

    @property
    def n_in_bound(self) -> int:
        """The number of rows that are an in-bound support vector of some fit."""
        return self._in_some_fit([solution.in_bound for solution in self.solutions])

    def _in_some_fit(self, masks: list[BoolArray]) -> int:
        found = np.zeros(len(self.codes), dtype=bool)
        for rows, mask in zip(self.rows, masks, strict=True):
            found[rows[mask]] = True
        return int(np.count_nonzero(found))


def pairs_of(n_classes: int) -> list[tuple[int, int]]:
    """Return the pairs of classes in the order of the fits."""
    return list(combinations(range(n_classes), 2))


def n_pairs_of(n_classes: int) -> int:
    """Return the number of pairs of k classes, ``k (k - 1) / 2``."""
    return n_classes * (n_classes - 1) // 2


def n_classes_of(n_pairs: int) -> int:
    """Return the number of classes that have this number of pairs."""
    return (1 + math.isqrt(1 + 8 * n_pairs)) // 2


def rows_of_pairs(codes: Array) -> Iterator[tuple[IndexArray, FloatArray]]:
    """Yield the rows of every pair of classes and their labels, +1 for the second class."""
    for first, second in pairs_of(int(codes.max()) + 1):
        rows = rows_of((codes == first) | (codes == second))
        yield rows, np.where(codes[rows] == second, 1.0, -1.0)


def solve_pairs(
    K: KernelBlocks,
    codes: IndexArray,
    costs: FloatArray,
    *,
    tol: float,
    max_iter: int,
    solver: str = "auto",
) -> PairwiseSolution:
    """Fit a weighted SVM for every pair of classes.

    Parameters
    ----------
    K
        Kernel matrix of all rows, of which each fit uses a part.
    codes
        Class of each row, shape (l,), from 0 to k - 1.
    costs
        Upper bound of the dual variable of each row in all its fits, shape (l,). Each class must
        have a row with a positive cost, which has been checked before.
    tol, max_iter, solver
        Tolerance, step limit and solver of each fit; see `solve`.
    """
    all_rows, solutions = [], []
    pairs = list(rows_of_pairs(codes))
    values = np.empty((len(codes), len(pairs)))
    for column, (rows, y) in enumerate(pairs):
        problem = Problem.of_checked(K.take(rows), y, costs[rows])
        solution = solve(problem, tol=tol, max_iter=max_iter, solver=solver)
        support = np.flatnonzero(solution.alpha)
        beta = (y * solution.alpha)[support]
        values[:, column] = kernel_times(K, rows[support], beta) + solution.b
        values[rows, column] = solution.decision_values
        all_rows.append(rows)
        solutions.append(solution)
    return PairwiseSolution(K, codes, tuple(all_rows), tuple(solutions), read_only(values))


def voted(codes: IndexArray, values: FloatArray) -> IndexArray:
    """Return the class that the pairs elect for each row, as LIBSVM does.

    A value of 0 is a vote for the second class of its pair, unless the row belongs to that class,
    in which case it is a vote for the first. If classes tie, the first of them is elected.

    Parameters
    ----------
    codes
        Class of each row, shape (l,).
    values
        Decision values of the pairs, shape (l, k (k - 1) / 2).
    """
    votes = _votes(codes, values, np.ones(values.shape, dtype=bool))
    winners: IndexArray = votes.argmax(axis=1)
    return winners


def _votes(codes: IndexArray, values: FloatArray, certain: BoolArray) -> IndexArray:
    """Return the number of votes of each class for each row, from some of the pairs."""
    n_classes = n_classes_of(values.shape[1])
    votes = np.zeros((len(codes), n_classes), dtype=np.intp)
    for column, (first, second) in enumerate(pairs_of(n_classes)):
        value, counts = values[:, column], certain[:, column]
        for_second = (value > 0) | ((value == 0) & (codes != second))
        votes[:, second] += counts & for_second
        votes[:, first] += counts & ~for_second
    return votes


def decided(codes: IndexArray, values: FloatArray, certain: BoolArray) -> BoolArray:
    """Return a mask of the rows for which uncertain votes cannot change whether they are errors.

    A row is right if its class wins even without all uncertain votes, and wrong if some other class
    does so against it. If classes tie, the first of them is elected.

    Parameters
    ----------
    codes, values
        As for `voted`.
    certain
        Mask of the values whose votes are certain, shape (l, k (k - 1) / 2).
    """
    least = _votes(codes, values, certain)
    most = least.copy()
    for column, (first, second) in enumerate(pairs_of(least.shape[1])):
        for class_ in (first, second):
            most[:, class_] += ~certain[:, column]
    rows, classes = np.arange(len(codes)), np.arange(least.shape[1])
    own_least, own_most = least[rows, codes][:, None], most[rows, codes][:, None]
    is_other, comes_later = classes != codes[:, None], classes > codes[:, None]
    behind = np.where(comes_later, most <= own_least, most < own_least)
    ahead = np.where(comes_later, least > own_most, least >= own_most) & is_other
    result: BoolArray = (behind | ~is_other).all(axis=1) | ahead.any(axis=1)
    return result


def is_wrong(y: FloatArray, values: FloatArray) -> BoolArray:
    """Return a mask of the rows that leave-one-out values assign to a wrong class.

    Parameters
    ----------
    y
        Labels -1 and +1, or the numbers of more than two classes, shape (l,).
    values
        Leave-one-out decision values, shape (l,), or (l, k (k - 1) / 2) for k > 2 classes.
    """
    if values.ndim == 1:
        wrong: BoolArray = y * values <= 0
    else:
        codes = y.astype(int)
        wrong = voted(codes, values) != codes
    return wrong
