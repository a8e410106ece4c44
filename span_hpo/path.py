"""The dual path of one row: its dual variable falls to zero while all others stay optimal.

In signed coordinates (``alpha`` and ``g = y f - 1``) the solution is piecewise linear in
``t = alpha_p(0) - alpha_p``. A segment ends where a row changes its kind:

========  ====================  ==============  =====================
kind      moving coordinate     its interval    leaves the interval
========  ====================  ==============  =====================
ZERO      g, alpha = 0          [0, inf)        becomes INSIDE
INSIDE    alpha, g = 0          [0, C]          becomes ZERO, BOUNDED
BOUNDED   g, alpha = C          (-inf, 0]       becomes INSIDE
PARKED    g, 0 < alpha < C      [0, 0]          becomes INSIDE
========  ====================  ==============  =====================

A PARKED row lies in the affine hull of the INSIDE ones, so that its margin stays at 1 and its dual
variable is left alone until one of them goes.

The tableau P of a base set maps a change of what is fixed at the base (g of base rows, alpha of the
others) to a change of what moves there. A path keeps the list D of rows that are INSIDE now but not
in the base, or the reverse; the row p itself is in D if it is in the base. With
``P_DD c = P_Dp`` the direction is ``P_:D c - P_:p``, and ``c`` in the rows of D.
"""

from typing import NamedTuple

import numpy as np

from span_hpo.arrays import Array, FloatArray, IndexArray
from span_hpo.jit import compiled

ZERO, INSIDE, BOUNDED, PARKED, REMOVED = 0, 1, 2, 3, 4
RUNNING, ERROR, SUCCESS, END, NEEDS_COLUMN, LONG, LOST = 0, 1, 2, 3, 4, 5, 6

MOST_CHANGED = 80  # rows in D before the tableau is made anew
MOST_SEGMENTS = 150  # segments before the tableau is made anew
_STILL = 1e-11  # a coordinate that moves slower than this, in units of alpha_p, stands still
_TOUCHING = 1e-12  # times alpha_p: distances from a bound below this tie, the faster row is first
_NOTHING = 1e-300  # a room that is not there
_FINISHED = 1e-10  # relative to alpha_p: what may be left of it at the end
_NEGATIVE_SPAN = -1e-9  # a squared span below this means that precision is lost
_SINGULAR = 1e-14  # a pivot relative to its column
_LEAST_BEYOND = 1.001  # relative to alpha_p: how far a certificate must reach
_CLEAR = 1e-9  # what a margin must be away from 0 before a path stops for it


