"""From a fit within its tolerance to the exact solution of the dual, by an active-set method."""

import functools
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.errors import SolverError
from span_hpo.kernels import KernelBlocks, kernel_times
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, rows_of, runs_machine_code
from span_hpo.solver.box_qp import BoxQP
from span_hpo.solver.centred_gram import CentredGram, factored_gram
from span_hpo.solver.offsets import OffsetLimits, offset_limits
from span_hpo.solver.rounding import ALPHA_ROUNDING, margin_noise
from span_hpo.solver.smo import improved_in_box

_ROUNDS = 100  # one to three from a finished fit; after `max_iter` it may need dozens
_FEW = 4  # rows outside the box that are sooner dropped one by one than by an interior point
_PAIR_GAP = 1e-6  # where pairs of rows stop to move within the box, in units of the margin,
_PAIR_STEPS = 1000  # or after so many steps: from there on Newton's method is faster


@dataclass(frozen=True, eq=False)
class DualPoint:
    """A feasible point of the dual.

    Attributes
    ----------
    K, y, costs
        The problem; rows with cost 0 take no part.
    alpha
        Dual variables in their box, ``y'alpha = 0``, shape (l,).
    F
        ``K (y alpha)``, shape (l,).
    optimal
        Whether this is known to be the optimum.
    gram
        Factor of the in-bound rows of the optimum, where it is known.
    """

    K: KernelBlocks
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    F: FloatArray
    optimal: bool = False
    gram: CentredGram | None = None

    @property
    def in_bound(self) -> BoolArray:
        """Mask of the rows strictly inside their box."""
        inside: BoolArray = (self.alpha > 0) & (self.alpha < self.costs)
        return inside

    @property
    def limits(self) -> OffsetLimits:
        """What every row says about the offset."""
        return offset_limits(self.y, self.costs, self.alpha, self.F)

    @functools.cached_property
    def offset_gap(self) -> float:
        """How far the limits of the offset contradict each other; not positive at the optimum."""
        lower, upper = self.limits.interval
        return lower - upper

    def offset(self) -> float:
        """Return the mean offset of the in-bound rows; without any, the middle of the interval."""
        in_bound = self.in_bound
        count = np.count_nonzero(in_bound)
        if count:
            return float(in_bound @ (self.y - self.F)) / count
        return sum(self.limits.interval) / 2

    def moved(self, rows: IndexArray, alpha: FloatArray) -> "DualPoint":
        """Return the point with other dual variables in some rows."""
        change = self.y[rows] * (alpha - self.alpha[rows])
        everywhere = self.alpha.copy()
        everywhere[rows] = alpha
        F = self.F + kernel_times(self.K, rows, change)
        return DualPoint(self.K, self.y, self.costs, everywhere, F)


def polished(start: DualPoint) -> DualPoint:
    """Return the optimum of the dual; if it is not reached, the better of start and end.

    On a working set W (at first the in-bound rows of the start) solve the problem without the box,
    ``K_WW d + b 1 = y_W - F_W``, ``1'd = -1'beta``, for a change d of beta:

    - the answer lies in the box: take it, add to W the rows outside that violate their margin,
      stop if there are none;
    - rows leave the box: let pairs of rows move within it for a while, if machine code does that
      (as plain Python it would take longer than the rest);
    - many still leave it: minimise over it with an interior-point method, which finds the rows
      that belong to a bound all at once, and take those out of W;
    - few do, or many once more (rows that are nearly at a bound, or equal to each other): go
      towards the answer up to the first bound, and take the rows that reach it out of W.

    The dual objective never falls.
    """
    y, costs, point = start.y, start.costs, start
    can_move = costs > 0
    largest = float(np.abs(start.K.diagonal()[can_move]).max())
    working = start.in_bound
    paired = crossed = False  # what has been tried since the last step that stayed in the box
    for _ in range(_ROUNDS):
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
            break  # not positive semi-definite: the start is all there is
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
            # With nobody inside, `b` is not determined: the next round starts from a pair of rows
            # that contradict each other.
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
    """Return the point on the way to `wanted` where a bound is reached, and who reaches it."""
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
    """Return the minimum over the box of the working set, None if it is no progress.

    An interior point never touches a bound: a row belongs to one where its distance from it,
    times the scale of the kernel, is less than its multiplier.

    Parameters
    ----------
    point
        Where to start.
    W
        The working set, n rows.
    G
        Gram matrix of the working set about its centroid, shape (n, n).
    scale
        Mean diagonal of G.
    """
    y, alpha, costs = point.y[W], point.alpha[W], point.costs[W]
    residual = y - point.F[W]
    imbalance = float(point.y @ point.alpha)
    # Changes of beta are measured in units of 1 / scale, so that the program has no dimension.
    # No dual variable can exceed what the other class may hold: a nearer bound than some costs,
    # with which the interior point is sooner found.
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
    # The rows that stay inside take up what rounding others to their bounds has shifted.
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
    # What np.clip does, in a quarter of its time on arrays of this size.
    return np.minimum(np.maximum(alpha, 0.0), costs)
