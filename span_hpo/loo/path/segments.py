"""The dual path of one row: its dual variable falls to zero while all others stay optimal.

In signed coordinates (``alpha`` and ``g = y f - 1``) the solution is piecewise linear in
``t = alpha_p(0) - alpha_p``. A segment ends where a row changes its kind:

========  ====================  ==============  =====================
kind      moving coordinate     its interval    leaves the interval
========  ====================  ==============  =====================
ZERO      g, alpha = 0          [0, inf)        becomes IN_BOUND
IN_BOUND  alpha, g = 0          [0, C]          becomes ZERO, BOUNDED
BOUNDED   g, alpha = C          (-inf, 0]       becomes IN_BOUND
PARKED    g, 0 < alpha < C      [0, 0]          becomes IN_BOUND
========  ====================  ==============  =====================

A PARKED row lies in the affine hull of the IN_BOUND ones, so that its margin stays at 1 and its
dual variable is left alone until one of them goes.

The tableau P of a base set maps a change of what is fixed at the base (g of base rows, alpha of the
others) to a change of what moves there. A path keeps the list D of rows that are IN_BOUND now but
not in the base, or the reverse. If p is not in the base, ``P_DD c = P_Dp`` and the direction is
``P_:D c - P_:p``; if it is, p is put before D, the right-hand side is ``-e_p`` and the direction
``P_:D c``. The rows of D themselves move by ``c``.
"""

from typing import NamedTuple

import numpy as np

from span_hpo.runtime import Array, FloatArray, IndexArray, compiled
from span_hpo.solver import ALPHA_ROUNDING

ZERO, IN_BOUND, BOUNDED, PARKED, REMOVED = 0, 1, 2, 3, 4
ERROR, SUCCESS, END, NEEDS_COLUMN, LONG, LOST = 1, 2, 3, 4, 5, 6

MOST_CHANGED = 80  # rows in D before the tableau is made anew
MOST_SEGMENTS = 150  # segments before the tableau is made anew
_STILL = 1e-11  # a coordinate that moves slower than this, in units of alpha_p, stands still
_TOUCHING = 1e-12  # times alpha_p: distances from a bound below this tie, the faster row is first
_NOTHING = 1e-300  # a room that is not there
_FINISHED = 1e-10  # relative to alpha_p: what may be left of it at the end of its path
_NEGATIVE_SPAN = -1e-9  # a squared span below this, in units of the tableau: precision is lost
_SPAN_ROUNDING = 1e-11  # of a squared span, in the same units, where it is part of a proof
_LEAST_BEYOND = 1e-3  # relative to alpha_p: how far beyond it a certificate must reach
_CLEAR = 1e-9  # what a margin must be away from 0 before a path stops for it


class TableauColumns(NamedTuple):
    """Columns of a tableau; its rows are in tableau order, base rows first.

    Attributes
    ----------
    n_base
        Number of base rows.
    y, costs, alpha
        Of the rows, shape (n,); dual variables at the base.
    slot
        Where the column of each row is in `columns`, -1 if it is not there, shape (n,).
    columns
        The columns, one in each row of this array, shape (m, w) with w <= n: rows beyond w are far
        from their margins, and no path watches them.
    """

    n_base: int
    y: FloatArray
    costs: FloatArray
    alpha: FloatArray
    slot: IndexArray
    columns: FloatArray


class Paths(NamedTuple):
    """The states of k paths, which can be interrupted and continued.

    Attributes
    ----------
    row
        The removed row p, shape (k,).
    own, own_square
        Its column of the tableau, shape (k, w), and ``P_pp``, shape (k,).
    watched
        Number of leading rows that are watched, shape (k,).
    whole, remaining
        What ``alpha_p`` was in the fit, and what is left of it, shape (k,).
    start_margin, margin
        ``y_p f(x_p)`` at the base and now, shape (k,).
    value, lower, upper, kind
        Moving coordinate of every row, its interval and its kind, shape (k, w).
    changed, n_changed
        The list D of every path, shape (k, MOST_CHANGED), and its length.
    n_in_bound
        Number of IN_BOUND rows, shape (k,).
    segments
        Segments since the tableau was made, shape (k,).
    outcome
        Why the path stands still: ERROR or SUCCESS (proven, up to the check of the state),
        END (alpha_p is 0), NEEDS_COLUMN (of `wanted`), LONG or LOST.
    bound, beyond, weight
        For SUCCESS: the lower bound of ``y_p f^p(x_p)`` if the state is optimal, and ``s`` and
        ``L sum_j |lambda_j|`` of the certificate, shape (k,).
    """

    row: IndexArray
    own: FloatArray
    own_square: FloatArray
    watched: IndexArray
    whole: FloatArray
    remaining: FloatArray
    start_margin: FloatArray
    margin: FloatArray
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    kind: Array
    changed: IndexArray
    n_changed: IndexArray
    n_in_bound: IndexArray
    segments: IndexArray
    outcome: Array
    wanted: IndexArray
    bound: FloatArray
    beyond: FloatArray
    weight: FloatArray


