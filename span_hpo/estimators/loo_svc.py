"""Provide scikit-learn's ``SVC`` with the leave-one-out values of its training rows."""

import functools
import warnings
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.svm import SVC
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from span_hpo.errors import LeakWarning
from span_hpo.estimators.defaults import AUTO, as_loo_method, chosen_loo_method
from span_hpo.estimators.fitted import FittedSVC
from span_hpo.estimators.row_weights import WEIGHT, checked_weights, kept_rows, row_weighted
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.kernels import FunctionKernel
from span_hpo.metrics import as_metrics, standard_error
from span_hpo.objective import SpanObjective
from span_hpo.runtime import Array, FloatArray, IndexArray

# The arguments of `SVC`, apart from `probability`, which scikit-learn has deprecated.
_ARGUMENTS = (
    "C",
    "kernel",
    "degree",
    "gamma",
    "coef0",
    "shrinking",
    "tol",
    "cache_size",
    "class_weight",
    "verbose",
    "max_iter",
    "decision_function_shape",
    "break_ties",
    "random_state",
)


class LooSVC(FittedSVC):
    """Scikit-learn's ``SVC`` with the leave-one-out values of its training rows.

    It has the arguments of ``SVC`` and gives the same predictions. `fit` solves one weighted SVM
    and reads the leave-one-out value of every training row off the solution. With `loo_scorer` and
    `AllRows`, searches of scikit-learn need one fit for each candidate and no folds.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, class_weight
        Model, as in ``SVC``. The kernel must be positive semi-definite: "rbf", "linear", "poly"
        with `coef0` of at least 0, "precomputed", a callable ``(X, Z) -> matrix``, or a kernel with
        fixed hyperparameters such as ``ARD(gamma=[0.5, 2.0])``.
    tol, max_iter
        Stopping tolerance and limit of iterations, as in ``SVC``. Leave-one-out values are those of
        the exact solution.
    decision_function_shape, break_ties
        What is predicted for several classes, as in ``SVC``. Leave-one-out classes are always
        elected by the vote of the pairs.
    shrinking, cache_size, verbose, random_state
        Settings of LIBSVM, which do not change the solution.
    probability
        Must be False, because `predict_proba` is always there.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit",
        "stopping", or "auto", which stands for "exact" on up to 60 rows, or if many spans are
        undefined on up to 1,000 rows of two classes, and for "span" otherwise. `loo_method_` holds
        the choice.
    threshold, miss_cost
        Where the prediction of two classes switches, and what it costs to miss a row of each class;
        see `SpanSVC`. They do not affect leave-one-out errors and the scores of `loo_scorer`.
    metric
        Metric for which ``threshold="loo"`` is chosen; one of those that `SpanSVC` takes.
    memory_limit
        Megabytes for the kernel matrix; see `SpanObjective`.

    Attributes
    ----------
    loo_error_
        Leave-one-out error, the share of the training rows that the model without the row gets
        wrong.
    loo_bounds_
        Proven bounds on the exact leave-one-out error.
    loo_standard_error_
        Standard error of the leave-one-out error over samples of rows.
    loo_decision_values_
        Leave-one-out decision value of each training row, shape (l,), positive for the second
        class. For k > 2 classes there is one column for each pair. Rows with weight 0 have NaN.
    loo_proba_
        Probability of each class for each training row by the model without the row, shape (l, k).
        Rows with weight 0 have NaN.
    loo_
        Leave-one-out result of the rows with a positive weight.
    loo_method_
        Method of leave-one-out that was used.
    threshold_, threshold_loss_
        Decision value from which on the second class is predicted, and the leave-one-out loss
        there; see `SpanSVC`.
    feature_relevance_
        Relevance of each feature, the most relevant one first, for a kernel with a width for each;
        see `SpanSVC`.
    label_error_probability_, suspects_
        Probability that the label of each training row is wrong, and the rows for which it is above
        0.5, the most probable first; see `SpanSVC`.
    estimator_
        Plain ``SVC`` that was fitted to the rows with a positive weight, with a number as its
        `gamma`. It is fitted when it is first used, so a search that predicts nothing spends no
        time on it.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, class_weight_, n_iter_, \
fit_status_, shape_fit_
        What ``SVC`` has learned; `coef_` is present for the linear kernel only.
    objective_
        Objective that was evaluated, without anything to search.
    classes_, n_features_in_, feature_names_in_
        Labels of the classes, and number and names of the features, as scikit-learn defines them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from span_hpo import AllRows, LooSVC, loo_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LooSVC(C=10.0).fit(X, y)
    >>> round(model.loo_error_, 3), round(model.loo_standard_error_, 3)
    (0.04, 0.016)
    >>> grid = {"C": [0.1, 1.0, 10.0], "gamma": ["scale", 0.1, 1.0]}
    >>> search = GridSearchCV(LooSVC(), grid, scoring=loo_scorer("accuracy"), cv=AllRows())
    >>> search.fit(X, y).best_params_
    {'C': 1.0, 'gamma': 0.1}
    """

    scaler_ = None  # the features are not scaled
    encoding_ = None

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: Any = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: Any = False,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: Any = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        random_state: Any = None,
        loo_method: str = AUTO,
        threshold: Any = None,
        miss_cost: Any = None,
        metric: Any = "error",
        memory_limit: float | None = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.loo_method = loo_method
        self.threshold = threshold
        self.miss_cost = miss_cost
        self.metric = metric
        self.memory_limit = memory_limit

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "LooSVC":
        """Fit the model and compute its leave-one-out values.

        Parameters
        ----------
        X
            Features, shape (l, d), dense or sparse; the kernel matrix, shape (l, l), for a
            precomputed kernel.
        y
            Labels, shape (l,), two or more classes.
        sample_weight
            Factor of each row's cost, and weight of the row in the scores of `loo_scorer`, shape
            (l,), at least 0. Rows with weight 0 are left out of the fit.

        Returns
        -------
        The estimator itself.
        """
        arguments, method = SVCArguments.of(self.get_params()), as_loo_method(self.loo_method)
        X, y = self._validated(X, y, ensure_min_samples=2)
        check_classification_targets(y)
        self._check_threshold(self.metric, y)
        weight = None if sample_weight is None else checked_weights(sample_weight, y)
        kept = kept_rows(weight, len(y), is_kernel=False)
        weighting, scores = arguments.weighting_of(y, kept), None
        if weight is not None:
            weight = weight[kept]
            weighting, scores = row_weighted(weighting), {WEIGHT: weight}
        objective = self.objective_ = SpanObjective(
            self._of_fit(X, kept),
            y[kept],
            kernel=arguments.kernel_of(X),
            weighting=weighting,
            metric=self.metric,
            scores=scores,
            metric_weight=weight,
            tol=arguments.tol,
            max_iter=arguments.max_iter,
            memory_limit=self.memory_limit,
        )
        by_span = functools.cache(lambda: objective.evaluate({}, complete=True))
        if method == AUTO:
            method = chosen_loo_method(objective, by_span)
        if method == "span":
            evaluation = by_span()
        else:
            evaluation = objective.evaluate({}, complete=True, loo_method=method)
        self.loo_method_ = objective.loo_method = method
        arguments_of_svc = self._svc_arguments(arguments, y, kept)
        self._late = _LateSVC(objective, y[kept], weight, arguments_of_svc)
        self._keep(evaluation, kept, len(y))
        self.classes_ = np.unique(y[kept])  # of the type that the user gave, as SVC has them
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on some rows; a warning is issued if these are the training rows.

        A search with ``cv=AllRows()`` that is given no `loo_scorer` would otherwise choose by the
        accuracy on the rows of the fit.
        """
        accuracy = float(super().score(X, y, sample_weight))
        if self._has_seen(X, y):
            warnings.warn(
                "`score` has been given the training rows, so that it is the accuracy on the rows "
                "of the fit. `1 - loo_error_` is the leave-one-out accuracy; a search with "
                "`cv=AllRows()` has it with `scoring=loo_scorer()`.",
                LeakWarning,
                stacklevel=2,
            )
        return accuracy

    def _has_seen(self, X: Any, y: Any) -> bool:
        """Return whether some rows are those of the fit, in the same order."""
        data, rows = self.objective_.data, X.shape[0] if hasattr(X, "shape") else len(X)
        if rows != len(data) or not np.array_equal(np.asarray(y), data.labels):
            return False
        if issparse(X) or issparse(data.X):
            return X.shape == data.X.shape and bool(abs(X - data.X).nnz == 0)
        return np.array_equal(np.asarray(X), data.X)

    @property
    def estimator_(self) -> SVC:
        """Plain ``SVC``, fitted when it is first used."""
        check_is_fitted(self)
        return self._late.model

    @property
    def loo_decision_values_(self) -> FloatArray:
        """Leave-one-out decision values of the training rows."""
        return self.left_out().decision_values_

    @property
    def loo_proba_(self) -> FloatArray:
        """Leave-one-out probabilities of the classes of the training rows, shape (l, k)."""
        return self.left_out().predict_proba(np.arange(self._n_rows))

    @property
    def loo_standard_error_(self) -> float:
        """Standard error of the leave-one-out error over samples of rows."""
        check_is_fitted(self)
        (error,) = as_metrics("error", weighted=False)
        y, values = self.loo_.y, self.loo_.decision_values
        return standard_error(error, y, values, np.ones(len(y)))

    @property
    def support_(self) -> IndexArray:
        """Indices of the support vectors among the training rows."""
        model = self.estimator_
        found: IndexArray = self._kept[model.support_]
        return found

    @property
    def support_vectors_(self) -> Any:
        """Support vectors, as ``SVC`` has them."""
        return self.estimator_.support_vectors_

    @property
    def n_support_(self) -> IndexArray:
        """Number of support vectors of each class."""
        found: IndexArray = self.estimator_.n_support_
        return found

    @property
    def dual_coef_(self) -> Any:
        """Coefficients of the support vectors, as ``SVC`` has them."""
        return self.estimator_.dual_coef_

    @property
    def intercept_(self) -> FloatArray:
        """Constants of the decision functions."""
        found: FloatArray = self.estimator_.intercept_
        return found

    @property
    def coef_(self) -> Any:
        """Weights of the features, for the linear kernel only."""
        return self.estimator_.coef_

    @property
    def class_weight_(self) -> FloatArray:
        """Factors of `C` of the classes, shape (k,)."""
        found: FloatArray = self.estimator_.class_weight_
        return found

    @property
    def n_iter_(self) -> Array:  # type: ignore[override]  # one number for each pair, as in SVC
        """Numbers of iterations of LIBSVM, one for each pair of classes."""
        found: Array = self.estimator_.n_iter_
        return found

    @property
    def fit_status_(self) -> int:
        """0 if LIBSVM has converged, and 1 otherwise."""
        return int(self.estimator_.fit_status_)

    @property
    def shape_fit_(self) -> tuple[int, ...]:
        """Shape of the training rows."""
        check_is_fitted(self)
        return self._n_rows, self.n_features_in_

    def _keep_model(self) -> None:
        """Leave the plain ``SVC`` to its first use."""

    def _svc_arguments(self, arguments: SVCArguments, y: Array, kept: IndexArray) -> dict[str, Any]:
        """Return the arguments of the ``SVC`` that is fitted to the rows that are kept."""
        kernel, found = self.objective_.kernel, {name: getattr(self, name) for name in _ARGUMENTS}
        if not isinstance(kernel, FunctionKernel):
            found |= kernel.svc_arguments(**kernel.values({}))
        if self.class_weight is not None and len(kept) < len(y):
            # The weights follow from the classes of all rows, also of those that are left out.
            weights = arguments.class_weights(y)
            found["class_weight"] = {label: weights[label] for label in np.unique(y[kept]).tolist()}
        return found

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        X = self._validated(X, reset=False)
        return X[:, self._kept] if self._is_precomputed() else X

    def _validated(self, *data: Any, **settings: Any) -> Any:
        accepted = False if self._is_precomputed() else "csr"
        return validate_data(self, *data, accept_sparse=accepted, dtype=np.float64, **settings)

    def _of_fit(self, X: Any, kept: IndexArray) -> Any:
        if len(kept) == X.shape[0]:
            return X
        return X[np.ix_(kept, kept)] if self._is_precomputed() else X[kept]


class _LateSVC:
    """An ``SVC`` that is fitted when it is first used."""

    def __init__(
        self,
        objective: SpanObjective,
        labels: Array,
        weight: FloatArray | None,
        arguments: dict[str, Any],
    ) -> None:
        self.objective = objective
        self.labels = labels
        self.weight = weight
        self.arguments = arguments

    @functools.cached_property
    def model(self) -> SVC:
        """The fitted ``SVC``."""
        X = self.objective.data.X
        return SVC(**self.arguments).fit(X, self.labels, sample_weight=self.weight)
