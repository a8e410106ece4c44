"""From LIBSVM's answer to the exact solution of the dual, by an active-set method."""

from dataclasses import dataclass

import numpy as np

from span_hpo.arrays import BoolArray, FloatArray, IndexArray
from span_hpo.errors import SolverError
from span_hpo.hull import Hull, in_bound_hull
from span_hpo.kernels import KernelBlocks, kernel_times
from span_hpo.qp import BoxQP

_ROUNDS = 100
_FEW = 4  # rows outside the box that are sooner dropped one by one than by an interior point
_ALPHA_ROUNDING = 1e-13  # relative to the largest alpha: closer to a bound is at the bound
_NOISE = 1e-13  # rounding of a decision value, relative to 1 + sum(alpha) max|K_ii|


@dataclass(frozen=True, eq=False)
class OffsetLimits:
    """What every row says about the offset ``b``, shape (l,) each.

    `lower` holds ``y_i - F_i`` of the rows whose ``beta_i`` may grow, `upper` of those whose
    ``beta_i`` may fall; minus and plus infinity elsewhere. The KKT conditions are
    ``max(lower) <= b <= min(upper)``.
    """

    lower: FloatArray
    upper: FloatArray

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the interval of offsets that no row forbids."""
        return float(self.lower.max()), float(self.upper.min())


def offset_limits(
    y: FloatArray, costs: FloatArray, alpha: FloatArray, F: FloatArray
) -> OffsetLimits:
    """Return the limits that the rows put on the offset, with ``F = K (y alpha)``."""
    positive = y > 0
    can_grow, can_fall = alpha < costs, alpha > 0
    offset = y - F
    return OffsetLimits(
        lower=np.where(np.where(positive, can_grow, can_fall), offset, -np.inf),
        upper=np.where(np.where(positive, can_fall, can_grow), offset, np.inf),
    )


def margin_noise(alpha: FloatArray, largest: float) -> float:
    """Return how far rounding may move a decision value, with `largest` the largest |K_ii|."""
    return _NOISE * (1 + float(alpha.sum()) * largest)


class DualPoint:
    """A feasible point of the dual on its way to the optimum.

    On a working set W (at first the in-bound rows of the start) `polish` solves the problem without
    the box, ``K_WW d + b 1 = y_W - F_W``, ``1'd = -1'beta``, for a change d of beta:

    - the answer lies in the box: take it, add to W the rows outside that violate their margin,
      stop if there are none;
    - many rows leave the box: minimise over it with an interior-point method, which finds the rows
      that belong to a bound all at once, and take those out of W;
    - few do, or many again (rows that are nearly at a bound, or equal to each other): go towards
      the answer up to the first bound, and take the rows that reach it out of W.

    The dual objective never falls.

    Parameters
    ----------
    K, y, costs
        The problem; all costs are positive.
    alpha
        Where to start: in the box, ``y'alpha = 0``.
    """

    def __init__(
        self, K: KernelBlocks, y: FloatArray, costs: FloatArray, alpha: FloatArray
    ) -> None:
        self.K = K
        self.y = y
        self.costs = costs
        self.alpha = alpha
        self.F = kernel_times(K, y * alpha)
        self.hull: Hull | None = None  # of the in-bound rows, once the optimum is reached

    def offset(self) -> float:
        """Return the mean offset of the in-bound rows; without any, the middle of the interval."""
        inside = self._inside()
        count = np.count_nonzero(inside)
        if count:
            return float(inside @ (self.y - self.F)) / count
        return sum(self._limits().interval) / 2

    def violation(self) -> float:
        """Return how far the limits of the offset contradict each other."""
        lower, upper = self._limits().interval
        return lower - upper

    def polish(self) -> bool:
        """Move to the optimum and tell whether it was reached; if not, never end further off."""
        y, costs, start = self.y, self.costs, (self.alpha, self.F)
        largest = float(np.abs(self.K.diagonal()).max())
        working = self._inside()
        crossed = False
        for _ in range(_ROUNDS):
            noise = margin_noise(self.alpha, largest)
            if not working.any():
                limits = self._limits()
                lower, upper = limits.interval
                if lower - upper <= noise:
                    return True
                working[[limits.lower.argmax(), limits.upper.argmin()]] = True
            W = np.flatnonzero(working)
            K_WW = self.K.block(W, W)
            try:
                hull = in_bound_hull(K_WW)
            except SolverError:
                break  # not positive semi-definite: LIBSVM's answer is all there is
            y_W, costs_W = y[W], costs[W]
            d, b = hull.solve(y_W - self.F[W], -float(y @ self.alpha))
            wanted = self.alpha[W] + y_W * d
            outside = np.count_nonzero((wanted < 0) | (wanted > costs_W))
            if not outside:
                rounding = _ALPHA_ROUNDING * max(self.alpha.max(), wanted.max())
                wanted[wanted < rounding] = 0.0
                self._move(W, np.where(costs_W - wanted < rounding, costs_W, wanted))
                working = self._inside()
                excess = y * (self.F + b) - 1
                violated = (excess < -noise) & (self.alpha == 0)
                violated |= (excess > noise) & (self.alpha == costs)
                if not violated.any():
                    self.hull = hull if np.count_nonzero(working) == len(W) else None
                    return True
                working |= violated
                crossed = False
            else:
                found = None
                if outside > _FEW and not crossed:
                    found = self._across(W, hull.centred(K_WW), hull.scale)
                    crossed = True
                if found is None:
                    found, at_bound = self._towards(W, wanted)
                else:
                    at_bound = (found == 0) | (found == costs_W)
                self._move(W, found)
                working[W[at_bound]] = False
        reached = self.violation(), self.alpha, self.F
        self.alpha, self.F = start
        if reached[0] < self.violation():
            _, self.alpha, self.F = reached
        return False

    def _inside(self) -> BoolArray:
        inside: BoolArray = (self.alpha > 0) & (self.alpha < self.costs)
        return inside

    def _limits(self) -> OffsetLimits:
        return offset_limits(self.y, self.costs, self.alpha, self.F)

    def _move(self, rows: IndexArray, alpha: FloatArray) -> None:
        change = np.zeros(len(self.alpha))
        change[rows] = self.y[rows] * (alpha - self.alpha[rows])
        self.F = self.F + kernel_times(self.K, change)
        self.alpha = self.alpha.copy()
        self.alpha[rows] = alpha

    def _towards(self, W: IndexArray, wanted: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return the point on the way to `wanted` where a bound is reached, and who reaches it."""
        alpha, costs = self.alpha[W], self.costs[W]
        step = wanted - alpha
        bound = np.where(step > 0, costs, 0.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            reach = np.where(step != 0, (bound - alpha) / step, np.inf)
        blocked = reach <= reach.min()
        moved = _in_box(alpha + reach.min() * step, costs)
        return np.where(blocked, bound, moved), blocked

    def _across(self, W: IndexArray, G: FloatArray, scale: float) -> FloatArray | None:
        """Return the minimum over the box of the working set, None if it is no progress.

        An interior point never touches a bound: a row belongs to one where its distance from it,
        times the scale of the kernel, is less than its multiplier.
        """
        y, alpha, costs = self.y[W], self.alpha[W], self.costs[W]
        residual = y - self.F[W]
        imbalance = float(self.y @ self.alpha)
        # Changes of beta are measured in units of 1 / scale, so that the program has no dimension.
        at_zero, at_cost = -y * alpha * scale, y * (costs - alpha) * scale
        try:
            minimum = BoxQP(G / scale).solve(
                -residual,
                -imbalance * scale,
                np.minimum(at_zero, at_cost),
                np.maximum(at_zero, at_cost),
            )
        except SolverError:
            return None
        change = minimum.x / scale
        nearly = np.abs(G @ change - residual + minimum.multiplier) / scale
        found = _in_box(alpha + y * change, costs)
        found[found < nearly] = 0.0
        found = np.where(costs - found < nearly, costs, found)
        # The rows that stay inside take up what rounding others to their bounds has shifted.
        excess = y * (imbalance + y @ (found - alpha))
        room = np.where(excess > 0, found, costs - found) * ((found > 0) & (found < costs))
        if room.sum() < abs(excess[0]):
            return None
        if excess[0]:
            found -= excess * room / room.sum()
        change = y * (found - alpha)
        gain = change @ residual - 0.5 * change @ G @ change
        return found if gain > 0 else None


def _in_box(alpha: FloatArray, costs: FloatArray) -> FloatArray:
    # What np.clip does, in a quarter of its time on arrays of this size.
    return np.minimum(np.maximum(alpha, 0.0), costs)