def dual_variables(table: TableauColumns, paths: Paths, k: int) -> FloatArray:
    """Return alpha of the watched rows where path k stands."""
    kind, p = paths.kind[k], paths.row[k]
    width = len(kind)
    alpha: FloatArray = (
        (kind == IN_BOUND) * paths.value[k]
        + (kind == BOUNDED) * table.costs[:width]
        + (kind == PARKED) * table.alpha[:width]
    )
    if p < width:
        alpha[p] = paths.remaining[k]
    return alpha


def _direction(
    table: TableauColumns, paths: Paths, k: int, block: FloatArray
) -> tuple[FloatArray, float, bool]:
    """Return how watched rows move, how fast the margin of p falls, and if that could be solved.

    `block` holds the columns of p and of D, as far as rows are watched.
    """
    p, m = paths.row[k], paths.n_changed[k]
    in_base = p < table.n_base
    c = np.zeros(m + 1)
    c[0] = -1.0
    # The rows of the system: D, and before it p if it is in the base.
    start = 0 if in_base else 1
    rows = np.empty(m + 1, dtype=np.intp)
    rows[0] = p
    rows[1:] = paths.changed[k, :m]
    rows = rows[start:]
    if len(rows) > 0:
        system = np.empty((len(rows), len(rows)))
        for i in range(len(rows)):
            system[:, i] = block[i + start][rows]
        rhs = c.copy() if in_base else block[0][rows]
        try:
            c[start:] = np.linalg.solve(system, rhs)
        except Exception:  # noqa: BLE001  all that Numba can catch: the system is singular
            return c, 0.0, False
    direction = c @ block
    if len(rows) > 0:
        direction[rows] = c[start:]
    if in_base:
        fall = -c[0]
    else:
        # Row p of the tableau is its column, with the other sign in the base rows.
        signed = np.where(rows < table.n_base, -c[1:], c[1:])
        fall = paths.own_square[k] - (signed * block[0][rows]).sum()
    # What is left below zero is rounding: p lies in the hull.
    return direction, max(fall, 0.0), fall >= _NEGATIVE_SPAN


def _rates(
    direction: FloatArray,
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    least_room: float,
) -> FloatArray:
    """Return how fast each row uses up the room that it has; not positive if it stands still."""
    return np.maximum(
        (direction - _STILL) / np.maximum(upper - value, least_room),
        (-direction - _STILL) / np.maximum(value - lower, least_room),
    )


def _first_event(
    direction: FloatArray,
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    touching: float,
) -> tuple[int, float]:
    """Return who is first at the end of its interval, and how far that is; infinity if nobody."""
    rate = _rates(direction, value, lower, upper, touching)
    first = int(rate.argmax())
    if rate[first] <= 0:
        return first, np.inf
    ahead = direction[first] > 0
    room = upper[first] - value[first] if ahead else value[first] - lower[first]
    return first, max(room, 0.0) / np.abs(direction[first])


def _certify(
    table: TableauColumns,
    paths: Paths,
    k: int,
    direction: FloatArray,
    fall: float,
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
) -> bool:
    """Try the direction as the lambda of the success certificate, as far as the box allows."""
    margin, remaining, n = paths.margin[k], paths.remaining[k], table.n_base
    fall += _SPAN_ROUNDING
    if margin - 2 * remaining * fall <= _CLEAR:
        return False  # not even with L = 2 alpha_p, the best choice
    in_bound = paths.kind[k, :n] == IN_BOUND
    rate = _rates(direction[:n], value[:n], lower[:n], upper[:n], _NOTHING)
    fastest = np.where(in_bound, rate, 0.0).max()
    weight = (in_bound * np.abs(direction[:n])).sum()
    for j in paths.changed[k, : paths.n_changed[k]]:
        if j >= n and paths.kind[k, j] == IN_BOUND:
            speed = np.abs(direction[j])
            weight += speed
            room = upper[j] - value[j] if direction[j] > 0 else value[j] - lower[j]
            fastest = max(fastest, (speed - _STILL) / max(room, _NOTHING))
    L = 2 * remaining / max(2 * remaining * fastest, 1.0)
    beyond = L - remaining
    if beyond <= _LEAST_BEYOND * remaining:
        return False
    paths.bound[k] = margin - 0.5 * L * L * fall / beyond
    paths.beyond[k] = beyond
    paths.weight[k] = L * weight
    return bool(paths.bound[k] > _CLEAR)


