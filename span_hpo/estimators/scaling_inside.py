"""Leave rows out of the scaling as well, and say how many rows this concerns.

A row that defines no minimum or maximum can be left out without changing a scaling by ranges. All
other rows need a fit of their own, on the features as they are scaled without the row.
"""

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csc_array, issparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler

from span_hpo.errors import ScalingWarning
from span_hpo.estimators.scaling import (
    as_scale,
    check_unscaled,
    fitted_scaler,
    scale_name,
    scaled,
)
from span_hpo.loo import RowValues
from span_hpo.objective import Evaluation, SpanObjective, left_out_rows, with_values
from span_hpo.runtime import FloatArray, IndexArray

_CONSTANT = 10 * np.finfo(float).eps  # range below which scikit-learn calls a feature constant
_SMALL_SHARE = 0.1  # largest share of defining rows of which there is no warning
_BY_RANGES = {
    MinMaxScaler: "the minimum or maximum of a feature",
    MaxAbsScaler: "the largest absolute value of a feature",
}


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """Training rows, and how they are scaled.

    Attributes
    ----------
    scale
        The scaling, as `as_scale` returns it.
    X, y
        Features before scaling, shape (l, d), and labels, shape (l,).
    scaler
        Fitted scaler, or None if nothing is scaled.
    """

    scale: Any
    X: Any
    y: Any
    scaler: Any

    @classmethod
    def of(cls, scale: Any, X: Any, y: Any, *, is_kernel: bool = False) -> "ScaledRows":
        """Return rows with the scaler that is fitted to them; a kernel matrix is not scaled."""
        if is_kernel:
            check_unscaled(scale)
        scale = None if is_kernel else as_scale(scale, X)
        return cls(scale, X, y, fitted_scaler(scale, X, y))

    @property
    def name(self) -> str | None:
        """Name of the scaling, for the description of an objective."""
        return scale_name(self.scale)

    @property
    def features(self) -> Any:
        """Scaled features."""
        return scaled(self.scaler, self.X)

    @cached_property
    def defining(self) -> IndexArray:
        """Rows without which the scaling would be another one, in increasing order."""
        return defining_rows(self.scaler, self.X)

    def features_without(self, row: int) -> Any:
        """Return the features of all rows, scaled as the rows other than the given one are."""
        others = np.delete(np.arange(len(self.y)), row)
        return scaled(fitted_scaler(self.scale, self.X[others], self.y[others]), self.X)

    def warn(self, *, inside: bool, stacklevel: int = 2) -> None:
        """Warn if many rows define the scaling, or if avoiding this takes one fit per row.

        Parameters
        ----------
        inside
            Whether rows are left out of the scaling as well.
        stacklevel
            Number of calls to go back to the line that the warning names.
        """
        if self.scaler is None:
            return
        text = None
        if inside and type(self.scaler) not in _BY_RANGES:
            text = self._about_the_cost()
        elif not inside and self.leak is not None:
            text = (
                f"{self.leak} `scale_inside=True` refits them with a scaling of the other rows, "
                "and `scale=None` does not scale."
            )
        if text is not None:
            warnings.warn(text, ScalingWarning, stacklevel=stacklevel + 1)

    @property
    def share(self) -> float:
        """Share of the rows that define the scaling."""
        return len(self.defining) / len(self.y)

    @property
    def leak(self) -> str | None:
        """What ranges of all rows do to the leave-one-out error; None if it concerns few rows."""
        if type(self.scaler) not in _BY_RANGES or self.share <= _SMALL_SHARE:
            return None
        return (
            f"{len(self.defining)} of {len(self.y)} rows ({100 * self.share:.0f} %) alone define "
            f"{_BY_RANGES[type(self.scaler)]}. The scaling still depends on these rows when they "
            "are left out, so that the leave-one-out error may be too low."
        )

    def _about_the_cost(self) -> str:
        fewer = ScaledRows.of("minmax", self.X, self.y)
        text = (
            f"`scale_inside=True` makes {len(self.y)} refits, one for every row, because every row "
            f"takes part in the scaling {self.name}."
        )
        if len(fewer.defining) < len(self.y):
            text += f" With `scale='minmax'` it would make {len(fewer.defining)}."
        return text

    def evaluated_inside(self, objective: SpanObjective, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation in which rows are left out of the scaling as well.

        The values of the other rows, whose scaling stays as it is, come from the method "exact" if
        the evaluation has estimates of the span-rule. This also holds if nothing is scaled.

        Parameters
        ----------
        objective
            Objective of the scaled rows.
        evaluation
            Evaluation of the objective on all rows.
        """
        if evaluation.loo.method == "span":
            evaluation = objective.evaluate(evaluation.params, loo_method="exact", complete=True)
        new = left_out_rows(objective, evaluation.params, self.defining, self.features_without)
        return with_values(objective, evaluation, new)


def as_scale_inside(scale_inside: Any) -> bool:
    """Return the checked argument of this name."""
    if not isinstance(scale_inside, bool | np.bool_):
        raise TypeError(f"`scale_inside` must be True or False, got {scale_inside!r}.")
    return bool(scale_inside)


def exact_evaluation(model: Any, rows: IndexArray) -> Evaluation:
    """Return the exact evaluation of a fitted estimator, with the refits that it has made.

    Parameters
    ----------
    model
        A fitted `SpanSVC`.
    rows
        Rows of its objective that were refitted for its `loo_`; these are not refitted again.
    """
    objective: SpanObjective = model.objective_
    evaluation = objective.evaluate(model.best_params_, loo_method="exact")
    return with_values(objective, evaluation, RowValues.of(model.loo_, rows) if len(rows) else None)


def defining_rows(scaler: Any, X: Any) -> IndexArray:
    """Return the rows without which a scaler would be another one, in increasing order.

    These are the rows with the only smallest or only largest value of some feature for a
    ``MinMaxScaler``, and with the only largest absolute value for a ``MaxAbsScaler``. A feature
    that is constant without a row is not scaled then, so that a single 1 among zeros does not count
    for either of them. They are all rows for any other scaler, and none if nothing is scaled.

    Parameters
    ----------
    scaler
        Fitted scaler, or None.
    X
        Features before scaling, shape (l, d), dense or sparse.
    """
    if scaler is None:
        return np.empty(0, dtype=np.intp)
    if type(scaler) not in _BY_RANGES:
        return np.arange(X.shape[0])
    if issparse(X):
        return np.unique(_alone_largest_of_sparse(X))
    if type(scaler) is MaxAbsScaler:
        return np.unique(_alone_largest(np.abs(X), np.zeros(X.shape[1])))
    is_lowest = X.min(axis=0) == X
    lowest = is_lowest.argmax(axis=0)[is_lowest.sum(axis=0) == 1]
    return np.unique(np.concatenate([_alone_largest(X, X.min(axis=0)), lowest]))


def _alone_largest(X: FloatArray, origin: FloatArray) -> IndexArray:
    """Return the rows without which a feature, less its origin, has another largest value."""
    rows, columns = X.argmax(axis=0), np.arange(X.shape[1])
    if len(X) < 2:
        return np.unique(rows)
    largest, second = X[rows, columns], np.partition(X, -2, axis=0)[-2]
    found: IndexArray = rows[_divisor(largest - origin) != _divisor(second - origin)]
    return found


def _alone_largest_of_sparse(X: Any) -> IndexArray:
    """Return the rows without which a feature has another largest absolute value."""
    columns = csc_array(X)
    columns.sum_duplicates()
    sizes, counts = np.abs(columns.data), np.diff(columns.indptr)
    owner = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((sizes, owner))  # by feature, then by size
    last = columns.indptr[1:][counts > 0] - 1
    # Zeros that are not stored count as well.
    second = np.where(counts[counts > 0] > 1, sizes[order[np.maximum(last - 1, 0)]], 0.0)
    is_alone = _divisor(sizes[order[last]]) != _divisor(second)
    found: IndexArray = columns.indices[order[last[is_alone]]].astype(np.intp)
    return found


def _divisor(size: FloatArray) -> FloatArray:
    """Return what scalers of scikit-learn divide a feature by, which is 1 for constant ones."""
    divisor: FloatArray = np.where(size < _CONSTANT, 1.0, size)
    return divisor
