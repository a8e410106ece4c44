"""The tableau of a base set: how all rows respond when one of them moves.

The columns are computed about the centroid of the base rows I, with ``H = L L'`` of
`span_hpo.solver.centred_gram`, the Gram matrix ``G`` and ``Z = L^-1 G_IO`` for the other rows O:

- If g of a base row i changes by 1, then ``alpha_I`` changes by ``L'^-1 z`` and ``g_O`` by
  ``Z'z + 1/n``, with ``z = L^-1 (e_i - 1/n)``.
- If alpha of another row k changes by 1, then ``alpha_I`` changes by ``-(L'^-1 z + 1/n)`` and
  ``g_O`` by ``G_Ok - Z'z``, with ``z = Z_k``.

The entry of row j in the column of row i has the sign ``y_i y_j``. Kernel values are divided by
`unit`, a power of two that makes the distances about 1, and dual variables are multiplied by it.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from span_hpo.kernels import largest_entry
from span_hpo.loo.path.segments import (
    BOUNDED,
    IN_BOUND,
    MOST_CHANGED,
    MOST_SEGMENTS,
    NEEDS_COLUMN,
    PARKED,
    REMOVED,
    ZERO,
    Paths,
    TableauColumns,
    follow_paths,
)
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, runs_machine_code
from span_hpo.solver import (
    CentredGram,
    DualSolution,
    Problem,
    dot_rounding,
    factored_gram,
    independent_rows,
    solve_triangular,
)

_LEAST_SQUARE = 1e-290  # least squared distance in a quotient, which avoids a division by zero
_NEAR = 1e-12  # squared distances below this, relative to the largest kernel value, are rounding
_ON_MARGIN = 1e-9  # rows whose margin is this close to 1 are always watched
_SMALL_TABLE = 2_000_000  # multiplications for all columns that cost less than several rounds
_PATHS_FOR_THREADS = 32  # least number of paths for which threads are started
_HULL_CHANGES = 3.0  # number of base rows that are assumed to leave the hull along a path


@dataclass(frozen=True, eq=False)
class PathState:
    """A point on the paths of some rows.

    Attributes
    ----------
    alpha
        Dual variables, shape (l,).
    excess, rounding
        ``g = y f - 1``, and bounds on its rounding errors, shape (l,).
    imbalance
        The sum ``y'alpha``, which is 0 up to rounding.
    in_bound
        Mask of the rows that are strictly inside their box, or have just reached an end of it with
        margin 1, shape (l,). The removed row of a path that has begun is left out.
    gram
        Factored Gram matrix of the in-bound rows, if it is known.
    """

    alpha: FloatArray
    excess: FloatArray
    rounding: FloatArray
    imbalance: float
    in_bound: BoolArray
    gram: CentredGram | None = None

    @classmethod
    def of_fit(cls, solution: DualSolution) -> "PathState":
        """Return the state from which the paths of a fit start."""
        gram = solution.gram if solution.in_bound.any() else None
        return cls(
            solution.alpha,
            solution.excess,
            solution.rounding,
            solution.imbalance,
            solution.in_bound,
            gram,
        )


class Tableau:
    """The tableau of one state, with the columns that all paths from this state share.

    Parameters
    ----------
    problem
        Kernel, labels and costs.
    state
        State at which the paths start; at least one row must be in-bound.

    Attributes
    ----------
    rows
        Indices of the rows that take part, in tableau order: base rows first, then the others,
        beginning with those whose margin is most likely to become 1.
    centroid_distances
        Upper bounds of the distances of the rows from the centroid of the base rows, in tableau
        order.
    least_eigenvalue
        Lower bound of ``x'K x / x'x`` over all x on the base rows whose sum is 0; 0 if none is
        known.
    unit
        Unit of the kernel, a power of two.

    Raises
    ------
    SolverError
        If the kernel turns out not to be positive semi-definite.
    """

    def __init__(self, problem: Problem, state: PathState) -> None:
        K, diagonal = problem.K, problem.K.diagonal()
        in_bound, parked, gram, self.least_eigenvalue = base_of(problem, state)
        n = len(in_bound)
        outside = problem.costs > 0
        outside[in_bound] = False
        others = np.flatnonzero(outside)
        K_IO = K.block(in_bound, others)
        to_centroid = K_IO.sum(axis=0) / n
        G_IO, G_OO = gram.about_centroid(K_IO, diagonal[others])
        Z = solve_triangular(gram.L, G_IO, overwrite=True)
        squares = gram.checked_squares(G_OO - np.einsum("ij,ij->j", Z, Z), diagonal[others])
        distances = np.sqrt(np.maximum(squares + _HULL_CHANGES / n * G_OO, _LEAST_SQUARE))
        reach = np.maximum(np.abs(state.excess[others]) - _ON_MARGIN, 0.0) / distances
        order = reach.argsort(kind="stable")

        self.problem, self.state = problem, state
        self.rows = rows = np.concatenate([in_bound, others[order]])
        G_II = gram.centred_diagonal(diagonal[in_bound])
        # The distances are upper bounds, on which proofs rely.
        G_ii = np.maximum(np.concatenate([G_II, G_OO[order]]), 0.0)
        sizes = np.abs(diagonal[rows]) + gram.largest
        self.centroid_distances = np.sqrt(G_ii + dot_rounding(4 * n, sizes))
        scale = float(G_OO.mean()) if n == 1 else gram.scale
        self.unit = 2.0 ** round(math.log2(max(scale, _NEAR * largest_entry(K)) or 1.0))
        self._gram, self._Z, self._squares = gram, Z[:, order], squares[order]
        self._to_centroid = to_centroid[order]
        self._reach = np.concatenate([np.zeros(n), reach[order]])
        self._distances = np.concatenate([self.centroid_distances[:n], distances[order]])
        self._position = np.full(len(problem), -1, dtype=np.intp)
        self._position[rows] = np.arange(len(rows))

        alpha, costs = state.alpha[rows] * self.unit, problem.costs[rows] * self.unit
        kind = np.where(alpha == 0, ZERO, BOUNDED).astype(np.int8)
        kind[self._position[parked]] = PARKED
        kind[:n] = IN_BOUND
        self._kind = kind
        self._value = np.where(kind == IN_BOUND, alpha, state.excess[rows])
        self._value[kind == PARKED] = 0.0
        self._lower = np.where(kind == BOUNDED, -np.inf, 0.0)
        self._upper = np.where(kind == IN_BOUND, costs, np.where(kind == ZERO, np.inf, 0.0))
        self.table = TableauColumns(
            n_base=n,
            y=problem.y[rows],
            costs=costs,
            alpha=alpha,
            slot=np.full(len(rows), -1, dtype=np.intp),
            columns=np.empty((0, len(rows))),
        )
        self._filled = 0

    def watched(self, removed: IndexArray, watch: str) -> IndexArray:
        """Return how many leading rows the path of each removed row should watch.

        A path that lowers ``y_p f(x_p)`` by ``drop`` changes the weight vector by about
        ``sqrt(alpha_p drop)``, and the margin of a row by at most that amount times its distance
        from the hull. Rows whose margin is farther from 1 can be left out. This is an estimate,
        because the hull changes along the path.

        Parameters
        ----------
        removed
            Indices of the removed rows, shape (k,).
        watch
            What to watch for: "class" assumes the drop that makes the margin 0, "end" a drop of
            ``alpha_p`` times the squared distance of p, and "all" watches every row.
        """
        alpha = self.state.alpha[removed]
        if watch == "class":
            radius = np.sqrt(alpha * np.maximum(1 + self.state.excess[removed], 0.0))
        elif watch == "end":
            radius = alpha * self._distances[self._position[removed]]
        else:
            radius = np.full(len(removed), np.inf)
        count: IndexArray = np.searchsorted(self._reach, radius, side="right")
        return np.maximum(count, self.table.n_base)

    def paths(self, removed: IndexArray, whole: FloatArray, watched: IndexArray) -> Paths:
        """Return paths at their start.

        Parameters
        ----------
        removed
            Indices of the removed rows, shape (k,).
        whole
            Dual variables of the removed rows in the fit, shape (k,).
        watched
            Number of leading rows that each path watches, shape (k,); never more than in earlier
            calls.
        """
        count, n, width = len(removed), self.table.n_base, int(watched.max())
        if not self._filled:
            self.table = self.table._replace(columns=np.empty((0, width)))
        at = self._position[removed]
        value, lower, upper, kind = (
            np.repeat(array[None, :width], count, axis=0)
            for array in (self._value, self._lower, self._upper, self._kind)
        )
        near = np.flatnonzero(at < width)
        lower[near, at[near]], upper[near, at[near]] = -np.inf, np.inf
        kind[near, at[near]] = REMOVED
        own_square = np.zeros(count)
        own_square[at >= n] = self._squares[at[at >= n] - n] / self.unit
        return Paths(
            row=at,
            own=self._columns(at, width),
            own_square=own_square,
            watched=watched,
            whole=whole * self.unit,
            remaining=self.table.alpha[at],
            start_margin=1 + self.state.excess[removed],
            margin=1 + self.state.excess[removed],
            value=value,
            lower=lower,
            upper=upper,
            kind=kind,
            changed=np.zeros((count, MOST_CHANGED), dtype=np.intp),
            n_changed=np.zeros(count, dtype=np.intp),
            n_in_bound=n - (at < n).astype(np.intp),
            segments=np.zeros(count, dtype=np.intp),
            outcome=np.zeros(count, dtype=np.int8),
            wanted=np.full(count, -1, dtype=np.intp),
            beyond=np.zeros(count),
            direction=np.zeros((count, width)),
        )

    def follow(
        self,
        paths: Paths,
        complete: bool,
        most_segments: int = MOST_SEGMENTS,
        *,
        threads: int = 1,
    ) -> None:
        """Follow the paths to their outcomes, and compute the columns that they need."""

        def follow(part: IndexArray) -> None:
            follow_paths(self.table, paths, part, complete, most_segments)

        todo = np.arange(len(paths.row))
        while len(todo):
            if threads > 1 and len(todo) >= _PATHS_FOR_THREADS and runs_machine_code():
                parts = [todo[start::threads] for start in range(threads)]
                with ThreadPoolExecutor(threads) as pool:
                    # The parts share the columns, and write to different rows of the arrays.
                    list(pool.map(follow, parts))
            else:
                follow(todo)
            todo = todo[paths.outcome[todo] == NEEDS_COLUMN]
            if len(todo):
                width = paths.own.shape[1]
                self._add(self._next_columns(paths.wanted[todo], width), width)

    def _next_columns(self, wanted: IndexArray, width: int) -> IndexArray:
        """Return the rows whose columns to compute: all at once if that takes next to no time."""
        if self.table.n_base * width * width <= _SMALL_TABLE:
            return np.flatnonzero(self.table.slot[:width] < 0)
        return np.unique(wanted)

    def _add(self, wanted: IndexArray, width: int) -> None:
        """Compute columns to be shared by all paths, up to the given width."""
        start, end = self._filled, self._filled + len(wanted)
        columns = self.table.columns
        if end > len(columns):
            grown = np.empty((end + len(columns) // 2, columns.shape[1]))
            grown[:start] = columns[:start]
            self.table = self.table._replace(columns=grown)
        self.table.columns[start:end, :width] = self._columns(wanted, width)
        self.table.slot[wanted] = np.arange(start, end)
        self._filled = end

    def _columns(self, wanted: IndexArray, width: int) -> FloatArray:
        """Return the columns of some rows, stored as the rows of an array, shape (m, width)."""
        n, L, y = self.table.n_base, self._gram.L, self.table.y
        in_base = wanted < n
        z = np.empty((n, len(wanted)), order="F")
        if in_base.any():
            unit_vectors = np.full((n, np.count_nonzero(in_base)), -1 / n, order="F")
            unit_vectors[wanted[in_base], np.arange(unit_vectors.shape[1])] += 1.0
            z[:, in_base] = solve_triangular(L, unit_vectors)
        at = wanted[~in_base] - n
        z[:, ~in_base] = self._Z[:, at]
        columns = np.empty((len(wanted), width))
        np.matmul(z.T, self._Z[:, : width - n], out=columns[:, n:])
        x = solve_triangular(L, z, transposed=True, overwrite=True)
        x -= x.sum(axis=0) / n  # exact arithmetic would keep the sums at zero
        columns[:, :n] = x.T
        share = 1 / n
        if in_base.any():
            columns[in_base, :n] *= self.unit
            columns[in_base, n:] += share
        if len(at):
            G = self.problem.K.block(self.rows[wanted[~in_base]], self.rows[n:width])
            G -= self._to_centroid[: width - n]
            G -= self._to_centroid[at][:, None] - self._gram.mean
            everyone = slice(None) if len(at) == len(wanted) else ~in_base
            G -= columns[everyone, n:]
            G /= self.unit
            columns[everyone, n:] = G
            columns[everyone, :n] += share
            columns[everyone, :n] *= -1
        columns *= y[:width]
        columns *= y[wanted][:, None]
        return columns


class Base(NamedTuple):
    """The base of a tableau: in-bound rows of which none lies in the affine hull of the others.

    Attributes
    ----------
    rows, parked
        Indices of the base rows, and of the in-bound rows that lie in their hull.
    gram
        Factored Gram matrix of the base rows.
    least_eigenvalue
        Lower bound of ``x'K x / x'x`` over all x on the base rows whose sum is 0; 0 if none is
        known.
    """

    rows: IndexArray
    parked: IndexArray
    gram: CentredGram
    least_eigenvalue: float


def base_of(problem: Problem, state: PathState) -> Base:
    """Choose the base of a state, in which at least one row must be in-bound."""
    in_bound = np.flatnonzero(state.in_bound)
    gram = state.gram or factored_gram(problem.K.block(in_bound, in_bound))
    if not gram.jitter:
        least = 0.0 if state.gram is None else gram.least_eigenvalue
        return Base(in_bound, in_bound[:0], gram, least)
    K_II = problem.K.block(in_bound, in_bound)
    independent = independent_rows(K_II)
    gram = factored_gram(K_II[np.ix_(independent, independent)])
    return Base(in_bound[independent], np.delete(in_bound, independent), gram, 0.0)
