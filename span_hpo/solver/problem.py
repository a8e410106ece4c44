"""A weighted two-class SVM and its solution.

The dual problem is

    max  sum(alpha) - 1/2 sum_ij alpha_i alpha_j y_i y_j K_ij
    s.t. 0 <= alpha_i <= C_i,  sum(y alpha) = 0

With ``beta = y alpha``, ``F = K beta`` and ``f = F + b``, a row is *in-bound* if
``0 < alpha_i < C_i``, *bounded* if ``alpha_i = C_i > 0``, and a *zero row* otherwise.
"""

import functools
from dataclasses import InitVar, dataclass, replace
from typing import Any

import numpy as np

from span_hpo.data import as_numbers, not_negative
from span_hpo.errors import SolverError
from span_hpo.kernels import (
    KernelBlocks,
    KernelMatrix,
    as_kernel_blocks,
    is_held,
    largest_entry,
)
from span_hpo.runtime import (
    Array,
    BoolArray,
    FloatArray,
    IndexArray,
    Printable,
    counted,
    read_only,
    rows_of,
)
from span_hpo.solver.centred_gram import CentredGram, factored_gram
from span_hpo.solver.gaps import NEGLIGIBLE_GAP, curved_gaps, largest_violation
from span_hpo.solver.margin_errors import FitErrors, fit_errors
from span_hpo.solver.offsets import OffsetLimits, offset_limits
from span_hpo.solver.rounding import margin_noise, violation_limit


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Printable):
    """The dual of a weighted two-class SVM.

    Parameters
    ----------
    K
        Kernel matrix, shape (l, l). A float64 array is not copied and must not be changed later.
        Any object with ``len()``, ``diagonal()`` and ``block(rows, columns)`` can stand for the
        matrix and is trusted to be symmetric and finite; its `rows` and `columns` are arrays of
        indices or ``slice(None)``.
    y
        Labels, shape (l,), -1 or +1.
    costs
        Upper bound ``C_i`` of every dual variable, shape (l,), finite and at least 0. Rows with
        cost 0 take no part in the fit. Both classes need a row with a positive cost.

    Raises
    ------
    TypeError, ValueError
        If an argument is not as described.

    Examples
    --------
    >>> from span_hpo import Linear, Problem
    >>> problem = Problem(Linear()([[0.0], [2.0], [3.0]]), y=[-1, 1, 1], costs=[1.0, 1.0, 0.5])
    >>> len(problem), problem.costs.tolist()
    (3, [1.0, 1.0, 0.5])
    """

    K: KernelBlocks
    y: FloatArray
    costs: FloatArray

    def __post_init__(self) -> None:
        K = as_kernel_blocks(self.K)
        y = as_numbers(self.y, "y", len(K))
        if not (np.abs(y) == 1.0).all():
            raise ValueError(f"`y` must hold -1 and +1 only, got {np.unique(y)[:5].tolist()}.")
        costs = checked_costs(self.costs, y)
        for name, value in (("K", K), ("y", read_only(y)), ("costs", read_only(costs))):
            object.__setattr__(self, name, value)

    @classmethod
    def of_checked(cls, K: KernelBlocks, y: FloatArray, costs: FloatArray) -> "Problem":
        """Return a problem made of parts that have been checked already."""
        problem = object.__new__(cls)
        for name, value in (("K", K), ("y", read_only(y)), ("costs", read_only(costs))):
            object.__setattr__(problem, name, value)
        return problem

    def __len__(self) -> int:
        return len(self.y)

    def _summary(self) -> tuple[str, dict[str, str]]:
        n_positive = int(np.count_nonzero(self.y > 0))
        least, most = float(self.costs.min()), float(self.costs.max())
        size = 8e-6 * len(self) ** 2
        return f"Problem of {counted(len(self), 'row')}", {
            "labels": f"{len(self) - n_positive:,} of -1, {n_positive:,} of +1",
            "costs": f"{least:.6g}" if least == most else f"from {least:.6g} to {most:.6g}",
            "kernel matrix": f"in memory, {size:.3g} MB" if is_held(self.K) else "not in memory",
        }

    def take(self, rows: IndexArray) -> "Problem":
        """Return the problem of the given rows."""
        # All of the matrix is needed, so a copy is faster than a view of a matrix in memory.
        K = KernelMatrix(self.K.block(rows, rows)) if is_held(self.K) else self.K.take(rows)
        return Problem.of_checked(K, self.y[rows], self.costs[rows])

    def without(self, row: int) -> "Problem":
        """Return the problem in which the given row has cost 0, on the same kernel matrix."""
        costs = self.costs.copy()
        costs[row] = 0.0
        return Problem.of_checked(self.K, self.y, costs)


