"""Improve a fit within a tolerance to the exact solution of the dual by an active-set method."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.kernels import KernelBlocks, kernel_times
from span_hpo.runtime import (
    BoolArray,
    FloatArray,
    IndexArray,
    check_time,
    rows_of,
    runs_machine_code,
)
from span_hpo.solver.box_qp import BoxQP
from span_hpo.solver.centred_gram import CentredGram, factored_gram
from span_hpo.solver.offsets import OffsetLimits, offset_limits
from span_hpo.solver.rounding import ALPHA_ROUNDING, margin_noise
from span_hpo.solver.smo import improved_in_box

_ROUNDS = 100  # a finished fit needs one to three rounds, one cut off by `max_iter` dozens
_FEW = 4  # up to this many rows outside the box are dropped faster one by one than all at once
_PAIR_GAP = 1e-6  # gap in units of the margin below which Newton's method beats pairwise steps
_PAIR_STEPS = 1000  # number of pairwise steps after which Newton's method is faster


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A feasible point of the dual.

    Attributes
    ----------
    K, y, costs
        Kernel matrix, labels and costs of the problem; rows with cost 0 take no part.
    alpha
        Dual variables in their box with ``y'alpha = 0``, shape (l,).
    F
        ``K (y alpha)``, shape (l,).
    optimal
        Whether the point is known to be the optimum.
    gram
        Factored Gram matrix of the in-bound rows if the point is optimal and the factor is known.
    spans
        Free squared spans if the point is optimal and they are known, shape (l,).
    is_only
        Whether the point is known to be the only optimum, as `span_hpo.solver.optimal_face` would
        find out.
    """

    K: KernelBlocks
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    F: FloatArray
    optimal: bool = False
    gram: CentredGram | None = None
    spans: FloatArray | None = None
    is_only: bool = False

    @property
    def in_bound(self) -> BoolArray:
        """Mask of the rows strictly inside their box."""
        in_bound: BoolArray = (self.alpha > 0) & (self.alpha < self.costs)
        return in_bound

    @property
    def limits(self) -> OffsetLimits:
        """The limits that each row puts on the offset."""
        return offset_limits(self.y, self.costs, self.alpha, self.F)

    @functools.cached_property
    def offset_gap(self) -> float:
        """How far the limits of the offset contradict each other; at most 0 at the optimum."""
        lower, upper = self.limits.interval
        return lower - upper

    @functools.cached_property
    def offset(self) -> float:
        """The mean offset of the in-bound rows, or the middle of `limits` without any."""
        in_bound = self.in_bound
        count = int(np.count_nonzero(in_bound))
        if count:
            return float(in_bound @ (self.y - self.F)) / count
        return sum(self.limits.interval) / 2

    def moved(self, rows: IndexArray, alpha: FloatArray) -> "DualPoint":
        """Return the point with new dual variables in the given rows."""
        change = self.y[rows] * (alpha - self.alpha[rows])
        everywhere = self.alpha.copy()
        everywhere[rows] = alpha
        F = self.F + kernel_times(self.K, rows, change)
        return DualPoint(self.K, self.y, self.costs, everywhere, F)


