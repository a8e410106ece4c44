"""Minimise a smooth function on a box by the BFGS method with projected steps."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, read_only, real, whole

_SUFFICIENT = 1e-4  # least decrease of a step, relative to what the gradient promises
_LONGEST_STEP = 2.0  # largest Euclidean length of a step
_HALVINGS = 20  # how often a step is halved before the direction is given up
_CONVERGED = "The value has converged."


@dataclass(frozen=True, eq=False)
class BfgsResult:
    """Where a minimisation has ended.

    Attributes
    ----------
    x
        The best point that was evaluated, shape (d,).
    value
        The value there.
    n_evaluations
        Number of evaluations.
    path
        The points between which the search has stepped, from the start to the last, shape (k, d).
    reason
        Why the search has ended, as a sentence.
    """

    x: FloatArray
    value: float
    n_evaluations: int
    path: FloatArray
    reason: str


def projected_bfgs(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray | None]],
    start: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    *,
    max_evaluations: int = 100,
    tolerance: float = 1e-5,
) -> BfgsResult:
    """Minimise a function on a box by the BFGS method.

    A step goes along ``p = -H g`` with the gradient g and the inverse Hessian H of BFGS. It is cut
    off at the sides of the box, is at most 2 long, and is halved until the value falls by at least
    ``1e-4 |g' s|`` for the step s. H is not updated where the value is not convex along the step.
    Coordinates at a side of the box stay there as long as the step would leave the box. The first
    direction has the length 2, so that a factor of the value does not change the path.

    The search ends with a reason if the value has no gradient at the start, or if no step along the
    gradient leads to a lower value with a gradient, as next to a jump.

    Parameters
    ----------
    value_and_gradient
        Function that returns the value at a point, and the gradient there, shape (d,), or None. A
        value that is not finite is never chosen.
    start
        First point, which is moved to the nearest point of the box, shape (d,).
    lower, upper
        Sides of the box, shape (d,). The lengths of steps suit logarithms of hyperparameters.
    max_evaluations
        Largest number of evaluations.
    tolerance
        Stop where the value falls by at most ``tolerance * max(1, |value|)`` in a step, other than
        the first one, or where no coordinate of the projected gradient exceeds this number.

    Returns
    -------
    The best point that was evaluated, with its value and the path.

    Raises
    ------
    ValueError
        If the arrays do not have one shape, a side is not finite or lies on the wrong side, or
        another argument is out of its range.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003, section 4.2. Unlike there, the other coordinates are still minimised where one
    reaches a side of the box, and the first inverse Hessian is not the identity.

    Examples
    --------
    >>> import numpy as np
    >>> def bowl(x):
    ...     return float((x[0] - 1) ** 2 + (x[1] + 5) ** 2), 2 * (x - [1, -5])
    >>> found = projected_bfgs(bowl, np.zeros(2), np.full(2, -3.0), np.full(2, 3.0))
    >>> found.x.round(3).tolist(), found.reason
    ([1.0, -3.0], 'The value has converged.')
    """
    lower, upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
    x = np.array(start, dtype=float)
    _check_box(x, lower, upper)
    max_evaluations = whole("max_evaluations", max_evaluations, at_least=1)
    tolerance = real("tolerance", tolerance, at_least=0)
    search = _Search(value_and_gradient, np.clip(x, lower, upper), lower, upper, max_evaluations)
    reason = search.run(tolerance)
    return BfgsResult(
        read_only(search.best_x),
        search.best,
        search.n_evaluations,
        read_only(np.array(search.path)),
        reason,
    )


class _Search:
    """The state of one search."""

    def __init__(
        self,
        value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray | None]],
        x: FloatArray,
        lower: FloatArray,
        upper: FloatArray,
        max_evaluations: int,
    ) -> None:
        self.function, self.max_evaluations = value_and_gradient, max_evaluations
        self.lower, self.upper = lower, upper
        self.x, self.best_x, self.path = x, x, [x]
        self.best, self.n_evaluations, self.missed_gradient = math.inf, 0, False

    def run(self, tolerance: float) -> str:
        """Search until the end, and return the reason for it."""
        self.value, first = self._evaluate(self.x)
        self.best = self.value
        if not math.isfinite(self.value):
            return "The value is not finite at the start."
        if first is None:
            return "The value has no gradient at the start."
        self.gradient = first
        H: FloatArray | None = None
        while self._projected_size() > tolerance:
            before, point, gradient = self.value, self.x, self.gradient
            is_fresh = H is None
            if H is None:
                H = _LONGEST_STEP / float(np.linalg.norm(gradient)) * np.eye(len(point))
            if not self._step(self._direction(H)):
                if self.n_evaluations >= self.max_evaluations:
                    return "The largest number of evaluations was reached."
                if is_fresh:
                    return self._blocked()
                H = None
                continue
            is_small = before - self.value <= tolerance * max(1.0, abs(self.value))
            if is_small and not is_fresh:
                return _CONVERGED
            H = _updated(H, self.x - point, self.gradient - gradient)
        return _CONVERGED

    def _evaluate(self, x: FloatArray) -> tuple[float, FloatArray | None]:
        """Return the value and the gradient at a point, or None if that is not finite."""
        self.n_evaluations += 1
        value, gradient = self.function(x.copy())
        if math.isfinite(value) and value < self.best:
            self.best, self.best_x = float(value), x
        if gradient is None:
            return float(value), None
        gradient = np.array(gradient, dtype=float)
        return float(value), gradient if np.isfinite(gradient).all() else None

    def _projected_size(self) -> float:
        """Return the largest coordinate of the gradient that does not point out of the box."""
        held = self._leaves(-self.gradient)
        return float(np.abs(np.where(held, 0.0, self.gradient)).max(initial=0.0))

    def _leaves(self, p: FloatArray) -> BoolArray:
        """Return at which sides of the box a direction points out of it."""
        at_lower, at_upper = self.x <= self.lower, self.x >= self.upper
        leaves: BoolArray = at_lower & (p <= 0) | at_upper & (p >= 0)
        return leaves

    def _direction(self, H: FloatArray) -> FloatArray:
        """Return ``-H g`` on the coordinates that can move, and 0 on the others.

        The coordinates that remain have a direction of descent: one of them at least has a p of the
        opposite sign of g, and where that is at a side, p points into the box.
        """
        free = ~self._leaves(-self.gradient)
        while True:
            p = np.zeros_like(self.x)
            p[free] = -H[np.ix_(free, free)] @ self.gradient[free]
            leaves = free & self._leaves(p)
            if not leaves.any():
                return p
            free &= ~leaves

    def _step(self, p: FloatArray) -> bool:
        """Go along a direction to a sufficiently lower value with a gradient, if there is one."""
        share, self.missed_gradient = 1.0, False
        while np.linalg.norm(self._moved(share * p)) > _LONGEST_STEP:
            share /= 2
        for _ in range(_HALVINGS):
            s = self._moved(share * p)
            share /= 2
            expected = float(self.gradient @ s)
            if expected >= 0:  # cut off at a side, the step may lead upwards
                continue
            if self.n_evaluations >= self.max_evaluations:
                return False
            value, gradient = self._evaluate(self.x + s)
            if value > self.value + _SUFFICIENT * expected or not math.isfinite(value):
                continue
            if gradient is None:
                self.missed_gradient = True
                continue
            self.x, self.value, self.gradient = self.x + s, value, gradient
            self.path.append(self.x)
            return True
        return False

    def _moved(self, p: FloatArray) -> FloatArray:
        """Return a step that is cut off at the sides of the box."""
        end: FloatArray = np.clip(self.x + p, self.lower, self.upper)
        return end - self.x

    def _blocked(self) -> str:
        if self.missed_gradient:
            return "The value has no gradient where a step along the gradient lowers it."
        return "No step along the gradient lowers the value, which may have a jump or a kink here."


def _updated(H: FloatArray, s: FloatArray, change: FloatArray) -> FloatArray:
    """Return the inverse Hessian of BFGS after a step, or the same where it is not convex."""
    product = float(change @ s)
    if product <= np.finfo(float).eps * float(np.linalg.norm(change) * np.linalg.norm(s)):
        return H
    left = np.eye(len(s)) - np.outer(s, change) / product
    updated: FloatArray = left @ H @ left.T + np.outer(s, s) / product
    return updated


def _check_box(x: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    if x.ndim != 1 or not x.shape == lower.shape == upper.shape:
        raise ValueError(
            "`start`, `lower` and `upper` must have one shape (d,), got "
            f"{x.shape}, {lower.shape} and {upper.shape}."
        )
    if not np.isfinite([x, lower, upper]).all():
        raise ValueError("`start`, `lower` and `upper` must be finite, got a number that is not.")
    if (lower > upper).any():
        raise ValueError(
            f"`lower` must be at most `upper`, got {lower.tolist()} and {upper.tolist()}."
        )
