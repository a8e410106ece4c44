"""Proofs of the decision values of a pair of classes for rows of other classes.

Leaving out a row of another class does not change the fit of the pair, so that the decision value
of the row is its leave-one-out value. Its sign is a vote, which has to be proven like any other.
"""

import numpy as np

from span_hpo.kernels import KernelBlocks
from span_hpo.loo.accurate import accurate_value
from span_hpo.loo.ends import ValueProof
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray
from span_hpo.solver import DualSolution, Problem, dot_rounding, margin_rounding, zero_width


def values_elsewhere(
    solution: DualSolution,
    K: KernelBlocks,
    rows: IndexArray,
    others: IndexArray,
    f: FloatArray,
    *,
    certify: bool,
) -> Proofs:
    """Return the decision values of rows that are not part of a fit, and what is proven about them.

    Parameters
    ----------
    solution
        The fit.
    K
        Kernel matrix of all rows.
    rows, others
        Indices of the rows of the fit in K, and of m other rows.
    f
        Decision values of the other rows, shape (m,).
    certify
        Whether to prove their signs.

    Returns
    -------
    The decision values and what is proven about their signs. Values that are 0 up to rounding, and
    whose sign is not proven, become 0.
    """
    proofs = Proofs.none(len(others))
    proofs.margin[:] = f
    if certify:
        proofs = _of_votes(f.copy(), _errors(solution, K, rows, others, f))
        for i in proofs.open:
            problem = _with_row(solution, K, rows, others[i])
            found = accurate_value(problem, len(rows), np.append(solution.alpha, 0.0))
            value, accuracy = np.array([found.margin]), np.array([found.accuracy])
            proofs.improve(np.array([i]), _of_votes(value, accuracy))
    proofs.set_to_zero(
        ~proofs.proven & (np.abs(proofs.margin) <= zero_width(solution.margin_noise))
    )
    return proofs


def _errors(
    solution: DualSolution, K: KernelBlocks, rows: IndexArray, others: IndexArray, f: FloatArray
) -> FloatArray:
    """Return bounds on the errors of the decision values f of other rows."""
    diagonal, proof = K.diagonal(), ValueProof(solution)
    K_pp = diagonal[others]
    size = float(solution.alpha @ np.sqrt(np.abs(diagonal[rows])))
    rounding = dot_rounding(solution.n_support, np.sqrt(np.abs(K_pp)) * size)
    rounding += margin_rounding(f, solution.b)
    return proof.errors_elsewhere(K.block(others, rows[proof.holders]), K_pp, rounding)


def _of_votes(f: FloatArray, accuracy: FloatArray) -> Proofs:
    """Return what bounds prove about votes: a value of 0 does not vote like a negative one."""
    proofs = Proofs.of_values(f, accuracy)
    proofs.proven = (np.abs(f) > accuracy) | ((f == 0) & (accuracy == 0))
    return proofs


def _with_row(solution: DualSolution, K: KernelBlocks, rows: IndexArray, other: int) -> Problem:
    """Return the problem of a fit with another row, which comes last and has cost 0."""
    problem = solution.problem
    return Problem.of_checked(
        K.take(np.append(rows, other)), np.append(problem.y, 1.0), np.append(problem.costs, 0.0)
    )
