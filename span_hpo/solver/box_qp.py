"""Solve small dense quadratic programs: over a box with a fixed sum, and over nonnegative numbers.

This is the only module that knows PIQP.
"""

from dataclasses import dataclass

import numpy as np
import piqp

from span_hpo.errors import SolverError
from span_hpo.runtime import FloatArray

_TOLERANCE = 1e-9  # PIQP's absolute and relative tolerance
_MAX_ITER = 200
_LOOSER = (1e-8, 1e-7, 1e-6)  # tolerances to try if a singular matrix keeps PIQP from the first
_FAR = 1e4  # bounds beyond this make PIQP slow or fail, so they are imposed only if they matter


@dataclass(frozen=True, eq=False)
class BoxMinimum:
    """Solution of one quadratic program.

    Attributes
    ----------
    x
        The point at which the minimum is reached, shape (n,).
    multiplier
        Multiplier of the constraint on the sum.
    """

    x: FloatArray
    multiplier: float


@dataclass(frozen=True, eq=False)
class NonnegativeMinimum:
    """Solution of a quadratic program over nonnegative numbers.

    Attributes
    ----------
    x
        The point at which the minimum is reached, shape (n,).
    multipliers
        Multipliers of the equality constraints, shape (k,).
    """

    x: FloatArray
    multipliers: FloatArray


def nonnegative_minimum(
    P: FloatArray, c: FloatArray, A: FloatArray, b: FloatArray
) -> NonnegativeMinimum:
    """Minimise ``1/2 x'Px + c'x`` subject to ``Ax = b`` and ``x >= 0``.

    Parameters
    ----------
    P
        Positive semi-definite matrix, shape (n, n).
    c
        Linear part, shape (n,).
    A, b
        Equality constraints, shapes (k, n) and (k,).

    Raises
    ------
    SolverError
        If PIQP does not reach its tolerance, for instance because no point is feasible.
    """
    vectors = {"c": c, "b": b, "x_l": np.zeros(len(c))}
    for tolerance in (_TOLERANCE, *_LOOSER):
        solver = _solver(tolerance)
        solver.setup(P=np.asfortranarray(P), A=np.asfortranarray(A), **vectors)
        status = solver.solve()
        if status == piqp.PIQP_SOLVED:
            x = np.maximum(np.array(solver.result.x), 0.0)
            return NonnegativeMinimum(x, np.array(solver.result.y))
    raise SolverError(
        f"PIQP could not solve a quadratic program with {len(c)} variables ({status.name}): scale "
        "the features, or choose less extreme parameters."
    )


def _solver(tolerance: float) -> piqp.DenseSolver:
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = tolerance
    solver.settings.eps_rel = tolerance
    solver.settings.max_iter = _MAX_ITER
    return solver


class BoxQP:
    """Minimise ``1/2 x'Px + c'x`` subject to ``sum(x) = total`` and ``lower <= x <= upper``.

    The matrix is set up once, and every call of `solve` only replaces the vectors.

    Parameters
    ----------
    P
        Positive semi-definite matrix, shape (n, n).
    """

    def __init__(self, P: FloatArray) -> None:
        self._P = np.asfortranarray(P)
        self._solver: piqp.DenseSolver | None = None

    def solve(
        self, c: FloatArray, total: float, lower: FloatArray, upper: FloatArray
    ) -> BoxMinimum:
        """Return the minimum; the bounds may be infinite.

        Raises
        ------
        SolverError
            If PIQP does not reach its tolerance, for instance because no point is feasible.
        """
        sum_to = np.array([total])
        if lower.min() >= -_FAR and upper.max() <= _FAR:
            return self._solve(c=c, b=sum_to, x_l=lower, x_u=upper)
        far_below, far_above = lower < -_FAR, upper > _FAR
        while True:
            found = self._solve(
                c=c,
                b=sum_to,
                x_l=np.where(far_below, -np.inf, lower),
                x_u=np.where(far_above, np.inf, upper),
            )
            crossed_below = far_below & (found.x < lower)
            crossed_above = far_above & (found.x > upper)
            if not (crossed_below | crossed_above).any():
                return found
            far_below &= ~crossed_below
            far_above &= ~crossed_above

    def _solve(self, **vectors: FloatArray) -> BoxMinimum:
        if self._solver is None:
            # Callers scale P to a unit diagonal, so the preconditioner is seldom worth its time.
            self._solver = self._set_up(vectors, preconditioner_iter=0)
        else:
            self._solver.update(**vectors)
        solver = self._solver
        status = solver.solve()
        for tolerance in (_TOLERANCE, *_LOOSER):
            if status == piqp.PIQP_SOLVED:
                break
            solver = self._set_up(vectors, preconditioner_iter=10, tolerance=tolerance)
            status = solver.solve()
        if status != piqp.PIQP_SOLVED:
            raise SolverError(
                f"PIQP could not solve a quadratic program with {len(self._P)} variables "
                f"({status.name})."
            )
        return BoxMinimum(x=np.array(solver.result.x), multiplier=float(solver.result.y[0]))

    def _set_up(
        self,
        vectors: dict[str, FloatArray],
        *,
        preconditioner_iter: int,
        tolerance: float = _TOLERANCE,
    ) -> piqp.DenseSolver:
        solver = _solver(tolerance)
        solver.settings.preconditioner_iter = preconditioner_iter
        solver.setup(P=self._P, A=np.ones((1, len(self._P)), order="F"), **vectors)
        return solver
