"""The final model: scikit-learn's ``SVC`` with one cost for each row."""

from typing import Any

import numpy as np
from sklearn.svm import SVC

from span_hpo.data import Dataset
from span_hpo.kernels import Kernel, Precomputed
from span_hpo.runtime import FloatArray

_MODEL_TOL = 1e-5  # stopping tolerance of the final model, which is fitted only once
_NEGLIGIBLE_COST = 1e-12  # cost, relative to the largest, that replaces 0 where a row must stay


def fitted_svc(
    data: Dataset, kernel: Kernel, values: dict[str, Any], costs: FloatArray, max_iter: int
) -> SVC:
    """Return a model that is fitted on all rows and predicts the labels of new ones.

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
        costs = np.maximum(costs, _NEGLIGIBLE_COST * costs.max())
    kept = slice(None) if costs.all() else costs > 0
    model = SVC(C=1.0, tol=_MODEL_TOL, max_iter=max_iter, **kernel.svc_arguments(**values))
    # Fit class numbers, because scikit-learn rejects some labels, such as 0.5 or dates.
    model.fit(data.X[kept], data.codes[kept], costs[kept])
    model.classes_ = data.classes.copy()
    if data.feature_names is not None:
        model.feature_names_in_ = data.feature_names
    return model
