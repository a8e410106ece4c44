"""SVM+, a classifier that learns from features which only training rows have."""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from span_hpo.data import as_dataset, as_features
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.runtime import ArgumentError, Array, FloatArray, real, rows_of
from span_hpo.solver import SVMPlusSolution, solve_svm_plus


class SVMPlus(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A support vector machine that learns from privileged features of its training rows.

    Privileged features are known when the model is trained, but not when it predicts: the image in
    full resolution, the report of an expert, what happened afterwards. SVM+ models the slack of
    each training row by a function of these features, so that they say which rows are hard. The
    model itself is one of the ordinary features, as that of ``SVC``.

    Parameters
    ----------
    C
        Cost of the slacks; positive.
    gamma_star
        Weight of the function that models the slacks; positive. A large one keeps it simple. With a
        small one, and privileged features that tell all rows apart, the model is that of ``SVC``.
    kernel, privileged_kernel
        Kernels of the features and of the privileged features: "rbf" with the width "scale" of
        ``SVC``, "linear", a kernel with fixed hyperparameters such as ``RBF(gamma=0.5)``, or a
        callable ``(X, Z) -> matrix``.

    Attributes
    ----------
    classes_
        The two labels in sorted order.
    solution_
        Primal and dual solution, with `kkt_violation`.
    support_
        Indices of the support vectors.
    dual_coef_
        Coefficients ``y_i alpha_i`` of the support vectors, shape (1, n).
    intercept_
        Offset of the decision function, shape (1,).

    Notes
    -----
    A fit is a dense quadratic program with two variables for each row. It is meant for up to about
    1,500 rows, because time grows with the cube of their number, and memory with the square.
    For more rows, fit a part of them, or turn what is known about the rows into costs with a
    weighting such as `LabelConfidence`.

    References
    ----------
    Vapnik and Vashist, "A new learning paradigm: learning using privileged information", 2009.

    Lapin, Hein and Schiele, "Learning using privileged information: SVM+ and weighted SVM", 2014.

    Examples
    --------
    The privileged feature says how clear the label of a row is:

    >>> import numpy as np
    >>> from span_hpo import SVMPlus
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> level = X[:, 0] + 0.5 * rng.normal(size=60)
    >>> model = SVMPlus(kernel="linear").fit(X, level > 0, X_star=np.abs(level)[:, None])
    >>> model.predict([[-1.0, 0.0], [1.0, 0.0]]).tolist()
    [False, True]
    """

    def __init__(
        self,
        C: float = 1.0,
        gamma_star: float = 1.0,
        kernel: Any = "rbf",
        privileged_kernel: Any = "rbf",
    ) -> None:
        self.C = C
        self.gamma_star = gamma_star
        self.kernel = kernel
        self.privileged_kernel = privileged_kernel

    def fit(self, X: Any, y: Any, X_star: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X
            Features, shape (l, d), dense or sparse.
        y
            Labels of two classes, shape (l,).
        X_star
            Privileged features of the same rows, shape (l, d*), dense or sparse.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        TypeError, ValueError
            If an argument is not as described.
        SolverError
            If the quadratic program cannot be solved.
        """
        if X_star is None:
            raise ArgumentError(
                "X_star",
                "must hold privileged features of the training rows, got None. Without them, use "
                "SpanSVC or LooSVC.",
            )
        C = real("C", self.C, above=0)
        gamma = real("gamma_star", self.gamma_star, above=0)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64)
        check_classification_targets(y)
        data = as_dataset(X, y)
        if len(data.classes) > 2:
            raise ValueError(f"`y` must hold two classes for SVM+, got {len(data.classes)}.")
        privileged = as_features(X_star, "X_star")
        if privileged.shape[0] != len(data):
            raise ValueError(
                f"`X_star` must have the {len(data)} rows of `X`, got {privileged.shape[0]}."
            )
        self._kernel = _fixed_kernel("kernel", self.kernel, data.X)
        of_privileged = _fixed_kernel("privileged_kernel", self.privileged_kernel, privileged)
        self.classes_ = data.classes
        self.solution_: SVMPlusSolution = solve_svm_plus(
            self._kernel(data.X), of_privileged(privileged), data.y, C=C, gamma=gamma
        )
        self.support_ = rows_of(self.solution_.is_support)
        self._support_vectors = data.X[self.support_]
        self.dual_coef_ = (data.y * self.solution_.alpha)[self.support_][None]
        self.intercept_ = np.array([self.solution_.b])
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision value of each row, shape (l,), positive for the second class.

        Parameters
        ----------
        X
            Features, shape (l, d). Privileged features are not needed.
        """
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        values: FloatArray = np.full(X.shape[0], self.intercept_[0])
        if len(self.support_):
            values += self._kernel(X, self._support_vectors) @ self.dual_coef_[0]
        return values

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each row.

        Parameters
        ----------
        X
            Features, shape (l, d). Privileged features are not needed.
        """
        positive = self.decision_function(X) > 0
        labels: Array = self.classes_[positive.astype(int)]
        return labels


def costs_from_svm_plus(model: SVMPlus) -> FloatArray:
    """Return costs with which a weighted SVM has the decision function of an SVM+.

    They are ``c = alpha + beta``, the sum of the two multipliers of each training row (Theorem 3 of
    Lapin et al.). The weight vector of the weighted SVM is the same. Its offset is the same if it
    is unique, and otherwise the offset of the SVM+ is one of those that are optimal.

    Parameters
    ----------
    model
        Fitted `SVMPlus`.

    Returns
    -------
    Cost of each training row, shape (l,).

    Raises
    ------
    TypeError
        If the model is no `SVMPlus`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVC
    >>> from span_hpo import SVMPlus, costs_from_svm_plus
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(60, 2))
    >>> level = X[:, 0] + 0.5 * rng.normal(size=60)
    >>> model = SVMPlus(C=9.0, kernel="linear").fit(X, level > 0, X_star=np.abs(level)[:, None])
    >>> weighted = SVC(C=1.0, kernel="linear", tol=1e-8)
    >>> weighted = weighted.fit(X, level > 0, sample_weight=costs_from_svm_plus(model))
    >>> w = model.dual_coef_ @ X[model.support_]
    >>> bool(np.allclose(weighted.coef_, w, atol=1e-4))
    True
    """
    if not isinstance(model, SVMPlus):
        raise TypeError(f"`model` must be a fitted SVMPlus, got {type(model).__name__}.")
    check_is_fitted(model)
    return model.solution_.costs


def _fixed_kernel(name: str, kernel: Any, X: Any) -> Any:
    """Return a kernel that can be called, with the width "scale" for a word."""
    if isinstance(kernel, str) and kernel not in ("rbf", "linear"):
        raise ValueError(
            f"`{name}` must be 'rbf', 'linear', a kernel with fixed hyperparameters or a callable, "
            f"got {kernel!r}."
        )
    return SVCArguments.of({"kernel": kernel}).kernel_of(X)
