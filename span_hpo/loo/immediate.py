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

from span_hpo.loo.ends import proven_values, values_without
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import BoolArray, rows_of
from span_hpo.solver import DualSolution


def proofs_by_definition(solution: DualSolution) -> Proofs:
    """Return proofs for rows with cost 0, and for rows that are the last of their class."""
    return _proofs(solution, solution.problem.costs == 0, certify=True)


def immediate_proofs(solution: DualSolution, *, certify: bool = True) -> Proofs:
    """Return proofs for rows with cost 0, last rows of a class and, at the optimum, zero rows.

    If `certify` is False, values of rows with cost 0 and of zero rows are entered without a proof.
    """
    known = solution.alpha == 0 if solution.is_optimal else solution.problem.costs == 0
    return _proofs(solution, known, certify)


def _proofs(solution: DualSolution, known: BoolArray, certify: bool) -> Proofs:
    """Return proofs with the values of the known rows, and with the errors by definition."""
    proofs = Proofs.none(len(known))
    rows = rows_of(known)
    if len(rows):
        if certify:
            found = proven_values(solution, rows)
            found.ends = {int(position): solution.alpha for position in found.open}
            proofs.put(rows, found)
        else:
            proofs.margin[rows] = solution.problem.y[rows] * values_without(solution, rows)
            proofs.solved[rows] = True
    alone = rows_of(_last_of_class(solution))
    if len(alone):
        proofs.put(alone, Proofs.of_values(np.full(len(alone), -1.0), np.zeros(len(alone))))
    return proofs


def _last_of_class(solution: DualSolution) -> BoolArray:
    """Return a mask of the rows that are the only ones of their class in the fit."""
    kept, positive = solution.problem.costs > 0, solution.problem.y > 0
    alone = np.zeros(len(kept), dtype=bool)
    for of_class in (kept & positive, kept & ~positive):
        if np.count_nonzero(of_class) == 1:
            alone |= of_class
    return alone
