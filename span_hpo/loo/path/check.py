"""Checks of the states at which paths have stopped, and what they prove.

A path is only a means of finding a state. Here its dual variables are taken as they are, margins
are computed anew from the kernel, and a certificate of `span_hpo.loo.certificates` or the bounds of
`span_hpo.loo.ends` are evaluated, with bounds on all rounding errors.
"""

import math
from typing import NamedTuple

import numpy as np

from span_hpo.kernels import largest_entry
from span_hpo.loo.ends import end_errors, upper_squares
from span_hpo.loo.path.segments import (
    END,
    ERROR,
    IN_BOUND,
    PARKED,
    SUCCESS,
    Paths,
    TableauColumns,
)
from span_hpo.loo.path.tableau import PathState, Tableau
from span_hpo.loo.path.view import (
    Beyond,
    View,
    beyond_of,
    concerned_rows,
    stops_of,
    view_of,
)
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import (
    ROUNDING_UNIT,
    BoolArray,
    FloatArray,
    IndexArray,
    compiled,
    exact_products,
)
from span_hpo.solver import (
    FEW_OPERATIONS,
    NEGLIGIBLE_GAP,
    ROUNDED_UP,
    curved_gap,
    offset_ends,
    row_gaps,
)

_FEW_ROUNDINGS = (
    FEW_OPERATIONS * ROUNDING_UNIT
)  # rounding of a few operations, relative to their operands
_FEW_COSTS = 16  # largest number of different costs that are counted
_SOLVED = 1e-7  # largest violation of a margin at an end whose value is taken as it is
_CLOSE = 0.5  # accuracy, in units of the margin, of an end from which better ones are sought
_IMBALANCE = 1e-7  # how far sum(y alpha) may be from 0, relative to alpha_p


class Findings(NamedTuple):
    """What is found about k paths; see `Proofs`."""

    margin: FloatArray
    accuracy: FloatArray
    solved: BoolArray
    proven: BoolArray


def checked_paths(tableau: Tableau, paths: Paths, slack: float) -> Proofs:
    """Return what the states of paths prove; only paths at ERROR, SUCCESS or END prove anything.

    Parameters
    ----------
    tableau, paths
        The tableau, and paths that were followed in it.
    slack
        Movement of margins beyond that of the paths for which rows are still looked at.
    """
    found = Proofs.none(len(paths.row))
    findings = Findings(found.margin, found.accuracy, found.solved, found.proven)
    stopped = np.flatnonzero(np.isin(paths.outcome, (ERROR, SUCCESS, END)))
    stops, width = stops_of(tableau, paths, stopped), paths.own.shape[1]
    everyone = np.arange(len(tableau.rows))  # any row may limit a free offset
    for is_free in (False, True):
        chosen = np.flatnonzero(stops.offset_free == is_free)
        if not len(chosen):
            continue
        some, its_stops = stopped[chosen], stops.take(chosen)
        if is_free:
            positions, allowed = everyone, np.full(2, np.inf)
        else:
            positions, allowed = concerned_rows(tableau, its_stops, width, slack)
        view = view_of(tableau, paths, some, its_stops, positions, allowed)
        if is_free:
            _check_free_ends(
                view, tableau.table, paths, some, its_stops.sound, _are_balanced(view), findings
            )
        else:
            beyond = beyond_of(tableau, paths, some, view)
            radius = float(tableau.centroid_distances[: tableau.table.n_base].max())
            _check_paths(
                view,
                beyond,
                tableau.table,
                paths,
                some,
                its_stops.sound,
                largest_entry(tableau.problem.K),
                tableau.least_eigenvalue,
                radius,
                findings,
            )
    # More digits decide what is close to a solution, and whether the offset is free.
    at_end = (paths.outcome[stopped] == END) & ~(found.proven & found.exact)[stopped]
    is_close = (found.accuracy[stopped] <= _CLOSE) | stops.offset_free | ~stops.sound
    for i in np.flatnonzero(at_end & is_close):
        alpha = tableau.state.alpha.copy()
        alpha[tableau.rows[:width]] = stops.alpha[i] / tableau.unit
        found.ends[int(stopped[i])] = alpha
    return found


def state_of(tableau: Tableau, paths: Paths, k: int) -> PathState:
    """Return the state of all rows where a path stands."""
    some = np.array([k])
    stops = stops_of(tableau, paths, some)
    everyone = np.arange(len(tableau.rows))
    view = view_of(tableau, paths, some, stops, everyone, np.full(2, np.inf))
    new = _checked_state(view, tableau.table, paths, k, 0)
    p, kind = tableau.rows[paths.row[k]], paths.kind[k]
    old = tableau.state
    alpha, excess, rounding = old.alpha.copy(), old.excess.copy(), old.rounding.copy()
    alpha[view.rows], excess[view.rows], rounding[view.rows] = new.alpha, new.excess, new.rounding
    alpha[p], excess[p], rounding[p] = view.left[0], new.margin - 1, new.margin_rounding
    in_bound = np.zeros(len(alpha), dtype=bool)
    in_bound[tableau.rows[: len(kind)]] = (kind == IN_BOUND) | (kind == PARKED)
    imbalance = math.fsum((tableau.problem.y * alpha).tolist())
    return PathState(alpha, excess, rounding, imbalance, in_bound)


