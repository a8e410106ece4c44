"""Standard errors: by how much losses vary with the sample of rows.

The leave-one-out values of the rows are taken as they are. That other rows would also have given
another model is not part of a standard error.
"""

from collections.abc import Callable, Iterator

import numpy as np

from span_hpo.metrics.metric import Metric
from span_hpo.runtime import FloatArray, IndexArray, rows_of

_RESAMPLES = 200  # bootstrap samples of the rows
_SEED = 0


def standard_error(metric: Metric, y: FloatArray, f: FloatArray, w: FloatArray) -> float:
    """Return the standard error of a loss.

    That of a mean follows from the losses of the rows; see `RowLosses.influences`. That of any
    other loss is its standard deviation over bootstrap samples that are drawn within the classes,
    so that no class is missing.

    Parameters
    ----------
    metric
        The loss.
    y, f, w
        Labels, decision values and weights of the rows.
    """
    rows = metric.row_losses(y, f, w)
    if rows is not None:
        return float(np.linalg.norm(rows.influences(w)))
    return float(np.std(_resampled(metric, y, f, w), ddof=1))


def paired_standard_error(
    metric: Metric, y: FloatArray, f: FloatArray, other: FloatArray, w: FloatArray
) -> float:
    """Return the standard error of the difference of two losses on the same rows.

    Parameters
    ----------
    metric
        The loss.
    y, w
        Labels and weights of the rows.
    f, other
        Decision values of the two models.
    """
    rows, others = metric.row_losses(y, f, w), metric.row_losses(y, other, w)
    if rows is not None and others is not None:
        return float(np.linalg.norm(rows.influences(w) - others.influences(w)))
    differences = _resampled(metric, y, f, w) - _resampled(metric, y, other, w)
    return float(np.std(differences, ddof=1))


def spread_over_samples(loss: Callable[[IndexArray], float], y: FloatArray, w: FloatArray) -> float:
    """Return the standard deviation of a loss over the samples of `standard_error`.

    Parameters
    ----------
    loss
        Function that returns the loss of a sample from the indices of its rows.
    y, w
        Labels and weights of all rows.
    """
    return float(np.std([loss(rows) for rows in _samples(y, w)], ddof=1))


def _resampled(metric: Metric, y: FloatArray, f: FloatArray, w: FloatArray) -> FloatArray:
    """Return the losses of bootstrap samples, which are the same for all decision values."""
    return np.array([metric.loss(y[rows], f[rows], w[rows]) for rows in _samples(y, w)])


def _samples(y: FloatArray, w: FloatArray) -> Iterator[IndexArray]:
    rng = np.random.default_rng(_SEED)
    weighted = [rows_of((y == label) & (w > 0)) for label in np.unique(y)]
    classes = [rows for rows in weighted if len(rows)]
    for _ in range(_RESAMPLES):
        yield np.concatenate([rng.choice(rows, len(rows)) for rows in classes])
