"""Solve the dual beyond double precision, from a point that is close to the solution.

Where rows differ by orders of magnitude, the rounding of one margin can exceed all of another. Here
dual variables and the offset are unevaluated sums of several doubles, and residuals are sums of
exact products that are rounded once. Steps of an active-set method are computed in double
precision, about the row with the least kernel value and with all rows scaled to the same norm, and
repeated until the residuals do not fall any more.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg import lapack

from span_hpo.kernels import KernelBlocks, kernel_times
from span_hpo.runtime import (
    ROUNDING_UNIT,
    FloatArray,
    IndexArray,
    accurate_dots,
    exact_dots,
    rows_of,
)
from span_hpo.solver.active_set import DualPoint
from span_hpo.solver.offsets import offset_limits
from span_hpo.solver.rounding import dot_rounding, margin_rounding

ONE_ROUNDING = 4 * ROUNDING_UNIT  # relative error of a sum that was rounded once
_PARTS = 4  # largest number of doubles whose sum is a dual variable
_NEAR = 4.0  # residuals smaller than this, in units of their rounding, are computed exactly
_DEPENDENT = 1e-13  # relative pivot below which a row counts as lying in the hull of the others
_UNDERFLOW = 1e-150  # parts of dual variables below this are left out
_IMPROVED = 0.5  # factor by which a useful step reduces the residuals


class ExtendedPoint:
    """A point of the dual with more digits than a double has, which improves step by step.

    Call `refresh` after each step and before any attribute is read, or let `steps` do both.

    Parameters
    ----------
    K, y, costs
        Kernel matrix, labels and costs; rows with cost 0 take no part.
    alpha
        Dual variables to start from, in their boxes, shape (l,).

    Attributes
    ----------
    alpha, above
        ``alpha_i`` and ``C_i - alpha_i``, each rounded once, shape (l,).
    inside
        Mask of the rows strictly inside their boxes, shape (l,).
    imbalance
        The sum ``y'alpha``, rounded once.
    offset
        Doubles whose sum is the offset ``b``, or only 0 if no row is inside.
    residual, error
        ``y_i - f_i``, and bounds on its rounding errors, shape (l,).
    work
        Number of exact products so far, which take most of the time.
    """

    def __init__(
        self, K: KernelBlocks, y: FloatArray, costs: FloatArray, alpha: FloatArray
    ) -> None:
        self._K, self.y, self._costs = K, y, costs
        self.diagonal = K.diagonal()
        self.roots = np.sqrt(np.abs(self.diagonal))
        self._parts = [alpha.copy()]
        self.offset = [0.0]
        self.work = 0
        self._last_residual = math.inf

    def steps(self, most: int, most_products: int) -> Iterator[None]:
        """Improve the point step by step, and pause whenever its attributes are up to date.

        Residuals are computed with twice the digits first, and exactly where that leads no further.

        Parameters
        ----------
        most
            Largest number of steps.
        most_products
            Number of exact products to give up after.
        """
        exactly = False
        for _ in range(most):
            self.refresh(exactly=exactly)
            yield
            if self.work > most_products:
                return
            if not self.improve():
                if exactly:
                    return
                exactly = True

    def refresh(self, *, exactly: bool) -> None:
        """Compute all attributes from the dual variables.

        Residuals of rows close to their margins are exact but for one rounding, or otherwise as if
        they were computed with twice the digits, in a tenth of the time.
        """
        self._measure()
        outside = rows_of((self.alpha < 0) | (self.above < 0))
        if len(outside):  # the last step has left the box by its rounding
            for row in outside:
                self._set(int(row), 0.0 if self.alpha[row] < 0 else float(self._costs[row]))
            self._measure()
        self.inside = (self.alpha > 0) & (self.above > 0)
        self.imbalance = math.fsum((np.array(self._parts) * self.y).ravel().tolist())
        self._support = rows_of(self.alpha)
        self._betas = [(self.y * part)[self._support] for part in self._parts]
        beta = (self.y * self.alpha)[self._support]
        targets = self.y - kernel_times(self._K, self._support, beta)
        sizes = self.roots * (self.alpha @ self.roots)
        rounding = dot_rounding(len(beta), sizes)
        rounding += margin_rounding(targets, 0.0)
        if self.inside.any():
            if self.offset == [0.0]:
                self.offset = [float(targets[self.inside].mean())]
            ends = [math.fsum(self.offset)]
        else:
            self.offset = [0.0]
            ends = list(offset_limits(self.y, self._costs, self.alpha, self.y - targets).interval)
        b = math.fsum(self.offset)
        self.residual, self.error = targets - b, rounding + margin_rounding(targets, b)
        near = self.inside.copy()
        for end in ends:
            near |= np.abs(targets - end) <= _NEAR * rounding
        rows = rows_of(near)
        if exactly:
            self.residual[rows] = self.sums([(rows, -1.0)], self.y[rows], self.offset)
            self.error[rows] = ONE_ROUNDING * np.abs(self.residual[rows])
        else:
            self.residual[rows], n_terms = self._doubled(rows)
            self.error[rows] = dot_rounding(4 * n_terms, dot_rounding(n_terms, sizes[rows] + 1))
            self.error[rows] += dot_rounding(4 * n_terms, margin_rounding(targets, b)[rows])
            self.error[rows] += ONE_ROUNDING * np.abs(self.residual[rows])

    def _doubled(self, rows: IndexArray) -> tuple[FloatArray, int]:
        """Return residuals as if computed with twice the digits, and the number of their terms."""
        block = self._K.block(rows, self._support)
        betas = [beta for beta in self._betas if beta.any()]
        ones = np.ones((len(rows), len(self.offset)))
        A = np.concatenate([block] * len(betas) + [self.y[rows, None], ones], axis=1)
        x = np.concatenate([*(-beta for beta in betas), [1.0], -np.array(self.offset)])
        return accurate_dots(A, x), len(x)

    def _measure(self) -> None:
        """Compute the distances of the dual variables from their bounds."""
        if len(self._parts) == 1:  # sums of two numbers are rounded once in any case
            self.alpha = self._parts[0].copy()
            self.above = self._costs - self.alpha
            return
        columns = list(zip(*(part.tolist() for part in self._parts), strict=True))
        self.alpha = np.array([math.fsum(column) for column in columns])
        self.above = np.array(
            [
                math.fsum((cost, *(-number for number in column)))
                for cost, column in zip(self._costs.tolist(), columns, strict=True)
            ]
        )

    def rounded(self) -> DualPoint:
        """Return the point in double precision, with F as accurate as the residuals."""
        F = self.y - self.residual - math.fsum(self.offset)
        # A dual variable that is inside its box only by its later digits is set to the bound.
        alpha = np.minimum(self.alpha, self._costs)
        return DualPoint(self._K, self.y, self._costs, alpha, F)

    def sums(
        self, terms: list[tuple[IndexArray, float]], plus: FloatArray, minus: list[float]
    ) -> FloatArray:
        """Return ``plus - sum(minus) + factor F_j`` summed over the terms, each rounded once.

        Parameters
        ----------
        terms
            Pairs of an array of rows j, one for each sum, and a factor that is a power of two.
        plus
            Numbers to add, one for each sum.
        minus
            Numbers to subtract from each sum.
        """
        blocks = [factor * self._K.block(rows, self._support) for rows, factor in terms]
        block = np.concatenate([*blocks, np.ones((len(plus), len(minus)))], axis=1)
        nothing, first = np.zeros(len(minus)), -np.array(minus, dtype=float)
        parts = [np.concatenate([np.tile(self._betas[0], len(terms)), first])]
        parts += [
            np.concatenate([np.tile(beta, len(terms)), nothing])
            for beta in self._betas[1:]
            if beta.any()
        ]
        self.work += block.size * len(parts)
        return exact_dots(block, parts, plus)

    @property
    def limits(self) -> tuple[FloatArray, FloatArray]:
        """The limits ``lower`` and ``upper`` of the offset, without its present value."""
        positive, grows, falls = self.y > 0, self.above > 0, self.alpha > 0
        return (
            np.where(np.where(positive, grows, falls), self.residual, -np.inf),
            np.where(np.where(positive, falls, grows), self.residual, np.inf),
        )

    def worst_conflict(self) -> tuple[int, int, float]:
        """Return the rows whose limits of the offset contradict each other most, and by how much.

        The difference of the lower limit of the first row and the upper limit of the second is
        rounded once, so that its sign is exact. If it is not positive, all limits agree.
        """
        lower, upper = self.limits
        i, j = int(lower.argmax()), int(upper.argmin())
        if (lower + self.error).max() < (upper - self.error).min():
            return i, j, float(lower[i] - upper[j])
        i, j = self.largest(lower, 1.0), self.largest(-upper, -1.0)
        return i, j, float(self._differences(np.array([i]), np.array([j]))[0])

    def largest(self, limits: FloatArray, sign: float) -> int:
        """Return the row with the largest of some limits times a sign, in exact arithmetic."""
        best = int(limits.argmax())
        doubtful = rows_of(limits + self.error >= limits[best] - self.error[best])
        while True:
            higher = sign * self._differences(doubtful, np.full(len(doubtful), best))
            if not (higher > 0).any():
                return best
            # Differences are rounded, so that the next round may find a still higher one.
            best, doubtful = int(doubtful[higher.argmax()]), doubtful[higher > 0]

    def _differences(self, first: IndexArray, second: IndexArray) -> FloatArray:
        """Return the differences of the residuals of pairs of rows, each rounded once."""
        return self.sums([(first, -1.0), (second, 1.0)], self.y[first] - self.y[second], [])

    def improve(self) -> bool:
        """Take one step towards the solution, and return whether there was one to take."""
        if not self.inside.any():
            return self._leave_bounds()
        violator, violation = self._worst_violator()
        residual = float(np.abs(self.residual[self.inside]).max())
        stands_still = residual > _IMPROVED * self._last_residual
        self._last_residual = residual
        if stands_still and violation == 0:
            self._last_residual = math.inf  # residuals may become more accurate
            return False
        working = rows_of(self.inside)
        if violation > 0 and (stands_still or residual < _IMPROVED * violation):
            working, self._last_residual = np.append(working, violator), math.inf
        change, shift, hull = self._newton(working)
        if hull is None:
            return self._step(working, change, shift)
        # Moves within the hull change no margin, so that several can follow each other.
        self._last_residual, merged = math.inf, False
        for _ in range(len(working)):
            if hull is None or not self._step(working, hull, 0.0):
                break
            merged = True
            self._measure()
            working = rows_of((self.alpha > 0) & (self.above > 0))
            if not len(working):
                break
            _, _, hull = self._newton(working)
        if merged or len(working) == np.count_nonzero(self.inside):
            return merged
        # The violator cannot move within the hull, so the other rows take a step without it.
        working = rows_of(self.inside)
        change, shift, _ = self._newton(working)
        return self._step(working, change, shift)

    def _worst_violator(self) -> tuple[int, float]:
        """Return the row at a bound that most violates its margin, and by how much, or 0."""
        pull = self.y * self.residual  # how fast the dual rises with alpha
        violation = np.where(self.alpha == 0, pull, -pull) - self.error
        violation[self.inside | (self._costs == 0)] = 0.0
        worst = int(violation.argmax())
        return worst, max(float(violation[worst]), 0.0)

    def _leave_bounds(self) -> bool:
        """Move one or two rows away from their bounds, where no row is inside."""
        i, j, difference = self.worst_conflict()
        room = (self.above if self.y[i] > 0 else self.alpha)[i]
        below = (self.alpha if self.y[j] > 0 else self.above)[j]
        if self.imbalance > 0:
            rows, change = np.array([j]), np.array([-min(self.imbalance, below)])
        elif self.imbalance < 0:
            rows, change = np.array([i]), np.array([min(-self.imbalance, room)])
        elif difference <= 0:
            return False  # all limits agree, so the point is optimal
        else:
            pair = np.array([i, j])
            block = self._K.block(pair, pair)
            square = block[0, 0] + block[1, 1] - 2 * block[0, 1]
            wanted = difference / square if square > 0 else math.inf
            step = min(wanted, room, below)
            rows, change = pair, np.array([step, -step])
        self._last_residual = math.inf
        self._add(rows, change)
        return bool(change.any())

    def _step(self, W: IndexArray, change: FloatArray, shift: float) -> bool:
        """Change ``y alpha`` in W and the offset, up to the first bound."""
        moves = self.y[W] * change
        if not np.isfinite(change).all() or not (moves.any() or shift):
            return False
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            reach = np.where(moves < 0, self.alpha[W] / -moves, self.above[W] / moves)
        reach = np.where(moves == 0, np.inf, reach)
        length = min(1.0, float(reach.min()))
        if length == 0:
            return False
        self._add(W, length * change)
        for row, move in zip(W[reach <= length], moves[reach <= length], strict=True):
            self._set(int(row), float(self._costs[row]) if move > 0 else 0.0)
        if (reach <= length).any():
            self._last_residual = math.inf
        self.offset = _split([*self.offset, length * shift])
        return True

    def _newton(self, W: IndexArray) -> tuple[FloatArray, float, FloatArray | None]:
        """Return the changes of ``y alpha`` in W, and of b, that give all its rows margin 1.

        About a row r of W, the one with the least kernel value, with G the Gram matrix of the
        others, ``G d = (e_i - e_r) + (K_ir - K_rr) y'alpha`` for the residuals e. Rows that lie in
        the hull of others stand still.

        Returns
        -------
        The changes of ``y alpha`` and of b. If a row lies in the hull of others, also a change of
        ``y alpha`` that keeps all margins, raises the dual and is longer than any box.
        """
        K, residual = self._K.block(W, W), self.residual[W]
        r = int(K.diagonal().argmin())
        others = np.delete(np.arange(len(W)), r)
        change, hull = np.zeros(len(W)), None
        if len(others):
            to_r = K[others, r]
            G = K[np.ix_(others, others)] - to_r[:, None] - to_r + K[r, r]
            rhs = residual[others] - residual[r] + self.imbalance * (to_r - K[r, r])
            change[others], dependence = _solved(G, rhs)
            if dependence is not None:
                hull = np.insert(dependence, r, -dependence.sum())
                largest = np.abs(hull) @ (1 / (self.alpha + self.above)[W])
                hull *= (2.0 if residual @ hull >= 0 else -2.0) * len(W) / largest
        change[r] = -self.imbalance - change.sum()
        return change, float(residual[r] - K[r] @ change), hull

    def _add(self, rows: IndexArray, change: FloatArray) -> None:
        """Add changes of ``y alpha``, without rounding the dual variables beyond their parts."""
        everywhere = np.zeros(len(self.y))
        everywhere[rows] = self.y[rows] * change
        columns = zip(*(part.tolist() for part in [*self._parts, everywhere]), strict=True)
        self._parts = list(np.array([_split(list(column)) for column in columns]).T.copy())

    def _set(self, row: int, value: float) -> None:
        for part in self._parts:
            part[row] = 0.0
        self._parts[0][row] = value


def _split(numbers: list[float]) -> list[float]:
    """Return a few doubles with the same sum, each of them what the earlier ones leave over.

    What is so small that errors of its products would underflow is left out.
    """
    parts = []
    for _ in range(_PARTS):
        part = math.fsum(numbers)
        parts.append(part if abs(part) > _UNDERFLOW else 0.0)
        numbers = [*numbers, -part]
    return parts


def _solved(G: FloatArray, rhs: FloatArray) -> tuple[FloatArray, FloatArray | None]:
    """Solve ``G x = rhs`` for a Gram matrix whose rows may have very different norms.

    Returns
    -------
    The solution on independent rows, with 0 for the others, and a vector x with ``G x = 0`` up to
    rounding if some rows lie in the hull of others, or None.
    """
    norms = np.sqrt(np.maximum(G.diagonal(), 0.0))
    scale = np.where(norms > 0, norms, 1.0)
    scaled = np.asfortranarray(G / scale[:, None] / scale)
    factor, pivots, rank, _ = lapack.dpstrf(scaled, lower=1, tol=_DEPENDENT, overwrite_a=0)
    chosen, solution = pivots[:rank] - 1, np.zeros(len(G))
    factor = factor[:rank, :rank]
    if rank:
        solution[chosen], _ = lapack.dpotrs(factor, (rhs / scale)[chosen], lower=1)
    if rank == len(G):
        return solution / scale, None
    dependence, dependent = np.zeros(len(G)), pivots[rank] - 1
    if rank:
        dependence[chosen], _ = lapack.dpotrs(factor, -scaled[chosen, dependent], lower=1)
    dependence[dependent] = 1.0
    return solution / scale, dependence / scale
