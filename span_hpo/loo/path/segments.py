"""Segments of a dual path: one dual variable falls to zero while all other rows stay optimal.

In signed coordinates (``alpha`` and ``g = y f - 1``) the solution is piecewise linear in
``t = alpha_p(0) - alpha_p``. A segment ends where a row changes its kind:

========  ====================  ==============  =====================
kind      moving coordinate     its interval    on leaving it
========  ====================  ==============  =====================
ZERO      g, alpha = 0          [0, inf)        becomes IN_BOUND
IN_BOUND  alpha, g = 0          [0, C]          becomes ZERO, BOUNDED
BOUNDED   g, alpha = C          (-inf, 0]       becomes IN_BOUND
PARKED    g, 0 < alpha < C      [0, 0]          becomes IN_BOUND
========  ====================  ==============  =====================

A PARKED row lies in the affine hull of the IN_BOUND rows. Its margin therefore stays at 1, and its
dual variable does not change until one of them leaves.

The tableau P of a base set maps changes of what is fixed at the base (g of base rows, alpha of the
others) to changes of what moves there. A path stores the list D of rows that are IN_BOUND now but
not in the base, or the reverse. If p is not in the base, the path solves ``P_DD c = P_Dp``, and its
direction is ``P_:D c - P_:p``. If p is in the base, it is put before D, the right-hand side is
``-e_p``, and the direction is ``P_:D c``. The rows of D themselves move by ``c``.
"""

from typing import NamedTuple

import numpy as np

from span_hpo.runtime import Array, FloatArray, IndexArray, compiled
from span_hpo.solver import ALPHA_ROUNDING

ZERO, IN_BOUND, BOUNDED, PARKED, REMOVED = 0, 1, 2, 3, 4
ERROR, SUCCESS, END, NEEDS_COLUMN, LONG, LOST = 1, 2, 3, 4, 5, 6

MOST_CHANGED = 80  # largest number of rows in D before a new tableau is made
MOST_SEGMENTS = 150  # largest number of segments before a new tableau is made
_STILL = 1e-11  # speed, per unit of alpha_p, below which a coordinate counts as standing still
_TOUCHING = 1e-12  # distance from a bound, relative to alpha_p, that counts as a tie
_NOTHING = 1e-300  # least room in a quotient, which avoids a division by zero
_FINISHED = 1e-10  # remainder of alpha_p, relative to alpha_p, that ends a path
_NEGATIVE_SPAN = -1e-9  # squared span, in units of the tableau, below which precision is lost
_SPAN_ROUNDING = 1e-11  # rounding of a squared span in a proof, in units of the tableau
_LEAST_BEYOND = 1e-3  # least distance beyond alpha_p = 0 for a certificate, relative to alpha_p
_CLEAR = 1e-9  # least distance of a margin from 0 for a path to stop


