"""The value of one row by a fit without it, where that fit has a kernel matrix of its own.

If the features were scaled with the help of a row, then leaving out the row also changes the
features of all other rows. No other row shares such a fit, so that it is made for one row alone.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.kernels import KernelBlocks
from span_hpo.loo.accurate import accurate_value
from span_hpo.loo.elsewhere import values_elsewhere
from span_hpo.loo.ends import proven_values
from span_hpo.loo.proofs import ACCURATE, Proofs
from span_hpo.loo.result import LeaveOneOut, error_bounds
from span_hpo.runtime import BoolArray, FloatArray, IndexArray, one_blas_thread, read_only
from span_hpo.solver import Problem, decided, is_wrong, rows_of_pairs, solve, zero_width

_WANTED = 1e-6  # accuracy, in units of the margin, to which values without a proof are improved


@dataclass(frozen=True, eq=False)
class RowValues:
    """Leave-one-out values of some rows.

    Attributes
    ----------
    rows
        Indices of the m rows.
    decision_values
        Their values, shape (m,), or (m, k (k - 1) / 2) for k > 2 classes.
    accuracy
        Proven bound on the error of each value, shape (m,).
    certified
        Mask of the rows whose leave-one-out class is proven, shape (m,).
    """

    rows: IndexArray
    decision_values: FloatArray
    accuracy: FloatArray
    certified: BoolArray

    @classmethod
    def of(cls, loo: LeaveOneOut, rows: IndexArray) -> "RowValues":
        """Return the values that some rows have in a result."""
        return cls(rows, loo.decision_values[rows], loo.accuracy[rows], loo.certified[rows])

    @classmethod
    def joined(cls, parts: "list[RowValues]") -> "RowValues":
        """Return the values of at least one part together."""
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate([part.decision_values for part in parts]),
            np.concatenate([part.accuracy for part in parts]),
            np.concatenate([part.certified for part in parts]),
        )


@one_blas_thread
def left_out_row(
    K: KernelBlocks,
    codes: IndexArray,
    costs: FloatArray,
    row: int,
    *,
    tol: float,
    max_iter: int,
    solver: str = "auto",
) -> RowValues:
    """Fit without one row, and return the decision value that the fit gives to that row.

    Parameters
    ----------
    K
        Kernel matrix of all rows, with the row that is left out.
    codes
        Class of each row, shape (l,), from 0 to k - 1.
    costs
        Cost of each row, shape (l,). The cost of the row that is left out is not used.
    row
        Index of the row.
    tol, max_iter, solver
        Tolerance, step limit and solver of the fits; see `solve`.

    Returns
    -------
    The value of the row, or its values in the fits of all pairs of several classes. A row without
    which its class has no costs is an error by definition, ``f(x_p) = -y_p``.
    """
    costs = costs.copy()
    costs[row] = 0.0
    settings = {"tol": tol, "max_iter": max_iter, "solver": solver}
    found = [
        _value_in_pair(K, rows, y, costs[rows], row, settings) for rows, y in rows_of_pairs(codes)
    ]
    values = np.array([[value for value, _, _ in found]])
    certain = np.array([[is_proven for _, _, is_proven in found]])
    accuracy = np.array([max(error for _, error, _ in found)])
    if len(found) == 1:
        return RowValues(np.array([row]), values[:, 0], accuracy, certain[:, 0])
    return RowValues(
        np.array([row]), values, accuracy, decided(codes[row : row + 1], values, certain)
    )


def replaced_rows(loo: LeaveOneOut, proven: LeaveOneOut, new: RowValues) -> LeaveOneOut:
    """Return a result in which some rows have other values.

    Parameters
    ----------
    loo
        The result. Its spans remain those of the fit on all rows.
    proven
        The same result by a method other than "span", so that the values have the proven signs.
    new
        The other values, which come from refits.
    """
    values, accuracy = loo.decision_values.copy(), loo.accuracy.copy()
    values[new.rows], accuracy[new.rows] = new.decision_values, new.accuracy
    certified = loo.certified.copy()
    certified[new.rows] = new.certified
    known, signs = proven.certified.copy(), proven.decision_values.copy()
    known[new.rows], signs[new.rows] = new.certified, new.decision_values
    return replace(
        loo,
        decision_values=read_only(values),
        certified=read_only(certified),
        exact=read_only(accuracy <= ACCURATE),
        accuracy=read_only(accuracy),
        error_bounds=error_bounds(known, is_wrong(loo.y, signs)),
        n_refit=min(len(values), loo.n_refit + len(new.rows)),
    )


def _value_in_pair(
    K: KernelBlocks,
    rows: IndexArray,
    y: FloatArray,
    costs: FloatArray,
    row: int,
    settings: dict[str, Any],
) -> tuple[float, float, bool]:
    """Return the value of a row in the fit of a pair, its accuracy, and if its sign is proven."""
    part = K if len(rows) == len(K) else K.take(rows)
    problem = Problem.of_checked(part, y, costs)
    place = int(np.searchsorted(rows, row))
    if place == len(rows) or rows[place] != row:
        solution = solve(problem, **settings)
        support = np.flatnonzero(solution.alpha)
        one = np.array([row])
        f = K.block(one, rows[support]) @ (y * solution.alpha)[support] + solution.b
        proofs = values_elsewhere(solution, K, rows, one, f, certify=True)
        return float(proofs.margin[0]), float(proofs.accuracy[0]), bool(proofs.proven[0])
    if not costs[y == y[place]].any():
        return -float(y[place]), 0.0, True
    proofs = _proofs_without(problem, place, settings)
    return (
        float(y[place] * proofs.margin[0]),
        float(proofs.accuracy[0]),
        bool(proofs.proven[0]),
    )


def _proofs_without(problem: Problem, p: int, settings: dict[str, Any]) -> Proofs:
    """Return the margin of a row with cost 0, and what is proven about it."""
    solution = solve(problem, **settings).basic
    first = np.zeros(1, dtype=np.intp)
    proofs = proven_values(solution, first + p)
    if not (proofs.proven[0] and proofs.exact[0]):
        found = accurate_value(problem, p, solution.alpha, _WANTED)
        better = Proofs.of_values(np.array([found.margin]), np.array([found.accuracy]))
        proofs.improve(first, better)
    proofs.set_to_zero(
        ~proofs.proven & (np.abs(proofs.margin) <= zero_width(solution.margin_noise))
    )
    return proofs
