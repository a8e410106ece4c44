"""Rows whose leave-one-out value is known without further computation.

============================  ============================================================
row                           leave-one-out value
============================  ============================================================
cost 0                        ``f(x_p)``: the row takes no part in the fit
``alpha_p = 0``, b unique     ``f(x_p)``: the solution stays the same
``alpha_p = 0``, b free       ``f(x_p)`` with the middle of the offsets that remain possible
last row of its class         ``-y_p``: an error by definition
============================  ============================================================
"""

import numpy as np

from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import BoolArray, FloatArray
from span_hpo.solver import DualSolution


def proofs_by_definition(solution: DualSolution) -> Proofs:
    """Return proofs for rows with cost 0, and for rows that are the last of their class."""
    return _proofs(solution, solution.problem.costs == 0, solution.decision_values)


def immediate_proofs(solution: DualSolution) -> Proofs:
    """Return proofs for rows with cost 0, last rows of a class and, at the optimum, zero rows."""
    if not solution.is_optimal:
        return proofs_by_definition(solution)
    return _proofs(solution, solution.alpha == 0, _zero_row_values(solution))


def _proofs(solution: DualSolution, known: BoolArray, values: FloatArray) -> Proofs:
    """Return proofs with the values of the known rows, and with the errors by definition."""
    proofs = Proofs.none(len(values))
    proofs.margin[known] = (solution.problem.y * values)[known]
    proofs.exact[known] = proofs.proven[known] = solution.is_optimal
    alone = _last_of_class(solution)
    proofs.margin[alone] = -1.0
    proofs.exact[alone] = proofs.proven[alone] = True
    return proofs


def _last_of_class(solution: DualSolution) -> BoolArray:
    """Return a mask of the rows that are the only ones of their class in the fit."""
    kept, positive = solution.problem.costs > 0, solution.problem.y > 0
    alone = np.zeros(len(kept), dtype=bool)
    for of_class in (kept & positive, kept & ~positive):
        if np.count_nonzero(of_class) == 1:
            alone |= of_class
    return alone


def _zero_row_values(solution: DualSolution) -> FloatArray:
    """Return the decision values of zero rows when they are left out, shape (l,).

    Removing a zero row does not change the dual variables. If no row is in-bound, the interval of
    optimal offsets may widen to the second strictest limit. Its middle is taken, as in LIBSVM.
    """
    values = solution.decision_values
    if solution.in_bound.any():
        return values
    limits = solution.offset_limits
    lower, upper = limits.lower, limits.upper
    second_lower, strictest_lower = np.sort(lower)[-2:]
    strictest_upper, second_upper = np.sort(upper)[:2]
    without_lower = np.where(lower == strictest_lower, second_lower, strictest_lower)
    without_upper = np.where(upper == strictest_upper, second_upper, strictest_upper)
    middle: FloatArray = (without_lower + without_upper) / 2
    return values + (middle - solution.b)