def checked_costs(costs: Any, y: Array, classes: Array | None = None) -> FloatArray:
    """Return the costs of all rows after checking that a fit is possible with them.

    Parameters
    ----------
    costs
        Costs to check, one for each row.
    y
        Labels -1 and +1, or numbers of classes, shape (l,).
    classes
        Labels of the numbered classes for the error message.

    Raises
    ------
    ValueError
        If a cost is negative or not finite, or a class has no row with a positive cost.
    """
    if _are_plainly_positive(costs, len(y)) and (y != y[0]).any():
        return np.array(costs)
    numbers = not_negative(costs, "costs", len(y))
    if numbers.all() and (y != y[0]).any():
        return numbers
    kept, present = np.unique(y[numbers > 0]), np.unique(y)
    if len(kept) < max(2, len(present)):

        def name(code: Any) -> str:
            return f"{code:+.0f}" if classes is None else repr(classes.tolist()[int(code)])

        if not len(kept):
            only = "zeros"
        elif len(kept) == 1:
            only = f"rows of class {name(kept[0])}"
        else:
            only = f"zeros in class {name(np.setdiff1d(present, kept)[0])}"
        raise ValueError(f"`costs` must be positive in some row of each class, got only {only}.")
    return numbers


def _are_plainly_positive(costs: Any, count: int) -> bool:
    """Return whether costs are an array of positive and finite doubles, as in most trials."""
    if type(costs) is not np.ndarray or costs.dtype != np.float64 or costs.shape != (count,):
        return False
    return bool(costs.min() > 0 and costs.max() < np.inf)


def kinds_of_support(alpha: FloatArray, costs: FloatArray) -> tuple[BoolArray, BoolArray]:
    """Return masks of the in-bound and of the bounded rows."""
    in_bound = (alpha > 0) & (alpha < costs)
    return in_bound, (alpha > 0) & ~in_bound


