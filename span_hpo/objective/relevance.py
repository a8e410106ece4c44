"""How much each feature contributes to the distances of a kernel with a width for each."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.kernels import ARD
from span_hpo.objective.span_objective import SpanObjective
from span_hpo.runtime import FloatArray
from span_hpo.space import Params, checked_params


def feature_relevance(objective: SpanObjective, params: Params) -> dict[Any, float]:
    """Return the relevance of each feature to the kernel, the most relevant feature first.

    The relevance of feature k is ``gamma_k var(x_k)``, its width times its variance over the rows
    of the objective. The exponent of the kernel is ``sum_k gamma_k (x_k - z_k)^2``, whose mean over
    all pairs of rows is twice the sum of all relevances. A feature with relevance 0 does not
    matter, because the kernel does not depend on it; with 0.01, two rows that differ as usual in
    this feature only have a kernel value of 0.98. The relevance does not change if features are
    shifted or multiplied. Features of one group have the same width.

    Relevance is a matter of the kernel and not of causes: of two features that say the same, either
    may have all of it, or both may share it. A constant feature has none.

    Parameters
    ----------
    objective
        Objective with the kernel `ARD`.
    params
        A value for every name in the `space` of the objective, such as those that a search has
        found.

    Returns
    -------
    Relevance of each feature by the name of its column, or by its number if there are no names.

    Raises
    ------
    ValueError
        If the kernel has no width for each feature, or a parameter is missing, unknown or not
        valid.

    Examples
    --------
    >>> from span_hpo import ARD, SpanObjective, feature_relevance
    >>> X = [[0.0, 7.0], [2.0, 7.0], [4.0, 7.0], [6.0, 7.0]]
    >>> objective = SpanObjective(X, [0, 0, 1, 1], kernel=ARD(gamma=0.5), weighting="uniform")
    >>> feature_relevance(objective, {"C": 1.0})
    {0: 2.5, 1: 0.0}
    """
    kernel = objective.kernel
    if not isinstance(kernel, ARD):
        raise ValueError(
            "`objective` must have a kernel with a width for each feature, such as kernel='ard', "
            f"got {type(kernel).__name__}."
        )
    widths = kernel.widths(kernel.values(checked_params(objective.space, params)))
    relevance = (widths * _variances(objective.data.X)).tolist()
    names = kernel.columns
    keys: Sequence[Any] = range(len(relevance)) if names is None else names
    # Features of equal relevance keep their order.
    pairs = sorted(zip(keys, relevance, strict=True), key=lambda pair: -pair[1])
    return dict(pairs)


def _variances(X: Any) -> FloatArray:
    """Return the variance of each feature over all rows, shape (d,)."""
    if not sparse.issparse(X):
        found: FloatArray = np.var(X, axis=0)
        return found
    count, columns = X.shape
    mean = np.bincount(X.indices, X.data, columns) / count
    squares = np.bincount(X.indices, (X.data - mean[X.indices]) ** 2, columns)
    zeros = count - np.bincount(X.indices, minlength=columns)
    spread: FloatArray = (squares + zeros * mean**2) / count
    return spread
