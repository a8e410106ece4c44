"""The predictions of training rows by the models that were fitted without them."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.metaestimators import available_if

from span_hpo.calibration import class_probabilities, loo_sigmoids
from span_hpo.data import Dataset
from span_hpo.loo import LeaveOneOut
from span_hpo.runtime import Array, FloatArray, IndexArray
from span_hpo.solver import is_wrong, voted


@dataclass(frozen=True, eq=False)
class LabelledValues:
    """Leave-one-out values with their labels, as metrics get them.

    Attributes
    ----------
    y
        Labels: -1 and +1 for two classes, class numbers for more.
    decision_values
        Leave-one-out values, shape (l,) for two classes and (l, pairs) for more.
    classes
        Labels of the classes in sorted order.
    """

    y: FloatArray
    decision_values: FloatArray
    classes: Array

    @property
    def codes(self) -> IndexArray:
        """Number of the class of each row, shape (l,)."""
        codes: IndexArray = (self.y > 0 if self.decision_values.ndim == 1 else self.y).astype(int)
        return codes

    @property
    def labels(self) -> Array:
        """Label of each row, shape (l,)."""
        labels: Array = self.classes[self.codes]
        return labels

    def classifier(self, weight: FloatArray) -> "LeftOutClassifier":
        """Return the classifier of these rows, which all count as rows of the user."""
        count = len(self.y)
        return LeftOutClassifier(self, self, weight, np.arange(count), count)


def _has_two_classes(classifier: Any) -> bool:
    return len(classifier.classes_) == 2


class LeftOutClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # no types there
    """A classifier of training rows, each of which is predicted by the model without that row.

    Where a classifier has features, its methods take indices of training rows. With them, scorers
    of scikit-learn compute what they always compute, but from leave-one-out predictions.

    Parameters
    ----------
    loo
        Leave-one-out result, or its values and labels.
    data
        Rows and labels of the fit, or the labels only.
    weight
        Weight of each row of the fit, by which its value counts in the calibration.
    rows
        Rows of the fit among those that the user gave.
    n_rows
        Number of rows that the user gave. Those that took no part in the fit have values of NaN and
        no prediction.

    Attributes
    ----------
    classes_
        Labels of the classes in sorted order.
    decision_values_
        Decision values of all rows, shape (n_rows,), or with a column for each pair of classes.
    """

    def __init__(
        self,
        loo: LeaveOneOut | LabelledValues,
        data: Dataset | LabelledValues,
        weight: FloatArray,
        rows: IndexArray,
        n_rows: int,
    ) -> None:
        self.loo = loo
        self.data = data
        self.weight = weight
        self.rows = rows
        self.n_rows = n_rows
        self.classes_ = data.classes.copy()

    @property
    def decision_values_(self) -> FloatArray:
        """Decision values of all rows, which are NaN for rows that took no part in the fit."""
        return self._of_all(self.loo.decision_values)

    def predict(self, rows: IndexArray) -> Array:
        """Return the label that the model without the row gives it, for rows of the fit."""
        labels: Array = self.classes_[self._codes[self._places(rows)]]
        return labels

    def predict_proba(self, rows: IndexArray) -> FloatArray:
        """Return the probability of every class, shape (m, k), for any rows.

        They are the sigmoids of leave-one-out values. The sigmoids have two numbers for each pair
        of classes, and are fitted to the values of all rows.
        """
        return self._probabilities[rows]

    @available_if(_has_two_classes)  # type: ignore[untyped-decorator]
    def decision_function(self, rows: IndexArray) -> FloatArray:
        """Return the leave-one-out decision values, shape (m,), if there are two classes."""
        return self.decision_values_[rows]

    @functools.cached_property
    def _probabilities(self) -> FloatArray:
        """Probabilities of all rows, which scores of many samples of rows need only once."""
        sigmoids = loo_sigmoids(self.loo, self.weight)
        return self._of_all(class_probabilities(sigmoids, self.loo.decision_values, self._codes))

    @functools.cached_property
    def _codes(self) -> IndexArray:
        """Return the number of the predicted class of each row of the fit."""
        codes, values = self.data.codes, self.loo.decision_values
        if values.ndim == 2:
            return voted(codes, values)
        predicted: IndexArray = np.where(is_wrong(self.loo.y, values), 1 - codes, codes)
        return predicted

    def _places(self, rows: IndexArray) -> IndexArray:
        """Return where rows of the user stand among the rows of the fit."""
        return np.searchsorted(self.rows, rows)

    def _of_all(self, values: FloatArray) -> FloatArray:
        """Return values of the rows of the fit in the places of the rows that the user gave."""
        found = np.full((self.n_rows, *values.shape[1:]), np.nan)
        found[self.rows] = values
        return found
