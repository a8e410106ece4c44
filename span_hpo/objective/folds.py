"""Decision values of rows that are held out in turn."""

from collections.abc import Callable

import numpy as np
from sklearn.model_selection import StratifiedKFold

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, read_only, whole
from span_hpo.solver import checked_costs, n_pairs_of


def held_out_values(
    decision_values: Callable[[FloatArray], FloatArray],
    data: Dataset,
    costs: FloatArray,
    folds: int,
    seed: int,
) -> FloatArray:
    """Return the decision values of all rows, each from the fit of the other folds.

    Parameters
    ----------
    decision_values
        Function from the costs of a fit to the decision values of all rows.
    data
        Rows and their classes.
    costs
        Cost of each row in the fits of other folds, shape (l,).
    folds
        Number of folds, each of which has its share of every class.
    seed
        Seed for shuffling rows into folds.

    Returns
    -------
    Values, shape (l,) for two classes and (l, k (k - 1) / 2) otherwise.

    Raises
    ------
    ValueError
        If a class has fewer rows than folds, or no positive cost without one of the folds.
    """
    fewest = int(np.bincount(data.codes).min())
    folds = whole("folds", folds, at_least=2, at_most=max(2, fewest))
    n_pairs = n_pairs_of(len(data.classes))
    values = np.empty((len(data), n_pairs))
    parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(values, data.codes)
    for _, held_out in parts:
        # A row with cost 0 takes no part in the fit, but still gets a decision value.
        others = costs.copy()
        others[held_out] = 0.0
        found = decision_values(checked_costs(others, data.codes, data.classes))
        values[held_out] = found.reshape(len(data), n_pairs)[held_out]
    return read_only(values[:, 0] if n_pairs == 1 else values)
