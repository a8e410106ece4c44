"""Adam: steps along a mean of past gradients, each coordinate in units of its own past slopes.

A leave-one-out loss jumps a little where a support vector changes its kind, so that line searches
stop at the first jump. Adam does not compare values at all and passes over jumps.

References
----------
Kingma and Ba, "Adam: a method for stochastic optimization", 2015.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from span_hpo.runtime import FloatArray

_OF_MEAN = 0.8  # share of the mean gradient that each step keeps
_OF_SQUARES = 0.95  # share of the mean squared gradient that each step keeps
_SHARED = 0.5  # share of the steepest slope in the units of coordinates that are alike
_FLAT = 1e-6  # slope that is as good as none
_FIRST_RATE = 0.2  # length of the first step in each coordinate, where the gradient is steady
_LAST_RATE = 1e-4  # length of the last step


@dataclass(frozen=True, eq=False)
class Descent:
    """Where a descent by Adam stands, as a value: `moved` returns where it stands next.

    Attributes
    ----------
    point
        Point to evaluate next, shape (d,).
    mean, squares
        Means of past gradients and of their squares, shape (d,).
    step
        Number of steps so far.
    alike
        Positions of coordinates that have one meaning, such as widths of features. Half of the unit
        of their steps is that of the steepest of them, so that those that hardly matter move less.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo.search import Descent
    >>> descent = Descent.at(np.array([3.0]))
    >>> for _ in range(60):
    ...     gradient = 2 * descent.point
    ...     descent = descent.moved(gradient, 60, np.array([-5.0]), np.array([5.0]))
    >>> bool(abs(descent.point[0]) < 0.1)
    True
    """

    point: FloatArray
    mean: FloatArray
    squares: FloatArray
    step: int
    alike: tuple[int, ...] = ()

    @classmethod
    def at(cls, point: FloatArray, alike: Sequence[int] = ()) -> "Descent":
        """Return a descent that begins at a point."""
        return cls(point, np.zeros_like(point), np.zeros_like(point), 0, tuple(alike))

    def moved(
        self, gradient: FloatArray, steps: int, lower: FloatArray, upper: FloatArray
    ) -> "Descent":
        """Return the descent after a step from its point.

        Parameters
        ----------
        gradient
            Gradient at the point, shape (d,).
        steps
            Number of steps after which the descent shall end: the length of steps falls like a
            cosine from 0.2 to nearly 0.
        lower, upper
            Sides of the box, shape (d,).
        """
        done = self.step + 1
        mean = _OF_MEAN * self.mean + (1 - _OF_MEAN) * gradient
        squares = _OF_SQUARES * self.squares + (1 - _OF_SQUARES) * self._units(gradient)
        rate = _FIRST_RATE * 0.5 * (1 + math.cos(math.pi * min(self.step / steps, 1.0)))
        unbiased = mean / (1 - _OF_MEAN**done)
        typical = np.sqrt(squares / (1 - _OF_SQUARES**done))
        point = self.point - (rate + _LAST_RATE) * unbiased / (typical + _FLAT)
        return Descent(np.clip(point, lower, upper), mean, squares, done, self.alike)

    def _units(self, gradient: FloatArray) -> FloatArray:
        """Return the squared slopes, which those that are alike share in part."""
        squares: FloatArray = gradient**2
        if self.alike:
            places = list(self.alike)
            squares[places] = (1 - _SHARED) * squares[places] + _SHARED * squares[places].max()
        return squares

    def at_point(self, point: FloatArray) -> "Descent":
        """Return the same descent at another point, for one that has no gradient."""
        return replace(self, point=point)
