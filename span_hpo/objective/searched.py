"""What a search asks an objective before its first trial: grids, starts, budgets, memory."""

import functools
from collections.abc import Mapping
from typing import Any

from span_hpo.kernels import KernelCache, KernelMemory
from span_hpo.objective.budgets import budgets_in_rows
from span_hpo.objective.words import InWords
from span_hpo.space import grid, is_logarithmic, started
from span_hpo.weighting import starts_of

_USUAL_COSTS = (0.1, 10.0)  # range of the mean cost at which a search may begin


class Searched(InWords):
    """An objective that can say where and on how many rows it may be evaluated."""

    _kernels: KernelCache

    @functools.cached_property
    def _kernel_starts(self) -> list[dict[str, Any]]:
        """Hyperparameters of the kernel to begin with, which depend on distances of the rows."""
        return list(self.kernel.starts(self.data.X))

    def grid(self, points: int | Mapping[str, int]) -> dict[str, list[Any]]:
        """Return a grid, which is a list of values for every name in `space`.

        Parameters
        ----------
        points
            Number of values: one for all names, or a mapping with a number for every name.

        Returns
        -------
        Lists of values by name. A `Choice` gives all its options.

        Examples
        --------
        >>> from span_hpo import SpanObjective
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.grid(3)
        {'C_0': [0.015625, 4.0, 1024.0], 'C_1': [0.015625, 4.0, 1024.0]}
        """
        return grid(self.space, points)

    def defaults(self) -> list[dict[str, Any]]:
        """Return points to begin a search with.

        The kernel suggests widths of one over the number of features and over the median squared
        distance; the weighting suggests costs of 1 and costs that balance the classes.

        Returns
        -------
        Distinct points, each with a value within its range for every name in `space`.

        Examples
        --------
        >>> from span_hpo import SpanObjective
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.defaults()
        [{'C_0': 1.0, 'C_1': 1.0}]
        """
        weightings = starts_of(self.weighting, self.data)
        points = [{**k, **w} for k in self._kernel_starts for w in weightings]
        return started(self.space, points)

    @property
    def alike(self) -> tuple[str, ...]:
        """Names of hyperparameters that have one meaning, such as the widths of features.

        Searches by gradients expect their values to differ only where the rows show it.
        """
        names: tuple[str, ...] = self.kernel.alike
        return names

    @property
    def scales(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the costs and of the widths: hyperparameters on logarithmic scales.

        They are those of which the weighting and the kernel have a first guess. A search by
        gradients first looks for the scale of all costs together, and of all widths together.
        """
        guesses = starts_of(self.weighting, self.data)[-1], self._kernel_starts[-1]
        costs, widths = (
            tuple(name for name in guess if is_logarithmic(self.space.get(name)))
            for guess in guesses
        )
        return costs, widths

    def centres(self) -> list[dict[str, Any]]:
        """Return points in whose neighbourhood a search by gradients begins.

        They are the last points of `defaults`, in which widths are one over the median squared
        distance of the rows, with costs of 1 and with costs that balance the classes. Where weights
        of rows are small, for instance because they add up to 1, the costs are raised until they
        are 1 in the mean; large weights lower them.
        """
        widths = self._kernel_starts[-1]
        guesses = [{**widths, **costs} for costs in starts_of(self.weighting, self.data)]
        return [self._with_usual_costs(params) for params in started(self.space, guesses)]

    def _with_usual_costs(self, params: dict[str, Any]) -> dict[str, Any]:
        """Return a point whose costs are multiplied so that they are about 1 in the mean."""
        mean = float(self.weighting.costs(self.data, params).mean())
        if mean <= 0 or _USUAL_COSTS[0] <= mean <= _USUAL_COSTS[1]:
            return params
        names, _ = self.scales
        usual = {name: self.space[name].nearest(params[name] / mean) for name in names}
        return {**params, **usual}

    def share_of_row(self, rows: int | None = None) -> float:
        """Return what one row adds to the loss if it is as wrong as can be, for a smooth error.

        Parameters
        ----------
        rows
            Number of rows of an evaluation, by default all.
        """
        return 1 / (len(self.data) if rows is None else rows)

    def budget_rows(self, budgets: Any) -> tuple[int, ...]:
        """Return budgets as numbers of rows.

        Parameters
        ----------
        budgets
            Increasing numbers of rows, or shares of all rows.

        Raises
        ------
        ValueError
            If the budgets do not increase, or the smallest has too few rows to hold all classes.

        Examples
        --------
        >>> from span_hpo import SpanObjective
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.budget_rows([0.5, 1.0])
        (2, 4)
        """
        return budgets_in_rows(budgets, self.data)

    def memory(self, threads: int = 1) -> KernelMemory:
        """Return a forecast of the memory that trials in so many threads take."""
        return self._kernels.memory(threads)