@dataclass(frozen=True, eq=False, repr=False)
class DualSolution(Printable):
    """The solution of a `Problem`, which can check its own optimality.

    Attributes
    ----------
    problem
        The problem that was solved.
    alpha
        Dual variables, shape (l,). If several are optimal, those with the least
        ``sum_i alpha_i^2 / C_i``, so that equal rows share in proportion to their costs.
    b
        Offset of the decision function, or the middle of its interval if it is not unique.
    decision_values
        ``f(x_i)`` of every row, shape (l,).
    in_bound, bounded
        Masks of the two kinds of support vector, shape (l,).
    converged
        Whether the offset limits of all rows agree within ``2 tol``. Without polish, whether LIBSVM
        reports that it finished.
    tol, max_iter
        Tolerance and step limit with which `solve` was called.
    solver
        What computed the first fit: "libsvm" or "smo"; see `solve`.
    known_gram
        Factored Gram matrix of the in-bound rows if the solver has computed it; see `gram`.
    known_spans
        Free squared spans if the solver has computed them; see `free_squared_spans`.
    known_basic
        The same fit as the solver found it, if `alpha` differs from it; see `basic`.

    Examples
    --------
    Two rows are on the wrong side and therefore bounded, with ``alpha_i = C_i = 1``:

    >>> from span_hpo import Linear, Problem, solve
    >>> K = Linear()([[0.0], [1.0], [2.0], [3.0]])
    >>> solution = solve(Problem(K, y=[-1, 1, -1, 1], costs=[1.0, 1.0, 1.0, 1.0]))
    >>> solution.alpha.round(3).tolist()
    [0.556, 1.0, 1.0, 0.556]
    >>> solution.bounded.tolist()
    [False, True, True, False]
    >>> solution.decision_values.round(3).tolist()
    [-1.0, -0.333, 0.333, 1.0]
    """

    problem: Problem
    alpha: FloatArray
    b: float
    decision_values: FloatArray
    in_bound: BoolArray
    bounded: BoolArray
    converged: bool
    tol: float
    max_iter: int
    solver: str = "libsvm"
    known_gram: InitVar[CentredGram | None] = None
    known_spans: FloatArray | None = None
    known_basic: InitVar["DualSolution | None"] = None

    def __post_init__(
        self, known_gram: CentredGram | None, known_basic: "DualSolution | None"
    ) -> None:
        # These are the values of the cached properties below.
        if known_gram is not None:
            self.__dict__["gram"] = known_gram
        if known_basic is not None:
            self.__dict__["basic"] = known_basic

    def _summary(self) -> tuple[str, dict[str, str]]:
        rows = counted(len(self.problem), "row")
        return f"DualSolution of {rows} by solver {self.solver!r}", {
            "support vectors": f"{self.n_support:,}, {self.n_in_bound:,} of them in-bound",
            "offset": f"{self.b:.6g}" + ("" if self.b_unique else ", one of several"),
            "KKT violation": f"{self.kkt_violation():.2g}",
            "converged": "yes" if self.converged else "no",
        }

    @property
    def n_support(self) -> int:
        """The number of support vectors."""
        return int(np.count_nonzero(self.alpha))

    @property
    def n_in_bound(self) -> int:
        """The number of in-bound support vectors."""
        return int(np.count_nonzero(self.in_bound))

    @functools.cached_property
    def gram(self) -> CentredGram:
        """The factored Gram matrix of the in-bound support vectors, of which one must exist.

        Raises
        ------
        SolverError
            If the kernel is not positive semi-definite.
        """
        in_bound = rows_of(self.in_bound)
        return factored_gram(self.problem.K.block(in_bound, in_bound))

    @functools.cached_property
    def basic(self) -> "DualSolution":
        """The same fit with the dual variables that the solver found; mostly the solution itself.

        Where several dual variables are optimal, `alpha` are those of a rule, which makes many rows
        in-bound. Those of the solver have fewer in-bound rows, so that paths and proofs are easier.
        """
        return self

    def with_alpha(self, alpha: FloatArray, spans: FloatArray | None = None) -> "DualSolution":
        """Return the same fit with other optimal dual variables, and with this one as its `basic`.

        Parameters
        ----------
        alpha
            Dual variables that give the same decision values, shape (l,).
        spans
            Free squared spans with these dual variables if they are known, shape (l,).
        """
        in_bound, bounded = kinds_of_support(alpha, self.problem.costs)
        return replace(
            self,
            alpha=read_only(alpha),
            in_bound=in_bound,
            bounded=bounded,
            known_spans=spans,
            known_basic=self,
        )

    @functools.cached_property
    def margin_noise(self) -> float:
        """How far rounding may move a decision value."""
        return margin_noise(self.alpha, largest_entry(self.problem.K))

    @functools.cached_property
    def _errors(self) -> FitErrors:
        """Bounds on the errors of the fit; see `span_hpo.solver.margin_errors`."""
        problem, values = self.problem, self.decision_values
        errors = fit_errors(problem.K, problem.y, problem.costs, self.alpha, values, self.b)
        read_only(errors.rounding)
        return errors

    @property
    def rounding(self) -> FloatArray:
        """Bounds on how far the decision values are from ``f`` of `alpha` and `b`, shape (l,).

        They hold in floating point, and allow for kernel values that are rounded themselves.
        """
        return self._errors.rounding

    @property
    def imbalance(self) -> float:
        """The sum ``y'alpha``, which is 0 up to rounding, as if it were summed exactly."""
        return self._errors.imbalance

    @functools.cached_property
    def gaps_without(self) -> FloatArray:
        """How far the dual without each row may be from its maximum, shape (l,).

        These are bounds on the dual value with the other dual variables as they are, for any dual
        variable of the row itself. See `span_hpo.solver.gaps`.
        """
        return self._gaps[0]

    @property
    def gap(self) -> float:
        """How far the dual may be from its maximum."""
        return self._gaps[1]

    @functools.cached_property
    def _gaps(self) -> tuple[FloatArray, float]:
        """The gaps without each row, and with all rows."""
        K, without, total = self.problem.K, self._errors.gaps, self._errors.gap
        if not self.in_bound.any() or total * largest_entry(K) <= NEGLIGIBLE_GAP:
            return without, total
        try:
            least = self.gram.least_eigenvalue
        except SolverError:
            return without, total  # the curvature is not known
        if least > 0:
            parts = self.excess, self.rounding, self.alpha, self.problem.costs
            curved, gap = curved_gaps(*parts, K.diagonal(), least, abs(self.imbalance))
            if gap < total:
                return curved, gap
        return without, total

    @property
    def offset_limits(self) -> OffsetLimits:
        """The limits that each row puts on the offset."""
        F = self.decision_values - self.b
        return offset_limits(self.problem.y, self.problem.costs, self.alpha, F)

    @property
    def b_unique(self) -> bool:
        """Whether only one offset is optimal."""
        lower, upper = self.offset_limits.interval
        return bool(self.in_bound.any() or upper - lower <= self.margin_noise)

    @functools.cached_property
    def excess(self) -> FloatArray:
        """The excess ``g = y f - 1`` of every row, which is 0 at the margin, shape (l,)."""
        return read_only(self.problem.y * self.decision_values - 1)

    @functools.cached_property
    def is_optimal(self) -> bool:
        """Whether the KKT conditions hold up to rounding, so that paths can start here."""
        return self.converged and self.kkt_violation() <= violation_limit(self.margin_noise)

    def kkt_violation(self) -> float:
        """Return the largest violation of the KKT conditions, in units of the margin.

        The conditions are ``y f = 1`` for in-bound rows, ``y f <= 1`` for bounded rows and
        ``y f >= 1`` for zero rows with a positive cost. There is no condition for rows with cost 0.
        The dual variables are in their box, and ``sum(y alpha)`` is 0 up to rounding, in any case.
        """
        return largest_violation(self.excess, self.alpha, self.problem.costs)
