"""How far a point of the dual may be from its maximum, with the rounding of each margin.

With ``g = y f - 1``, row j can raise the dual by at most

``max((-g_j)^+ (C_j - alpha_j), g_j^+ alpha_j)``,

and the sum of these numbers bounds the distance of the dual from its maximum. Each ``g_j`` is known
up to its rounding only, which is added to both of its signs. For an in-bound row with a large cost
that is a rough bound, because no other row can follow it so far. Where the centred Gram matrix of
in-bound rows I has a least eigenvalue ``mu > 0``, they contribute at most

``sum_I g_i^2 / (2 mu)``

together: ``sum_I g_i^2 / mu`` is an upper bound of ``|v|^2`` for the least change v of the weight
vector that gives all of them margin 1, and the primal at this weight vector bounds the dual. The
margins of all other rows then change by at most ``|v|`` times their distance from the centroid of
I, plus the largest ``|g_i|``, which is added to their rounding. The margin of a row that is left
out changes in the same way, and ``alpha_p`` times this change is added to the gap without it.
"""

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, compiled, sums_of_others
from span_hpo.solver.rounding import ROUNDED_UP

# Gap, times the largest kernel value, that proves values to 1e-5 of the margin. Sharper bounds than
# that are not worth their time.
NEGLIGIBLE_GAP = 1e-11


def row_gaps(
    excess: FloatArray, rounding: FloatArray, alpha: FloatArray, above: FloatArray
) -> FloatArray:
    """Return upper bounds on how much each row can still raise the dual, shaped as the arguments.

    Parameters
    ----------
    excess, rounding
        ``g = y f - 1`` and bounds on its rounding errors.
    alpha, above
        Dual variables, and their distances ``C - alpha`` from their upper bounds.
    """
    gaps: FloatArray = np.maximum(
        np.maximum(rounding - excess, 0.0) * above,
        np.maximum(rounding + excess, 0.0) * alpha,
    )
    return gaps


def curved_gap(
    excess: FloatArray,
    rounding: FloatArray,
    alpha: FloatArray,
    above: FloatArray,
    held: BoolArray,
    distances: FloatArray,
    least_eigenvalue: float,
    imbalance: float,
    centre: float,
) -> tuple[float, float, float]:
    """Return a bound on the distance of the dual from its maximum that uses the curvature.

    Parameters
    ----------
    excess, rounding, alpha, above
        As for `row_gaps`, without the row that is left out.
    held
        Mask of the in-bound rows I that the eigenvalue belongs to.
    distances
        Bounds on the distances of all rows from the centroid of I.
    least_eigenvalue
        Lower bound of ``x'K_II x / x'x`` over all x whose sum is 0, positive.
    imbalance, centre
        Upper bounds of ``|y'alpha|`` and of the norm of the centroid of I.

    Returns
    -------
    The bound, the length of v, and the largest ``|g_i|`` in I.
    """
    sizes = held * (np.abs(excess) + rounding)
    length = np.sqrt((sizes * sizes).sum() / least_eigenvalue)
    level = sizes.max()
    others = row_gaps(excess, rounding + length * distances + level, alpha, above)
    # The offset changes with the weight vector, which counts where the sum y'alpha is not 0.
    of_offset = imbalance * (length * centre + level)
    return (others * ~held).sum() + 0.5 * length * length + of_offset, length, level


@compiled
def largest_violation(excess: FloatArray, alpha: FloatArray, costs: FloatArray) -> float:
    """Return the largest violation of the KKT conditions, in units of the margin.

    Parameters
    ----------
    excess
        ``g = y f - 1``, shape (l,): at least 0 where ``alpha < C``, and at most 0 where
        ``alpha > 0``.
    alpha, costs
        Dual variables and their upper bounds, shape (l,).
    """
    can_grow, can_fall = alpha < costs, alpha > 0
    violation = np.maximum(np.where(can_grow, -excess, 0), np.where(can_fall, excess, 0))
    return float(violation.max(initial=0.0))


@compiled
def plain_gaps(
    excess: FloatArray, rounding: FloatArray, alpha: FloatArray, costs: FloatArray
) -> tuple[FloatArray, float]:
    """Return the gaps without each row, shape (l,), and with all rows, without the curvature.

    Parameters
    ----------
    excess, rounding
        ``g = y f - 1`` and bounds on its rounding errors, shape (l,).
    alpha, costs
        Dual variables and their upper bounds, shape (l,).
    """
    gaps = row_gaps(excess, rounding, alpha, costs - alpha)
    return sums_of_others(gaps) * ROUNDED_UP, float(gaps.sum()) * ROUNDED_UP


@compiled
def curved_gaps(
    excess: FloatArray,
    rounding: FloatArray,
    alpha: FloatArray,
    costs: FloatArray,
    diagonal: FloatArray,
    least_eigenvalue: float,
    imbalance: float,
) -> tuple[FloatArray, float]:
    """Return the gaps without each row, and with all rows, by the curvature of in-bound rows.

    Parameters
    ----------
    excess, rounding, alpha, costs
        As for `plain_gaps`. At least one row must be in-bound.
    diagonal
        The kernel value of each row with itself, shape (l,).
    least_eigenvalue, imbalance
        As for `curved_gap`.
    """
    above, in_bound = costs - alpha, (alpha > 0) & (alpha < costs)
    roots = np.sqrt(np.abs(diagonal))
    centre = float(roots[in_bound].mean())
    distances = roots + centre
    gap, length, level = curved_gap(
        excess, rounding, alpha, above, in_bound, distances, least_eigenvalue, imbalance, centre
    )
    change = length * distances + level
    gaps = row_gaps(excess, rounding + change, alpha, above)
    gaps[in_bound] = 0.0
    common = 0.5 * length * length + imbalance * (length * centre + level)
    without = sums_of_others(gaps) + common + alpha * change
    return without * ROUNDED_UP, float(gap) * ROUNDED_UP
