"""Budgets: the increasing numbers of rows on which a search may evaluate a trial."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.runtime import ArgumentError, plain, real, whole

_SHARE_ROUNDING = 1e-12  # relative rounding of a product: 0.29 * 100 gives 28.99..., but means 29


def budgets_in_rows(budgets: Any, data: Dataset) -> tuple[int, ...]:
    """Return budgets as numbers of rows.

    Parameters
    ----------
    budgets
        Increasing numbers of rows, or shares of all rows.
    data
        The rows, with their labels.

    Raises
    ------
    ValueError
        If the budgets are not increasing numbers or shares of rows, or the smallest has too few
        rows to hold all classes.
    """
    if isinstance(budgets, str) or not isinstance(budgets, Sequence | np.ndarray):
        raise ArgumentError(
            "budgets", f"must be a list of numbers or shares of rows, got {budgets!r}."
        )
    if len(budgets) == 0:
        raise ArgumentError("budgets", "must have at least one number or share of rows, got none.")
    total, least = len(data), data.least_rows
    counts: list[int] = []
    for budget in budgets:
        if isinstance(budget, float | np.floating):
            share = real("budgets", budget, above=0)
            if share > 1:
                raise ArgumentError("budgets", f"must have shares of at most 1.0, got {share!r}.")
            counts.append(math.floor(share * total * (1 + _SHARE_ROUNDING)))
        else:
            counts.append(whole("budgets", budget, at_least=1, at_most=total))
    if any(later <= earlier for earlier, later in pairwise(counts)):
        raise ArgumentError(
            "budgets", f"must increase, got {plain(list(budgets))}, which is {counts} rows."
        )
    if counts[0] < least:
        raise ArgumentError(
            "budgets",
            f"must have at least {least} rows to hold all classes, got {plain(list(budgets))}, "
            f"which is {counts} rows.",
        )
    return tuple(counts)
