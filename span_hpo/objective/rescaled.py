"""A model with a width for each feature, as a model of the kernel "rbf" on rescaled features.

With features ``x_k sqrt(gamma_k)``, the kernel ``exp(-sum_k gamma_k (x_k - z_k)^2)`` is the kernel
"rbf" with gamma 1, which LIBSVM, model files and converters know.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

from span_hpo.kernels import ARD
from span_hpo.objective.span_objective import SpanObjective
from span_hpo.runtime import FloatArray
from span_hpo.space import Params, checked_params

_LATE_STATE = "_BaseLibSVM__Xfit"  # where scikit-learn keeps the rows for a callable kernel


class RescaledSVC(NamedTuple):
    """A fitted model, and what its features are to be multiplied by.

    Attributes
    ----------
    svc
        Fitted ``SVC``.
    factors
        Factor of each feature, shape (d,), or None if the features stay as they are.
    """

    svc: SVC
    factors: FloatArray | None


def rescaled_svc(svc: SVC, objective: SpanObjective, params: Params) -> RescaledSVC:
    """Return a fitted model in terms of a kernel that LIBSVM has, if there is one.

    The dual variables stay the same, so that decision values differ by rounding only.

    Parameters
    ----------
    svc
        Model that was fitted to the rows of an objective with its kernel, such as `fit_model`
        returns. It stays as it is.
    objective, params
        The objective, and the hyperparameters of the model.
    """
    kernel = objective.kernel
    if not isinstance(kernel, ARD):
        return RescaledSVC(svc, None)
    values = kernel.values(checked_params(objective.space, params))
    X = objective.data.X
    costs = getattr(svc, "costs_", None)
    rows = svc.support_ if costs is None else np.flatnonzero(costs)[svc.support_]
    vectors, arguments = kernel.features_of_fit(X[rows], **values)
    rescaled = SVC(**{**svc.get_params(deep=False), **arguments})
    own = {"kernel", "gamma", "costs_", "feature_names_in_", _LATE_STATE}
    vars(rescaled).update({name: value for name, value in vars(svc).items() if name not in own})
    rescaled.support_vectors_, rescaled._gamma = vectors, rescaled.gamma
    rescaled.n_features_in_ = X.shape[1]
    rescaled.shape_fit_ = (rescaled.shape_fit_[0], X.shape[1])
    if sparse.issparse(vectors):
        rescaled._sparse = True
        rescaled.support_vectors_ = sparse.csr_matrix(vectors)
        for name in ("dual_coef_", "_dual_coef_"):
            setattr(rescaled, name, _with_all_entries(getattr(svc, name)))
    return RescaledSVC(rescaled, np.sqrt(kernel.widths(values)))


def _with_all_entries(coefficients: FloatArray) -> sparse.csr_matrix:
    """Return coefficients in compressed rows that also hold the zeros, as scikit-learn has them."""
    rows, columns = coefficients.shape
    places = np.tile(np.arange(columns), rows)
    ends = np.arange(rows + 1) * columns
    return sparse.csr_matrix((np.ravel(coefficients), places, ends), shape=coefficients.shape)
