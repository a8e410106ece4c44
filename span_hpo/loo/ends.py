"""Proofs of leave-one-out values at a solution of the problem without the row.

Let ``alpha`` be a point of the dual without row p, ``g = y f - 1`` with any offset, and let the
dual be at most ``gap`` below its maximum. For an in-bound row k and ``s > 0`` such that
``alpha_k - s`` and ``alpha_k + s`` are in the box,

``|y_p f^p(x_p) - y_p f(x_p)| <= s |x_p - x_k|^2 / 2 + gap / s + |g_k|``

for every optimal offset of the problem without p. docs/theory.md has the proof. If no row is
in-bound, the point is optimal as soon as ``y'alpha`` is exactly 0 and the limits of the offset
agree in spite of their rounding. The limits then bound the middle of the offsets from both sides.
"""

import numpy as np

from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import (
    ROUNDING_UNIT,
    FloatArray,
    IndexArray,
    rows_of,
)
from span_hpo.solver import FEW_OPERATIONS, ROUNDED_UP, DualSolution

_SQUARE_ROUNDING = FEW_OPERATIONS * ROUNDING_UNIT  # of a squared distance, relative to its terms
_HOLDERS = 4  # number of in-bound rows with the most room that are tried for a proof
_LEAST_ROOM = 1e-150  # least room of a row that is used, which avoids an overflow


def upper_squares(K_pp: FloatArray, K_kk: FloatArray, K_pk: FloatArray) -> FloatArray:
    """Return upper bounds of ``|x_p - x_k|^2`` from kernel values, for arrays that fit together."""
    squares = np.maximum(K_pp + K_kk - 2 * K_pk, 0.0)
    bounds: FloatArray = squares + _SQUARE_ROUNDING * (np.abs(K_pp) + np.abs(K_kk))
    return bounds


def end_errors(
    gap: FloatArray,
    squares: FloatArray,
    room: FloatArray,
    excess: FloatArray,
    roots: FloatArray,
    imbalance: float,
) -> FloatArray:
    """Return bounds on the error of ``y_p f(x_p)``, by one in-bound row k for each.

    If ``|y'alpha| <= e``, row k makes up for it: its step is at most ``s + e`` long, and the bound
    becomes ``(s S + e r)^2 / (2 s) + gap / s + |g_k| (1 + e / s)`` with ``S = |x_p - x_k|`` and
    ``r = sqrt(K_kk)``. It is least at ``s = sqrt(2 q) / S`` with
    ``q = gap + (e r)^2 / 2 + |g_k| e``, or at the largest s that the box allows.

    Parameters
    ----------
    gap
        How far the dual without p may be from its maximum.
    squares
        Upper bounds of ``|x_p - x_k|^2``.
    room, excess, roots
        Distance of ``alpha_k`` from the ends of its box, an upper bound of ``|g_k|``, and
        ``sqrt(K_kk)``.
    imbalance
        An upper bound of ``|y'alpha|``.
    """
    left = imbalance * roots
    q = gap + 0.5 * left * left + excess * imbalance
    able = room - imbalance > _LEAST_ROOM
    largest = np.where(able, room - imbalance, 1.0)
    S, root = np.sqrt(squares), np.sqrt(2 * q)
    errors = np.where(root <= largest * S, S * root, 0.5 * largest * squares + q / largest)
    errors = (errors + S * left + excess) * ROUNDED_UP
    return np.where(able, errors, np.inf)


