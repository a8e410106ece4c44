"""Three numbers that say the same for all data, and the arguments of `LooSVC` that follow."""

from typing import Any

import numpy as np

from span_hpo.kernels import RELATIVE_WIDTHS, median_squared_distance
from span_hpo.runtime import Array
from span_hpo.space import Float
from span_hpo.weighting import BALANCE_RANGE, COST_RANGE, balanced_weights

LEARNER_SPACE: dict[str, Float] = {
    "C": COST_RANGE,
    "width": RELATIVE_WIDTHS,
    "balance": BALANCE_RANGE,
}
LEARNER_START = {"C": 1.0, "width": 1.0, "balance": 0.0}


def learner_arguments(
    X: Any, y: Array, *, C: float = 1.0, width: float = 1.0, balance: float = 0.0
) -> dict[str, Any]:
    """Return arguments of `LooSVC` for some rows.

    Parameters
    ----------
    X, y
        Scaled features, shape (l, d), dense or sparse, and labels, shape (l,).
    C
        Cost of a row if all classes have the same number of rows.
    width
        Product of ``gamma`` of the RBF kernel and the median squared distance of the rows.
    balance
        Exponent of the class weights: a row of class c costs ``C (l / (k l_c))^balance``, where l_c
        of the l rows are in class c, and k is the number of classes.
    """
    labels, counts = np.unique(y, return_counts=True)
    weights = balanced_weights(counts, balance).tolist()
    return {
        "C": C,
        "kernel": "rbf",
        "gamma": width / median_squared_distance(X),
        "class_weight": dict(zip(labels.tolist(), weights, strict=True)),
    }
