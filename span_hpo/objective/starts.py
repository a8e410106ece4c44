"""The order in which points are evaluated, and the solution at which each fit begins.

If all costs grow by one factor, the bounded rows mostly stay bounded, and the dual variables grow
along. A fit therefore begins at the solution whose costs differ least in shape: the *signature* of
a point is the logarithm of some of its costs, and two points are close if the differences of their
signatures are close to each other and to 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.kernels import KernelBlocks
from span_hpo.runtime import Array, FloatArray
from span_hpo.solver import DualSolution, PairwiseSolution, Problem, solve, solve_pairs

_SAMPLED_ROWS = 32  # number of rows whose costs are compared
_MOST_STARTS = 64  # number of the latest solutions that are kept
_SHAPE_WEIGHT = 2.0  # how much more the spread of differences counts than their mean
_LEAST_COST = 1e-300  # stands for 0, which has no logarithm


class Starts:
    """The latest solutions of a batch of points, of which the nearest is a start for the next."""

    def __init__(self) -> None:
        self._here = np.empty(0)
        self._signatures = np.empty((_MOST_STARTS, 0))
        self._solutions: list[DualSolution] = []
        self._count = 0

    def move_to(self, signature: FloatArray) -> None:
        """Go to the next point."""
        if not self._solutions:
            self._signatures = np.empty((_MOST_STARTS, len(signature)))
        self._here = signature

    def nearest(self) -> DualSolution | None:
        """Return the solution at the nearest point so far, or None at the first point."""
        if not self._solutions:
            return None
        differences = self._here - self._signatures[: len(self._solutions)]
        spread = differences.max(axis=1) - differences.min(axis=1)
        distance = _SHAPE_WEIGHT * spread + np.abs(differences.mean(axis=1))
        return self._solutions[int(distance.argmin())]

    def solved(self, problem: Problem, settings: dict[str, Any]) -> DualSolution:
        """Return the solution at this point, and keep it without its factors."""
        solution = solve(problem, **settings, start=self.nearest())
        light = replace(solution, known_spans=None)
        place = self._count % _MOST_STARTS  # of the oldest solution, which is dropped
        self._signatures[place] = self._here
        self._solutions[place : place + 1] = [light]
        self._count += 1
        return solution


def fitted(
    K: KernelBlocks,
    data: Dataset,
    costs: FloatArray,
    settings: dict[str, Any],
    starts: Starts | None,
) -> DualSolution | PairwiseSolution:
    """Return the fit of two classes, which may begin at one of the starts, or of all pairs."""
    if len(data.classes) > 2:
        return solve_pairs(K, data.codes, costs, **settings)
    problem = Problem.of_checked(K, data.y, costs)
    return solve(problem, **settings) if starts is None else starts.solved(problem, settings)


def walk(kernels: Sequence[str], costs: Sequence[Array]) -> Iterator[tuple[int, Starts]]:
    """Yield the numbers of all points in a good order, together with starts for their fits.

    Points with one kernel follow each other from low to high costs.

    Parameters
    ----------
    kernels
        What distinguishes the kernel of each point from others.
    costs
        Costs of all rows at each point, shape (l,).
    """
    batches: dict[str, list[int]] = {}
    for number, kernel in enumerate(kernels):
        batches.setdefault(kernel, []).append(number)
    for numbers in batches.values():
        signatures = {number: _signature(np.asarray(costs[number])) for number in numbers}
        starts = Starts()
        for number in sorted(numbers, key=lambda number: float(signatures[number].mean())):
            starts.move_to(signatures[number])
            yield number, starts


def _signature(costs: FloatArray) -> FloatArray:
    """Return the logarithms of the costs of some rows."""
    some = costs[:: max(1, len(costs) // _SAMPLED_ROWS)]
    signature: FloatArray = np.log(np.maximum(some, _LEAST_COST))
    return signature