class ValueProof:
    """Bounds on the errors of the decision values of a solution, for rows that it does not need.

    Parameters
    ----------
    solution
        A point that is close to the solution of its problem.
    """

    def __init__(self, solution: DualSolution) -> None:
        self.solution = solution
        room = np.minimum(solution.alpha, solution.problem.costs - solution.alpha)
        inside = rows_of(solution.in_bound)
        most_room = np.argsort(-room[inside], kind="stable")[:_HOLDERS]
        self.holders = inside[most_room]
        self._room = room[self.holders]
        self._excess = (np.abs(solution.excess) + solution.rounding)[self.holders]
        self._diagonal = solution.problem.K.diagonal()[self.holders]

    def errors(self, rows: IndexArray) -> FloatArray:
        """Return bounds on ``|f(x_p) - f^p(x_p)|`` for rows of the problem with ``alpha_p = 0``."""
        K, rounding = self.solution.problem.K, self.solution.rounding[rows]
        if len(self.holders):
            K_pk, K_pp = K.block(rows, self.holders), K.diagonal()[rows]
            return self._errors(K_pk, K_pp, self.solution.gaps_without[rows, None]) + rounding
        return _free_offset_errors(self.solution, rows) + rounding

    def errors_elsewhere(
        self, K_pk: FloatArray, K_pp: FloatArray, rounding: FloatArray
    ) -> FloatArray:
        """Return bounds on the errors of ``f`` for rows that are not part of the problem.

        Parameters
        ----------
        K_pk, K_pp
            Kernel values of the rows with the `holders`, shape (m, h), and with themselves.
        rounding
            Bounds on the rounding errors of their decision values, shape (m,).
        """
        if len(self.holders):
            return self._errors(K_pk, K_pp, np.array(self.solution.gap)) + rounding
        nobody = np.zeros(1, dtype=np.intp) - 1
        return np.full(len(K_pp), _free_offset_errors(self.solution, nobody)[0]) + rounding

    def _errors(self, K_pk: FloatArray, K_pp: FloatArray, gap: FloatArray) -> FloatArray:
        """Return the least bound that the holders give for each row."""
        errors: FloatArray = end_errors(
            gap,
            upper_squares(K_pp[:, None], self._diagonal, K_pk),
            self._room,
            self._excess,
            np.sqrt(np.abs(self._diagonal)),
            abs(self.solution.imbalance),
        ).min(axis=1)
        return errors


def values_without(solution: DualSolution, rows: IndexArray) -> FloatArray:
    """Return the decision values of rows with ``alpha_p = 0`` when they are left out.

    Removing a zero row does not change the dual variables. If no row is in-bound, the interval of
    optimal offsets may widen to the second strictest limit. Its middle is taken, as in LIBSVM.
    """
    values: FloatArray = solution.decision_values[rows]
    if solution.in_bound.any():
        return values
    limits = solution.offset_limits
    middle = (without_each(limits.lower, rows) - without_each(-limits.upper, rows)) / 2
    return values + (middle - solution.b)


def proven_values(solution: DualSolution, rows: IndexArray) -> Proofs:
    """Return the values of rows with ``alpha_p = 0`` when they are left out, and their proofs."""
    margin = solution.problem.y[rows] * values_without(solution, rows)
    return Proofs.of_values(margin, ValueProof(solution).errors(rows))


def _free_offset_errors(solution: DualSolution, rows: IndexArray) -> FloatArray:
    """Return bounds on the error of the middle of the offsets, without each of some rows.

    They are infinite unless ``y'alpha`` is exactly 0 and the limits agree beyond their rounding,
    which proves that the dual variables are optimal.
    """
    limits, rounding = solution.offset_limits, solution.rounding
    if solution.imbalance != 0:
        return np.full(len(rows), np.inf)
    low = [without_each(limits.lower + shift * rounding, rows) for shift in (-1, 0, 1)]
    high = [-without_each(-limits.upper + shift * rounding, rows) for shift in (1, 0, -1)]
    errors = [np.maximum(ends[1] - ends[0], ends[2] - ends[1]) for ends in (low, high)]
    error: FloatArray = (errors[0] + errors[1]) / 2 * ROUNDED_UP
    return np.where(low[2] <= high[0], error, np.inf)


def without_each(values: FloatArray, rows: IndexArray) -> FloatArray:
    """Return the largest value without each of some rows; row -1 stands for no row."""
    largest = int(values.argmax())
    second = float(np.delete(values, largest).max())
    return np.where(rows == largest, second, values[largest])
