"""The final model: scikit-learn's ``SVC``, whose costs depend on the class or on the row."""

import copy
from typing import Any

import numpy as np
from sklearn.svm import SVC

from span_hpo.data import Dataset
from span_hpo.kernels import Kernel, Precomputed
from span_hpo.runtime import FloatArray, read_only

_MODEL_TOL = 1e-5  # stopping tolerance of the final model, which is fitted only once
_NEGLIGIBLE_COST = 1e-12  # cost, relative to the largest, that replaces 0 where a row must stay


class RowCostSVC(SVC):  # type: ignore[misc]  # scikit-learn has no types
    """An ``SVC`` whose costs differ within a class, and which cannot be fitted without them.

    Its parameters and methods are those of ``SVC``. A parameter cannot hold the costs, because
    other rows need other costs: a copy by ``sklearn.base.clone`` asks for them in `fit`.

    Attributes
    ----------
    costs_
        Cost of each row of the fit, shape (l,). ``clone(model).fit(X, y, model.costs_)`` is the
        same model.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from span_hpo import PowerScore, SpanObjective
    >>> X, y, weighting = [[0], [1], [3], [4]], [0, 0, 1, 1], PowerScore(C=1.0, tau=1.0)
    >>> objective = SpanObjective(X, y, kernel="linear", weighting=weighting, scores=[1, 0.5, 1, 1])
    >>> model = objective.fit_model({})
    >>> model.costs_.tolist()
    [1.0, 0.5, 1.0, 1.0]
    >>> clone(model).fit(X, y)
    Traceback (most recent call last):
        ...
    ValueError: `sample_weight` must be the costs of the rows...
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "RowCostSVC":
        """Fit the model to rows with these costs, which are multiplied by ``C``.

        Raises
        ------
        ValueError
            If no costs are given.
        """
        if sample_weight is None:
            raise ValueError(
                "`sample_weight` must be the costs of the rows, because they differ within a class "
                "and `C` and `class_weight` cannot hold them, got None. The fitted model has them "
                "as `costs_`."
            )
        self.costs_ = read_only(np.array(sample_weight, dtype=float))
        # A row with weight 0 would be dropped, and scikit-learn would renumber the others.
        super().fit(X, y, _positive(self.costs_))
        return self


def fitted_svc(
    data: Dataset, kernel: Kernel, values: dict[str, Any], costs: FloatArray, max_iter: int
) -> SVC:
    """Return a model that is fitted on all rows and predicts the labels of new ones.

    If the costs depend on the class only, they are the parameters ``C`` or ``class_weight`` of the
    model, and a copy of it by ``sklearn.base.clone`` has them. Otherwise the model is a
    `RowCostSVC`.

    Parameters
    ----------
    data
        Features and labels.
    kernel, values
        The kernel and the values of its hyperparameters.
    costs
        Cost of each row, shape (l,).
    max_iter
        Largest number of steps.
    """
    if isinstance(kernel, Precomputed):
        # New kernel matrices have a column for every row, so none may be dropped.
        costs = _positive(costs)
    arguments = {"tol": _MODEL_TOL, "max_iter": max_iter, **kernel.svc_arguments(**values)}
    of_classes = _class_costs(data, costs)
    # Fit class numbers, because scikit-learn rejects some labels, such as 0.5 or dates.
    if of_classes is None:
        kept = slice(None) if costs.all() else costs > 0
        model = RowCostSVC(**arguments).fit(data.X[kept], data.codes[kept], costs[kept])
        model.costs_ = read_only(costs.copy())
    elif len(set(of_classes)) == 1:
        model = SVC(C=of_classes[0], **arguments).fit(data.X, data.codes)
    else:
        model = SVC(class_weight=dict(enumerate(of_classes)), **arguments).fit(data.X, data.codes)
        model.class_weight = dict(zip(data.classes.tolist(), of_classes, strict=True))
    model.classes_ = data.classes.copy()
    if data.feature_names is not None:
        model.feature_names_in_ = data.feature_names
    return model


def pair_values(svc: SVC, X: Any) -> FloatArray:
    """Return the decision values of every pair of classes, positive for its second class.

    Parameters
    ----------
    svc
        Fitted model.
    X
        Features of m rows, as the model was fitted to them.

    Returns
    -------
    Values, shape (m,) for two classes, and (m, pairs) for more.
    """
    of_pairs = copy.copy(svc)
    of_pairs.decision_function_shape = "ovo"
    values: FloatArray = of_pairs.decision_function(X)
    # The values that scikit-learn gives for several pairs are positive for the first class.
    return values if len(svc.classes_) == 2 else -values


def _positive(costs: FloatArray) -> FloatArray:
    """Return the costs with a negligible one in place of 0."""
    positive: FloatArray = np.maximum(costs, _NEGLIGIBLE_COST * costs.max(initial=0.0))
    return positive


def _class_costs(data: Dataset, costs: FloatArray) -> list[float] | None:
    """Return the cost of each class, or None if costs differ within a class."""
    first = np.unique(data.codes, return_index=True)[1]
    of_classes = costs[first]
    found: list[float] = of_classes.tolist()
    return found if (of_classes[data.codes] == costs).all() else None