class Columns(NamedTuple):
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
    tracked
        Number of leading rows that are watched, shape (k,).
    whole, remaining
        What ``alpha_p`` was in the fit, and what is left of it, shape (k,).
    start_margin, margin
        ``y_p f(x_p)`` at the base and now, shape (k,).
    value, lower, upper, kind
        Moving coordinate of every row, its interval and its kind, shape (k, w).
    changed, n_changed
        The list D of every path, shape (k, MOST_CHANGED), and its length.
    n_inside
        Number of INSIDE rows, shape (k,).
    segments
        Segments since the tableau was made, shape (k,).
    outcome
        Why the path stands still: ERROR or SUCCESS (proven, up to the check of the state),
        END (alpha_p is 0), NEEDS_COLUMN (of `wanted`), LONG or LOST.
    bound, beyond, reach
        For SUCCESS: the lower bound of ``y_p f^p(x_p)`` if the state is optimal, and ``s`` and
        ``L sum_j |lambda_j|`` of the certificate, shape (k,).
    """

    row: IndexArray
    own: FloatArray
    own_square: FloatArray
    tracked: IndexArray
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
    n_inside: IndexArray
    segments: IndexArray
    outcome: Array
    wanted: IndexArray
    bound: FloatArray
    beyond: FloatArray
    reach: FloatArray


def dual_variables(table: Columns, paths: Paths, k: int) -> FloatArray:
    """Return alpha of the watched rows where path k stands."""
    kind, p = paths.kind[k], paths.row[k]
    width = len(kind)
    alpha: FloatArray = (
        (kind == INSIDE) * paths.value[k]
        + (kind == BOUNDED) * table.costs[:width]
        + (kind == PARKED) * table.alpha[:width]
    )
    if p < width:
        alpha[p] = paths.remaining[k]
    return alpha


@compiled()
def follow_paths(
    table: Columns, paths: Paths, todo: IndexArray, complete: bool, most_segments: int
) -> None:
    """Follow some of the paths until each of them has an outcome."""
    n_base, y, costs = table.n_base, table.y, table.costs
    slot, columns = table.slot, table.columns
    memory = np.empty((MOST_CHANGED + 1) * paths.own.shape[1])
    for k in todo:
        p, count = paths.row[k], paths.tracked[k]
        in_base = p < n_base
        own = paths.own[k]
        remaining, margin = paths.remaining[k], paths.margin[k]
        touching = _TOUCHING * paths.whole[k]
        kind = paths.kind[k]
        value, lower, upper = (
            paths.value[k, :count],
            paths.lower[k, :count],
            paths.upper[k, :count],
        )
        D, m = paths.changed[k], paths.n_changed[k]
        n_inside, segments = paths.n_inside[k], paths.segments[k]
        # The columns of p and then of D, as far as rows are watched.
        outcome = RUNNING
        memory[:count] = own[:count]
        for i in range(m):
            if slot[D[i]] < 0:
                paths.wanted[k] = D[i]
                outcome = NEEDS_COLUMN
                break
            memory[(i + 1) * count : (i + 2) * count] = columns[slot[D[i]], :count]
        while outcome == RUNNING:
            # The direction of every watched row and of the margin of p.
            sliding = n_inside == 0
            if sliding:
                # Nobody is inside: the offset slides towards -y_p and alpha stays.
                direction = -y[p] * y[:count]
                margin_direction = -1.0
            else:
                block = memory[: (m + 1) * count].reshape(m + 1, count)
                c = np.zeros(m + 1)
                c[0] = -1.0
                known = 0 if in_base else 1
                if m + 1 > known:
                    unknown = np.empty(m + 1, dtype=np.intp)
                    unknown[0] = p
                    unknown[1:] = D[:m]
                    unknown = unknown[known:]
                    system = np.empty((len(unknown), len(unknown)))
                    for i in range(len(unknown)):
                        system[:, i] = block[i + known][unknown]
                    rhs = c.copy() if in_base else block[0][unknown]
                    try:
                        c[known:] = np.linalg.solve(system, rhs)
                    except Exception:  # noqa: BLE001  all that Numba can catch: a singular system
                        outcome = LOST
                        break
                direction = c @ block
                if in_base:
                    direction[unknown] = c
                    margin_direction = c[0]
                else:
                    # Row p of the tableau is its column, with the other sign in the base rows.
                    margin_direction = -paths.own_square[k]
                    if m > 0:
                        direction[unknown] = c[1:]
                        margin_direction += (np.where(unknown < n_base, -c[1:], c[1:]) * rhs).sum()
                if margin_direction > -_NEGATIVE_SPAN:
                    outcome = LOST
                    break
                margin_direction = min(margin_direction, 0.0)

            # The ratio test: who is first at the end of its interval?
            rate = np.maximum(
                (direction - _STILL) / np.maximum(upper - value, touching),
                (-direction - _STILL) / np.maximum(value - lower, touching),
            )
            first = rate.argmax()
            event = rate[first] > 0
            step = np.inf
            if event:
                forward = direction[first] > 0
                left = upper[first] - value[first] if forward else value[first] - lower[first]
                step = max(left, 0.0) / np.abs(direction[first])

            if sliding:
                if not event:
                    outcome = LOST
                    break
            else:
                if not complete and margin + 2 * remaining * margin_direction > _CLEAR:
                    # The direction as a certificate: how far does the box allow to follow it?
                    inside = np.flatnonzero(kind[:count] == INSIDE)
                    move, at = direction[inside], value[inside]
                    room = np.where(move > 0, upper[inside] - at, at - lower[inside])
                    speed = np.abs(move) * (np.abs(move) > _STILL)
                    share = (speed / np.maximum(room, _NOTHING)).max() * 2 * remaining
                    L = 2 * remaining / max(share, 1.0)
                    if _LEAST_BEYOND * remaining < L:
                        bound = margin + 0.5 * L * L * margin_direction / (L - remaining)
                        if bound > _CLEAR:
                            paths.bound[k] = bound
                            paths.beyond[k] = L - remaining
                            paths.reach[k] = L * np.abs(move).sum()
                            outcome = SUCCESS
                            break
                if remaining - step <= _FINISHED * paths.whole[k]:
                    step = remaining
                    event = False
                    outcome = END
                remaining -= step

            # The step.
            if step > 0:
                value += step * direction
                margin += step * margin_direction
            segments += 1
            joins = False
            if event:
                if kind[first] == INSIDE:
                    n_inside -= 1
                    value[first] = 0.0
                    if direction[first] < 0:
                        kind[first], lower[first], upper[first] = ZERO, 0.0, np.inf
                    else:
                        kind[first], lower[first], upper[first] = BOUNDED, -np.inf, 0.0
                else:
                    n_inside += 1
                    if kind[first] == ZERO:
                        value[first] = 0.0
                    elif kind[first] == BOUNDED:
                        value[first] = costs[first]
                    else:
                        value[first] = table.alpha[first]
                    kind[first], lower[first], upper[first] = INSIDE, 0.0, costs[first]
                place = 0
                while place < m and D[place] != first:
                    place += 1
                joins = place == m
                if joins:
                    D[m] = first
                    m += 1
                else:
                    m -= 1
                    D[place] = D[m]
                    memory[(place + 1) * count : (place + 2) * count] = memory[
                        (m + 1) * count : (m + 2) * count
                    ]
            if outcome == RUNNING:
                if not complete and margin <= -_CLEAR:
                    outcome = ERROR
                elif m == MOST_CHANGED or segments >= most_segments:
                    outcome = LONG
                elif joins and slot[first] < 0:
                    paths.wanted[k] = first
                    outcome = NEEDS_COLUMN
                elif joins:
                    memory[m * count : (m + 1) * count] = columns[slot[first], :count]
        paths.remaining[k], paths.margin[k] = remaining, margin
        paths.n_changed[k], paths.n_inside[k], paths.segments[k] = m, n_inside, segments
        paths.outcome[k] = outcome