class TableauColumns(NamedTuple):
    """Columns of a tableau, whose rows are in tableau order, base rows first.

    Attributes
    ----------
    n_base
        Number of base rows.
    y, costs, alpha
        Labels, costs and dual variables of the rows at the base, shape (n,).
    slot
        Position of the column of each row in `columns`, or -1 if it is not there, shape (n,).
    columns
        The columns, stored as rows of this array, shape (m, w) with w <= n. Rows beyond w are far
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
        Position of the removed row p in tableau order, shape (k,).
    own, own_square
        Column of p in the tableau, shape (k, w), and ``P_pp``, shape (k,).
    watched
        Number of leading rows that each path watches, shape (k,).
    whole, remaining
        Dual variable ``alpha_p`` in the fit, and what is left of it now, shape (k,).
    start_margin, margin
        Margin ``y_p f(x_p)`` at the base and now, shape (k,).
    value, lower, upper, kind
        Moving coordinate of every row, the ends of its interval and its kind, shape (k, w).
    changed, n_changed
        The list D of every path, shape (k, MOST_CHANGED), and its length, shape (k,).
    n_in_bound
        Number of IN_BOUND rows, shape (k,).
    segments
        Number of segments since the tableau was made, shape (k,).
    outcome
        Why the path has stopped, shape (k,): ERROR or SUCCESS (proven, if the state passes its
        check), END (``alpha_p`` is 0), NEEDS_COLUMN (of the row `wanted`), LONG (a new tableau is
        needed) or LOST (precision is lost).
    wanted
        Position of the row whose column the path needs, shape (k,).
    beyond, direction
        For SUCCESS: ``s`` of the certificate, shape (k,), and how the IN_BOUND rows move, per unit
        of ``alpha_p``, shape (k, w).
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
    beyond: FloatArray
    direction: FloatArray


def dual_variables(table: TableauColumns, paths: Paths, k: int) -> FloatArray:
    """Return the dual variables of the watched rows where path k stands."""
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
    """Return how the watched rows move, how fast the margin of p falls, and if both are valid.

    `block` holds the columns of p and D, restricted to the watched rows.
    """
    p, m = paths.row[k], paths.n_changed[k]
    in_base = p < table.n_base
    c = np.zeros(m + 1)
    c[0] = -1.0
    # The system has the rows of D, preceded by p if p is in the base.
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
        except np.linalg.LinAlgError:  # the system is singular
            return c, 0.0, False
    direction = c @ block
    if len(rows) > 0:
        direction[rows] = c[start:]
    if in_base:
        fall = -c[0]
    else:
        # Row p of the tableau equals column p, with the opposite sign in the base rows.
        signed = np.where(rows < table.n_base, -c[1:], c[1:])
        fall = paths.own_square[k] - (signed * block[0][rows]).sum()
    # A value slightly below zero is rounding: p lies in the hull.
    return direction, max(fall, 0.0), fall >= _NEGATIVE_SPAN


def _rates(
    direction: FloatArray,
    value: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    least_room: float,
) -> FloatArray:
    """Return how fast each row uses up its room; a row that stands still has no positive rate."""
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
    """Return the row that first reaches the end of its interval, and the step, or infinity."""
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
    """Try the success certificate whose lambda is the direction, as far as the box allows."""
    margin, remaining, n = paths.margin[k], paths.remaining[k], table.n_base
    fall += _SPAN_ROUNDING
    if margin - 2 * remaining * fall <= _CLEAR:
        return False  # even the best choice, L = 2 alpha_p, proves nothing
    in_bound = paths.kind[k, :n] == IN_BOUND
    rate = _rates(direction[:n], value[:n], lower[:n], upper[:n], _NOTHING)
    fastest = np.where(in_bound, rate, 0.0).max()
    for j in paths.changed[k, : paths.n_changed[k]]:
        if j >= n and paths.kind[k, j] == IN_BOUND:
            room = upper[j] - value[j] if direction[j] > 0 else value[j] - lower[j]
            fastest = max(fastest, (np.abs(direction[j]) - _STILL) / max(room, _NOTHING))
    L = 2 * remaining / max(2 * remaining * fastest, 1.0)
    beyond = L - remaining
    if beyond <= _LEAST_BEYOND * remaining:
        return False
    if margin - 0.5 * L * L * fall / beyond <= _CLEAR:
        return False
    paths.beyond[k] = beyond
    paths.direction[k, :n] = in_bound * direction[:n]
    for j in paths.changed[k, : paths.n_changed[k]]:
        if j >= n and paths.kind[k, j] == IN_BOUND:
            paths.direction[k, j] = direction[j]
    return True


def _change_kind(table: TableauColumns, paths: Paths, k: int, row: int, ahead: bool) -> int:
    """Change the kind of a row that has reached the end of its interval, and update D.

    Returns
    -------
    The place of the row in D. A row that was in D is removed, and the last row of D takes its
    place; any other row is added at the end.
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

    `memory` has room for the columns of p and D, which are stored there in one piece for fast
    products.
    """
    p, count, whole = paths.row[k], paths.watched[k], paths.whole[k]
    value, lower, upper = paths.value[k, :count], paths.lower[k, :count], paths.upper[k, :count]
    finished = _FINISHED * whole + ALPHA_ROUNDING * table.alpha.max()
    D = paths.changed[k]
    memory[:count] = paths.own[k, :count]
    loaded = 0  # number of columns of D in the memory
    if not complete and paths.margin[k] <= -_CLEAR:
        return ERROR  # also where the offset has slid before the path began
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
            # No row is in-bound: the offset moves towards -y_p, and alpha does not change.
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
            # The last column takes the place of the one that has left.
            memory[(place + 1) * count : (place + 2) * count] = memory[m * count : (m + 1) * count]
            loaded = m - 1
        if not complete and paths.margin[k] <= -_CLEAR:
            return ERROR
        if paths.n_changed[k] == MOST_CHANGED or paths.segments[k] >= most_segments:
            return LONG


@compiled
def follow_paths(
    table: TableauColumns, paths: Paths, todo: IndexArray, complete: bool, most_segments: int
) -> None:
    """Follow some of the paths until each of them has an outcome."""
    memory = np.empty((MOST_CHANGED + 1) * paths.own.shape[1])
    for k in todo:
        paths.outcome[k] = _follow(table, paths, k, memory, complete, most_segments)
