"""Rows whose leave-one-out value or class is known without following a path.

============================  ============================================================
row                           leave-one-out value
============================  ============================================================
cost 0                        ``f(x_p)``: the row takes no part in the fit
``alpha_p = 0``, b unique     ``f(x_p)``: the solution stays the same
``alpha_p = 0``, b free       ``f(x_p)`` with the middle of the offsets that remain possible
last row of its class         ``-y_p``: an error by definition
============================  ============================================================

The classes of other rows may follow from the fit alone; see `span_hpo.loo.certificates`. For a
matrix in memory and a fit with in-bound rows, compiled code enters all of this in one call.
"""

import numpy as np

from span_hpo.kernels import KernelMatrix
from span_hpo.loo.certificates import certified
from span_hpo.loo.ends import proven_values, values_without
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import BoolArray, FloatArray, compiled, rows_of
from span_hpo.solver import DualSolution

_Parts = tuple[FloatArray, FloatArray, BoolArray, BoolArray, int]


def proofs_by_definition(solution: DualSolution) -> Proofs:
    """Return proofs for rows with cost 0, and for rows that are the last of their class."""
    return _proofs(solution, solution.problem.costs == 0, certify=True)


def immediate_proofs(solution: DualSolution, *, certify: bool = True) -> Proofs:
    """Return proofs for rows with cost 0, last rows of a class and, at the optimum, zero rows.

    If `certify` is False, values of rows with cost 0 and of zero rows are entered without a proof.
    """
    found = _in_one_call(solution, others=False) if certify else None
    if found is not None:
        return found
    known = solution.alpha == 0 if solution.is_optimal else solution.problem.costs == 0
    return _proofs(solution, known, certify)


def fit_proofs(solution: DualSolution) -> Proofs:
    """Return all that the fit alone proves: immediate proofs, and classes of other rows."""
    found = _in_one_call(solution, others=True)
    if found is None:
        found = immediate_proofs(solution)
        rows = rows_of(~(found.proven | found.solved))
        found.put(rows, certified(solution, rows))
    return found


def _in_one_call(solution: DualSolution, *, others: bool) -> Proofs | None:
    """Return the proofs that compiled code finds, or None where it does not apply."""
    K, problem = solution.problem.K, solution.problem
    if not isinstance(K, KernelMatrix) or not solution.in_bound.any():
        return None
    found = parts_of_proofs(
        K.values,
        problem.y,
        problem.costs,
        solution.alpha,
        solution.decision_values,
        solution.excess,
        solution.rounding,
        solution.gaps_without,
        solution.imbalance,
        solution.is_optimal,
        others,
    )
    if found is None:
        return None
    margin, accuracy, solved, proven, n_open = found
    proofs = Proofs(margin, accuracy, solved, proven)
    if n_open:
        proofs.ends = {int(row): solution.alpha for row in rows_of(solved & ~proven)}
    return proofs


@compiled
def parts_of_proofs(
    K: FloatArray,
    y: FloatArray,
    costs: FloatArray,
    alpha: FloatArray,
    values: FloatArray,
    excess: FloatArray,
    rounding: FloatArray,
    gaps: FloatArray,
    imbalance: float,
    optimal: bool,
    others: bool,
) -> _Parts | None:
    """Return the parts of `Proofs` and the number of values without a proof.

    Without compiled code, there are none.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l), in C order.
    y, costs, alpha
        Labels, costs and dual variables, of which one must be in-bound, shape (l,).
    values, excess, rounding
        Decision values, ``g = y f - 1``, and bounds on their rounding errors, shape (l,).
    gaps, imbalance
        How far the dual without each row may be from its maximum, shape (l,), and ``y'alpha``.
    optimal
        Whether zero rows keep their values, and not only rows with cost 0.
    others
        Prove the classes of other rows as well.
    """
    return None


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
