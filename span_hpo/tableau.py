"""The tableau of a base set: how all rows answer when one of them moves.

About the centroid of the base rows I, with ``H = L L'`` of `span_hpo.hull`, the Gram matrix ``G``
and ``Z = L^-1 G_IO`` for the other rows O,

- column of a base row i, whose g changes by 1: ``alpha_I`` by ``x = H^-1 (e_i - 1/n)`` and ``g_O``
  by ``G_OI x + 1/n``;
- column of another row k, whose alpha changes by 1: ``alpha_I`` by ``-(H^-1 G_Ik + 1/n)`` and
  ``g_O`` by ``G_Ok - Z'Z_k``;

each with the sign ``y_i y_k``. Kernel values are divided by a power of two, `unit`, that makes the
distances about 1, and dual variables multiplied by it.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.hull import Hull, in_bound_hull, independent_rows
from span_hpo.path import (
    BOUNDED,
    INSIDE,
    MOST_CHANGED,
    NEEDS_COLUMN,
    PARKED,
    REMOVED,
    ZERO,
    Columns,
    Paths,
    follow_paths,
)
from span_hpo.solver import Problem

_LEAST_UNIT = 1e-290  # distances below this are zero
_ON_MARGIN = 1e-9  # rows this close to margin 1 are always watched
_HULL_CHANGES = 3.0  # base rows that may leave on a path: how much of the hull they take along


@dataclass(frozen=True, eq=False)
class State:
    """A point on the paths of some rows.

    Attributes
    ----------
    alpha
        Dual variables, shape (l,).
    excess
        ``g = y f - 1``, shape (l,).
    inside
        Mask of the rows strictly inside their box, or just arrived at an end of it with margin 1;
        without the removed row of a path that has begun.
    hull
        Factor of these rows, if it is known.
    """

    alpha: FloatArray
    excess: FloatArray
    inside: BoolArray
    hull: Hull | None = None


class Tableau:
    """Paths that start from one state, with the columns that they share.

    Parameters
    ----------
    problem
        Kernel, labels and costs.
    state
        Where the paths start; at least one row is inside.
    removed
        The rows whose paths are followed.
    watch
        Which rows are watched. A path that lowers ``y_p f(x_p)`` by `drop` changes the weight
        vector by about ``sqrt(alpha_p drop)``, and the margin of a row by that times its distance
        from the hull; rows whose margin is further from 1 are left out. "class": the drop is what
        leads to a margin of 0; "end": ``alpha_p`` times the squared distance of p; "all": every
        row is watched.
    """

    def __init__(self, problem: Problem, state: State, removed: IndexArray, watch: str) -> None:
        K, y = problem.K, problem.y
        inside = np.flatnonzero(state.inside)
        parked = np.zeros(0, dtype=np.intp)
        hull = state.hull or in_bound_hull(K.block(inside, inside))
        if hull.jitter:
            K_II = K.block(inside, inside)
            independent = independent_rows(K_II)
            parked = np.delete(inside, independent)
            inside = inside[independent]
            hull = in_bound_hull(K_II[np.ix_(independent, independent)])
        n = len(inside)
        others = np.flatnonzero(problem.costs > 0)
        others = others[~np.isin(others, inside)]
        K_IO = K.block(inside, others)
        to_centroid = K_IO.sum(axis=0) / n
        G_IO, G_OO = hull.about_centroid(K_IO, K.diagonal()[others])
        Z, _ = lapack.dtrtrs(hull.L, G_IO, lower=1)
        squared = np.maximum(G_OO - np.einsum("ij,ij->j", Z, Z), 0.0)
        squared += _HULL_CHANGES / n * G_OO
        excess = np.maximum(np.abs(state.excess[others]) - _ON_MARGIN, 0.0)
        reach = excess / np.sqrt(np.maximum(squared, _LEAST_UNIT))
        alpha, margin = state.alpha[removed], np.maximum(1 + state.excess[removed], 0.0)
        if watch == "class":
            radius = np.sqrt(alpha * margin)
        elif watch == "end":
            distances = np.zeros(len(problem))
            distances[inside] = hull.centred_diagonal(K.diagonal()[inside])
            distances[others] = squared
            radius = alpha * np.sqrt(distances[removed])
        else:
            radius = np.full(len(removed), np.inf)
        order = reach.argsort(kind="stable")
        needed = (reach <= radius.max()) | np.isin(others, removed)
        order = order[needed[order]]

        self.problem, self.state = problem, state
        self._radius = np.zeros(len(problem))
        self._radius[removed] = radius
        self.rows = np.concatenate([inside, others[order]])
        self._hull = hull
        self._G_IO, self._Z = G_IO[:, order], Z[:, order]
        self._to_centroid = to_centroid[order]
        self._reach = np.concatenate([np.zeros(n), reach[order]])
        distance = hull.scale if n > 1 else max(float(G_OO.mean()), _LEAST_UNIT)
        self.unit = 2.0 ** round(math.log2(distance))
        rows = self.rows
        alpha, costs = state.alpha[rows] * self.unit, problem.costs[rows] * self.unit
        kind = np.where(state.alpha[rows] == 0, ZERO, BOUNDED).astype(np.int8)
        kind[np.isin(rows, parked)] = PARKED
        kind[:n] = INSIDE
        self._kind = kind
        self._value = np.where(kind == INSIDE, alpha, state.excess[rows])
        self._value[kind == PARKED] = 0.0
        self._lower = np.where(kind == BOUNDED, -np.inf, 0.0)
        self._upper = np.where(kind == INSIDE, costs, np.where(kind == ZERO, np.inf, 0.0))
        self._filled = 0
        self.columns = Columns(
            n_base=n,
            y=y[rows],
            costs=costs,
            alpha=alpha,
            slot=np.full(len(rows), -1, dtype=np.intp),
            columns=np.empty((0, len(rows))),
        )
        self._position = np.full(len(problem), -1)
        self._position[rows] = np.arange(len(rows))

    def paths(self, removed: IndexArray, whole: FloatArray, *, careful: bool = False) -> Paths:
        """Return the start of the paths of some of the removed rows.

        `whole` is what their dual variables were in the fit. A careful path watches all rows of
        the tableau, also those that are there for the sake of other paths.
        """
        count, n = len(removed), self.columns.n_base
        at = self._position[removed]
        value, lower, upper, kind = (
            np.repeat(array[None], count, axis=0)
            for array in (self._value, self._lower, self._upper, self._kind)
        )
        each = np.arange(count)
        lower[each, at], upper[each, at], kind[each, at] = -np.inf, np.inf, REMOVED
        radius = np.full(count, np.inf) if careful else self._radius[removed]
        tracked = np.maximum(np.searchsorted(self._reach, radius, side="right"), n)
        changed = np.zeros((count, MOST_CHANGED), dtype=np.intp)
        changed[:, 0] = at
        return Paths(
            row=at,
            tracked=tracked,
            whole=whole * self.unit,
            remaining=self.columns.alpha[at],
            margin=1 + self.state.excess[removed],
            value=value,
            lower=lower,
            upper=upper,
            kind=kind,
            changed=changed,
            n_changed=np.ones(count, dtype=np.intp),
            n_inside=n - (at < n).astype(np.intp),
            segments=np.zeros(count, dtype=np.intp),
            outcome=np.zeros(count, dtype=np.int8),
            wanted=np.full(count, -1, dtype=np.intp),
            bound=np.full(count, np.nan),
            beyond=np.full(count, np.nan),
            reach=np.full(count, np.nan),
        )

    def follow(self, paths: Paths, complete: bool) -> None:
        """Follow the paths to their ends, making the columns that they ask for."""
        self._add_columns(paths.row)
        todo = np.arange(len(paths.row))
        while len(todo):
            follow_paths(self.columns, paths, todo, complete)
            todo = todo[paths.outcome[todo] == NEEDS_COLUMN]
            self._add_columns(np.unique(paths.wanted[todo]))

    def _add_columns(self, wanted: IndexArray) -> None:
        table, n = self.columns, self.columns.n_base
        wanted = wanted[table.slot[wanted] < 0]
        if not len(wanted):
            return
        hull, base, others = self._hull, wanted[wanted < n], wanted[wanted >= n]
        wanted = np.concatenate([base, others])
        start, end = self._filled, self._filled + len(wanted)
        if end > len(table.columns):
            grown = np.empty((max(end, 2 * len(table.columns)), len(self.rows)))
            grown[:start] = table.columns[:start]
            table = self.columns = table._replace(columns=grown)
        of_base = table.columns[start : start + len(base)]
        of_others = table.columns[start + len(base) : end]
        if len(base):
            unit_vectors = np.full((n, len(base)), -1 / n, order="F")
            unit_vectors[base, np.arange(len(base))] += 1.0
            x, _ = lapack.dpotrs(hull.L, unit_vectors, lower=1)
            x -= x.sum(axis=0) / n  # exact arithmetic would keep the sums at zero
            of_base[:, :n] = x.T * self.unit
            of_base[:, n:] = x.T @ self._G_IO
            of_base[:, n:] += 1 / n
        if len(others):
            at = others - n
            x, _ = lapack.dtrtrs(hull.L, self._Z[:, at], lower=1, trans=1)
            x -= x.sum(axis=0) / n
            of_others[:, :n] = x.T
            of_others[:, :n] += 1 / n
            of_others[:, :n] *= -1
            gram = self.problem.K.block(self.rows[others], self.rows[n:])
            gram -= self._to_centroid
            gram -= self._to_centroid[at][:, None] - hull.mean
            gram -= self._Z[:, at].T @ self._Z
            gram /= self.unit
            of_others[:, n:] = gram
        added = table.columns[start:end]
        added *= table.y
        added *= table.y[wanted][:, None]
        table.slot[wanted] = np.arange(start, end)
        self._filled = end