class _CheckedState(NamedTuple):
    """The state of a path on the rows of a view, computed anew.

    Attributes
    ----------
    alpha, excess, rounding
        Dual variables, ``g = y f - 1`` and bounds on its rounding errors, shape (v,). For p, alpha
        and its cost count as 0, because p has no condition.
    margin, margin_rounding
        Margin ``y_p f(x_p)`` of the removed row, and a bound on its rounding error.
    movement, level
        Upper bounds of the movements of the weight vector and of the centroid.
    """

    alpha: FloatArray
    excess: FloatArray
    rounding: FloatArray
    margin: float
    margin_rounding: float
    movement: float
    level: float


def _checked_state(
    view: View, table: TableauColumns, paths: Paths, k: int, i: int
) -> _CheckedState:
    """Return the state of path k, which is number i of the view."""
    y, place, n = view.y, view.place[i], table.n_base
    y_p = table.y[paths.row[k]]
    own, holders = view.own[i], view.holders[i]
    width = len(own)
    alpha = view.alpha.copy()
    alpha[:width] = own
    if place >= 0:
        alpha[place] = 0.0
    excess = view.excess + y * view.products[i]
    margin = paths.start_margin[k] + y_p * view.products_of_p[i]
    count = holders.sum()
    if count > 0:
        # In-bound rows have margin 1.
        shift = -(holders * y[:width] * excess[:width]).sum() / count
    elif paths.outcome[k] == END:
        # No row holds the offset: take the middle of the interval that the rows allow.
        lower, upper = offset_ends(y, view.costs, alpha, y + y * excess)
        if place >= 0:
            lower[place], upper[place] = -np.inf, np.inf
        shift = (lower.max() + upper.min()) / 2
    else:
        shift = y_p * (paths.margin[k] - margin)
    unit = view.n_terms * ROUNDING_UNIT + _FEW_ROUNDINGS
    rounding = view.rounding + unit * view.spread[i] * view.roots
    rounding += _FEW_ROUNDINGS * (1 + np.abs(shift) + np.abs(view.excess) + np.abs(excess))
    movement = np.sqrt(max(view.square[i], 0.0) + 2 * unit * view.spread[i] ** 2)
    level = np.abs(view.products[i, :n].sum() / n + shift) + rounding[:n].max()
    excess += shift * y
    margin_rounding = view.rounding_of_p[i] + unit * view.spread[i] * np.sqrt(np.abs(view.K_pp[i]))
    margin_rounding += _FEW_ROUNDINGS * (1 + np.abs(shift) + 2 * np.abs(margin))
    margin += y_p * shift
    return _CheckedState(alpha, excess, rounding, margin, margin_rounding, movement, level)


def _least_gap(
    view: View,
    table: TableauColumns,
    state: _CheckedState,
    costs: FloatArray,
    largest: float,
    least_eigenvalue: float,
    radius: float,
    i: int,
) -> float:
    """Return how far the dual may be from its maximum, by the better bound of `solver.gaps`."""
    alpha, excess, rounding = state.alpha, state.excess, state.rounding
    above = costs - alpha
    gap = row_gaps(excess, rounding, alpha, above).sum()
    if least_eigenvalue > 0 and gap * largest > NEGLIGIBLE_GAP:
        held = (alpha > 0) & (above > 0)
        held[table.n_base :] = False
        curved, length, level = curved_gap(
            excess,
            rounding,
            alpha,
            above,
            held,
            view.distances + radius,
            least_eigenvalue,
            np.abs(view.imbalance[i, 0]) + view.imbalance[i, 1],
            view.roots[: table.n_base].max(),
        )
        # Rows outside the view must not be concerned either.
        if (
            state.movement + length <= view.allowed[0]
            and state.level + level + length * radius <= view.allowed[1]
        ):
            change_of_p = length * (view.distance_of_p[i] + radius) + level
            gap = min(gap, curved + view.left[i] * change_of_p)
    return float(gap * ROUNDED_UP)


def _repair(view: View, state: _CheckedState, costs: FloatArray, imbalance: float) -> float:
    """Return how much the dual may fall when the dual variables are made to balance exactly."""
    price = np.abs(state.excess) + state.rounding + 0.5 * imbalance * view.roots * view.roots
    can_grow, can_fall = costs - state.alpha >= imbalance, state.alpha >= imbalance
    raises = np.where(np.where(view.y > 0, can_grow, can_fall), price, np.inf).min()
    lowers = np.where(np.where(view.y > 0, can_fall, can_grow), price, np.inf).min()
    return float(imbalance * max(raises, lowers))