def _change_kind(table: TableauColumns, paths: Paths, k: int, row: int, ahead: bool) -> int:
    """Let a row that is at the end of its interval change its kind, and D with it.

    Returns
    -------
    Its place in D: where it was, and the last one is now; or at the end, if it is new.
    """
    if paths.kind[k, row] == IN_BOUND:
        paths.n_in_bound[k] -= 1
        paths.value[k, row] = 0.0
        paths.kind[k, row] = BOUNDED if ahead else ZERO
        paths.lower[k, row] = -np.inf if ahead else 0.0
        paths.upper[k, row] = 0.0 if ahead else np.inf
    else:
        paths.n_in_bound[k] += 1
        paths.value[k, row] = 0.0
        if paths.kind[k, row] == BOUNDED:
            paths.value[k, row] = table.costs[row]
        elif paths.kind[k, row] == PARKED:
            paths.value[k, row] = table.alpha[row]
        paths.kind[k, row] = IN_BOUND
        paths.lower[k, row], paths.upper[k, row] = 0.0, table.costs[row]
    D, m = paths.changed[k], paths.n_changed[k]
    place = 0
    while place < m and D[place] != row:
        place += 1
    if place < m:
        D[place] = D[m - 1]
        paths.n_changed[k] = m - 1
    else:
        D[m] = row
        paths.n_changed[k] = m + 1
    return place


def _follow(
    table: TableauColumns,
    paths: Paths,
    k: int,
    memory: FloatArray,
    complete: bool,
    most_segments: int,
) -> int:
    """Follow one path, and return its outcome.

    `memory` has room for the columns of p and D; they are kept there in one piece for fast
    products.
    """
    p, count, whole = paths.row[k], paths.watched[k], paths.whole[k]
    value, lower, upper = paths.value[k, :count], paths.lower[k, :count], paths.upper[k, :count]
    finished = _FINISHED * whole + ALPHA_ROUNDING * table.alpha.max()
    D = paths.changed[k]
    memory[:count] = paths.own[k, :count]
    loaded = 0  # how many columns of D are in the memory
    while True:
        m = paths.n_changed[k]
        while loaded < m:
            if table.slot[D[loaded]] < 0:
                paths.wanted[k] = D[loaded]
                return NEEDS_COLUMN
            loaded += 1
            memory[loaded * count : (loaded + 1) * count] = table.columns[
                table.slot[D[loaded - 1]], :count
            ]
        sliding = paths.n_in_bound[k] == 0
        if sliding:
            # Nobody is inside: the offset goes towards -y_p, and alpha stays.
            direction, fall = -table.y[p] * table.y[:count], 1.0
        else:
            block = memory[: (m + 1) * count].reshape(m + 1, count)
            direction, fall, solved = _direction(table, paths, k, block)
            if not solved:
                return LOST
            if not complete and _certify(table, paths, k, direction, fall, value, lower, upper):
                return SUCCESS
        first, step = _first_event(direction, value, lower, upper, _TOUCHING * whole)
        if sliding and step == np.inf:
            return LOST
        at_end = not sliding and paths.remaining[k] - step <= finished
        if at_end:
            step = paths.remaining[k]
        if step > 0:
            value += step * direction
            paths.margin[k] -= step * fall
            if not sliding:
                paths.remaining[k] -= step
        paths.segments[k] += 1
        if at_end:
            return END
        place = _change_kind(table, paths, k, first, direction[first] > 0)
        if place < m:
            # The last column takes the place of the one that is gone.
            memory[(place + 1) * count : (place + 2) * count] = memory[m * count : (m + 1) * count]
            loaded = m - 1
        if not complete and paths.margin[k] <= -_CLEAR:
            return ERROR
        if paths.n_changed[k] == MOST_CHANGED or paths.segments[k] >= most_segments:
            return LONG


@compiled(_rates, _direction, _first_event, _certify, _change_kind, _follow)
def follow_paths(
    table: TableauColumns, paths: Paths, todo: IndexArray, complete: bool, most_segments: int
) -> None:
    """Follow some of the paths until each of them has an outcome."""
    memory = np.empty((MOST_CHANGED + 1) * paths.own.shape[1])
    for k in todo:
        paths.outcome[k] = _follow(table, paths, k, memory, complete, most_segments)