def polished(start: DualPoint) -> DualPoint:
    """Return the optimum of the dual or, if it is not reached, the better of start and end.

    Every round solves the problem without the box on a working set W, which at first holds the
    in-bound rows of the start. It solves ``K_WW d + b 1 = y_W - F_W`` and ``1'd = -1'beta`` for a
    change d of beta.

    - If the answer lies in the box, take it, and add to W the rows outside W that violate their
      margin. Stop if there are none.
    - If rows leave the box, let pairs of rows move within the box for a while. This is skipped
      without machine code, because plain Python would take longer than all the rest.
    - If many rows still leave the box, minimise over the box with an interior-point method, which
      finds all rows that belong to a bound at once, and take these rows out of W.
    - If only a few rows leave the box, or many do so again because they are nearly at a bound or
      equal to each other, go towards the answer up to the first bound, and take the rows that reach
      it out of W.

    The dual objective never decreases.
    """
    y, costs, point = start.y, start.costs, start
    can_move = costs > 0
    largest = float(np.abs(start.K.diagonal()[can_move]).max())
    working = start.in_bound
    paired = crossed = False  # what has been tried since the last step that stayed in the box
    for _ in range(_ROUNDS):
        check_time()
        noise = margin_noise(point.alpha, largest)
        if not working.any():
            limits = point.limits
            lower, upper = limits.interval
            if lower - upper <= noise:
                return replace(point, optimal=True)
            working[[limits.lower.argmax(), limits.upper.argmin()]] = True
        W = rows_of(working)
        K_WW = point.K.block(W, W)
        try:
            gram = factored_gram(K_WW)
        except SolverError:
            break  # the kernel is not positive semi-definite, so no further step is defined
        y_W, costs_W = y[W], costs[W]
        d, b = gram.solve(y_W - point.F[W], -float(y @ point.alpha))
        wanted = point.alpha[W] + y_W * d
        outside = np.count_nonzero((wanted < 0) | (wanted > costs_W))
        if not outside:
            rounding = ALPHA_ROUNDING * max(point.alpha.max(), wanted.max())
            wanted[wanted < rounding] = 0.0
            point = point.moved(W, np.where(costs_W - wanted < rounding, costs_W, wanted))
            working = point.in_bound
            margin = y * (point.F + b)
            violated = (margin < 1 - noise) & (point.alpha == 0)
            violated |= (margin > 1 + noise) & (point.alpha == costs)
            violated &= can_move
            if not violated.any():
                unchanged = np.count_nonzero(working) == len(W)
                return replace(point, optimal=True, gram=gram if unchanged else None)
            if working.any():
                working |= violated
            # Without in-bound rows, `b` is not determined, and the next round starts from a pair
            # of rows whose limits contradict each other.
            paired = crossed = False
            continue
        found = None
        if not (paired or gram.jitter) and runs_machine_code():
            paired = True
            alpha_W, v_W = point.alpha[W], y_W - point.F[W]
            moved = improved_in_box(K_WW, alpha_W, y_W, costs_W, v_W, _PAIR_GAP, _PAIR_STEPS)
            at_bound = ((moved == 0) | (moved == costs_W)) & (moved != alpha_W)
            if at_bound.any():
                found = moved
        if found is None and outside > _FEW and not crossed:
            crossed = True
            found = _minimum_in_box(point, W, gram.centred(K_WW), gram.scale)
            if found is not None:
                at_bound = (found == 0) | (found == costs_W)
        if found is None:
            found, at_bound = _first_bound(point, W, wanted)
        point = point.moved(W, found)
        working[W[at_bound]] = False
    return min(start, point, key=lambda reached: reached.offset_gap)


def _first_bound(
    point: DualPoint, W: IndexArray, wanted: FloatArray
) -> tuple[FloatArray, BoolArray]:
    """Return the first point at a bound on the way to `wanted`, and a mask of the rows at it."""
    alpha, costs = point.alpha[W], point.costs[W]
    step = wanted - alpha
    bound = np.where(step > 0, costs, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = np.where(step != 0, (bound - alpha) / step, np.inf)
    blocked = reach <= reach.min()
    return np.where(blocked, bound, _in_box(alpha + reach.min() * step, costs)), blocked


def _minimum_in_box(
    point: DualPoint, W: IndexArray, G: FloatArray, scale: float
) -> FloatArray | None:
    """Return the minimum over the box of the working set, or None if it is no progress.

    An interior point never touches a bound. A row is set to a bound if its distance from the bound,
    times the scale of the kernel, is less than its multiplier.

    Parameters
    ----------
    point
        Point at which to start.
    W
        Indices of the n rows in the working set.
    G
        Gram matrix of the working set about its centroid, shape (n, n).
    scale
        Mean diagonal of G.
    """
    y, alpha, costs = point.y[W], point.alpha[W], point.costs[W]
    residual = y - point.F[W]
    imbalance = float(point.y @ point.alpha)
    # Changes of beta are measured in units of 1 / scale, which makes the program dimensionless.
    # No dual variable can exceed the sum of the costs of the other class. Twice the smaller of the
    # two sums is nearer than some costs, with room to spare, and the interior point is found
    # sooner with it.
    positive = point.y > 0
    most = 2 * min(point.costs[positive].sum(), point.costs[~positive].sum())
    reach = np.minimum(costs, most)
    at_zero, at_cost = -y * alpha * scale, y * (reach - alpha) * scale
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
    # The in-bound rows make up for the shift of the sum that setting others to a bound causes.
    shift = imbalance + float(y @ (found - alpha))
    room = np.where(y * shift > 0, found, costs - found) * ((found > 0) & (found < costs))
    total_room = float(room.sum())
    if total_room < abs(shift):
        return None
    if shift:
        found -= y * shift * room / total_room
    change = y * (found - alpha)
    gain = change @ residual - 0.5 * change @ G @ change
    return found if gain > 0 else None


def _in_box(alpha: FloatArray, costs: FloatArray) -> FloatArray:
    # This gives the same as np.clip in a quarter of its time on arrays of this size.
    return np.minimum(np.maximum(alpha, 0.0), costs)