@compiled
def _check_paths(
    view: View,
    beyond: Beyond,
    table: TableauColumns,
    paths: Paths,
    some: IndexArray,
    sound: BoolArray,
    largest: float,
    least_eigenvalue: float,
    radius: float,
    findings: Findings,
) -> None:
    """Enter what the states of some of the paths prove, none of which leaves the offset free."""
    width = view.own.shape[1]
    for i in range(len(some)):
        k, place = some[i], view.place[i]
        imbalance = np.abs(view.imbalance[i, 0]) + view.imbalance[i, 1]
        if not sound[i] or imbalance > _IMBALANCE * view.whole[i]:
            continue
        state = _checked_state(view, table, paths, k, i)
        if state.movement > view.allowed[0] or state.level > view.allowed[1]:
            continue
        costs = view.costs.copy()
        if place >= 0:
            costs[place] = 0.0
        gap = _least_gap(view, table, state, costs, largest, least_eigenvalue, radius, i)
        if paths.outcome[k] == END:
            own = state.alpha[:width]
            roots = view.roots[:width]
            errors = end_errors(
                gap * np.ones(width),
                upper_squares(view.K_pp[i] * np.ones(width), roots * roots, view.K_p[i]),
                np.minimum(own, costs[:width] - own),
                np.abs(state.excess[:width]) + state.rounding[:width],
                roots,
                imbalance,
            )
            findings.margin[k] = state.margin
            findings.accuracy[k] = errors.min() + state.margin_rounding
            findings.solved[k] = True
            # A state that is farther from the solution than its bounds tell is improved first.
            misses = np.maximum(
                -state.excess * (state.alpha < costs), state.excess * (state.alpha > 0)
            )
            is_solved = (misses <= _SOLVED + state.rounding).all()
            findings.proven[k] = is_solved and np.abs(state.margin) > findings.accuracy[k]
        elif paths.outcome[k] == ERROR:
            gap += _repair(view, state, costs, imbalance)
            findings.margin[k] = state.margin + state.margin_rounding + gap / view.left[i]
            findings.proven[k] = findings.margin[k] < 0
        elif beyond.place[i] >= 0:
            j = beyond.place[i]
            holder, left = beyond.holder[j], beyond.imbalance[j]
            if holder < 0:
                continue
            prices = np.abs(state.excess[beyond.rows]) + state.rounding[beyond.rows]
            price = np.abs(state.excess[holder]) + state.rounding[holder]
            path = np.sqrt(beyond.square[j]) + left * view.roots[holder]
            lost = 0.5 * path * path + (beyond.sizes[j] * prices).sum() + left * price
            bound = state.margin - state.margin_rounding
            findings.margin[k] = bound - (lost + gap) / beyond.step[j] * ROUNDED_UP
            findings.proven[k] = findings.margin[k] > 0


@compiled
def _check_free_ends(
    view: View,
    table: TableauColumns,
    paths: Paths,
    some: IndexArray,
    sound: BoolArray,
    balanced: BoolArray,
    findings: Findings,
) -> None:
    """Enter what ends prove at which no row is strictly inside its box; see `loo.ends`."""
    y = view.y
    for i in range(len(some)):
        k, place = some[i], view.place[i]
        if not sound[i]:
            continue
        state = _checked_state(view, table, paths, k, i)
        findings.margin[k] = state.margin
        findings.solved[k] = True
        lower, upper = offset_ends(y, view.costs, state.alpha, y + y * state.excess)
        if place >= 0:
            lower[place], upper[place] = -np.inf, np.inf
        rounding = state.rounding
        low, low_least, low_most = lower.max(), (lower - rounding).max(), (lower + rounding).max()
        high, high_least, high_most = (
            upper.min(),
            (upper - rounding).min(),
            (upper + rounding).min(),
        )
        if balanced[i] and low_most <= high_least:
            error = max(low_most - low, low - low_least) + max(high_most - high, high - high_least)
            findings.accuracy[k] = 0.5 * error * ROUNDED_UP + state.margin_rounding
            findings.proven[k] = np.abs(state.margin) > findings.accuracy[k]


def _are_balanced(view: View) -> BoolArray:
    """Return for which paths all dual variables are at a bound and ``y'alpha`` is exactly 0.

    The sum is that of the costs of the bounded rows. With few different costs, their numbers tell.
    """
    costs, kinds = np.unique(view.costs, return_inverse=True)
    own, (count, width) = view.own, view.own.shape
    alpha = np.repeat(view.alpha[None, :], count, axis=0)
    alpha[:, :width] = own
    inside = np.flatnonzero(view.place >= 0)
    alpha[inside, view.place[inside]] = 0.0
    at_bounds = ((alpha == 0) | (alpha == view.costs)).all(axis=1)
    if len(costs) > _FEW_COSTS:
        terms = alpha * view.y
    else:
        signs = (alpha > 0) * view.y
        numbers = [signs[:, kinds == kind].sum(axis=1) for kind in range(len(costs))]
        terms = np.concatenate(exact_products(np.column_stack(numbers), costs), axis=1)
    balanced: BoolArray = at_bounds & np.array([math.fsum(row) == 0 for row in terms.tolist()])
    return balanced
