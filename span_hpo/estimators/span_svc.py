"""Provide a scikit-learn classifier that tunes itself with one fit per trial and no folds."""

import copy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from span_hpo.calibration import class_probabilities, loo_sigmoids
from span_hpo.data import Dataset, as_column, named_scores
from span_hpo.estimators.columns import learned_columns, new_rows, training_rows
from span_hpo.estimators.scaling import as_scale, fitted_scaler
from span_hpo.io import Encoding, Predictor, as_impute
from span_hpo.kernels import Precomputed
from span_hpo.loo import LeaveOneOut
from span_hpo.objective import SpanObjective
from span_hpo.runtime import Array, FloatArray, IndexArray, rows_of, whole
from span_hpo.solver import DEFAULT_MAX_ITER, DEFAULT_TOL, is_wrong, rows_of_pairs
from span_hpo.space import Params, Space, checked_params
from span_hpo.weighting import (
    ClassCosts,
    ComposableWeighting,
    Weighting,
    bind_to,
    sample_costs,
    starts_of,
)

_WEIGHT = "weight of the row"  # name of an internal score, which no user is likely to choose
_LARGEST_SEED = 2**31 - 1  # upper limit of the seeds of samplers


class SpanSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A support vector classifier that chooses its hyperparameters by leave-one-out.

    `fit` searches the hyperparameters with Optuna, with one weighted fit per trial. If all of them
    are fixed, nothing is searched, and Optuna is not needed.

    Parameters
    ----------
    kernel, weighting, metric, loo_method, tol, max_iter, solver, memory_limit
        Arguments of the `SpanObjective` that is minimised. A search needs a single metric.
    n_trials
        Number of trials. With a `storage`, trials of earlier fits of the study count.
    timeout
        Start no trial after this many seconds.
    sampler, pruner
        Sampler and pruner of Optuna, or their names (see `span_hpo.integrations.optuna.new_study`);
        by default "tpe", seeded by `random_state`, and "none".
    budgets
        Increasing numbers or shares of rows at which a pruner may stop a trial.
    storage, study_name
        Storage in which the study is kept under its name, so that a later fit can continue it: a
        storage of Optuna, the URL of a database or the path of a journal. By default, the study is
        kept in memory.
    n_jobs
        Number of threads that run trials.
    search
        Function that takes the `SpanObjective` and returns the chosen hyperparameters. It replaces
        the search with Optuna, so that the settings from `n_trials` to `n_jobs` are not used.
    scale
        How the features are scaled, based on the training rows: "minmax" (to [0, 1]; sparse
        features are divided by their largest absolute value), "standard" or None.
    impute
        How missing values are filled in, based on the training rows: "median" (with the median of
        numbers and the most frequent category), "most_frequent" or "indicator" (as "median", with
        a feature of 0 and 1 for each column that has missing values). None refuses them.
    random_state
        Random seed of the sampler.
    progress_bar
        Show a progress bar.

    Attributes
    ----------
    best_params_
        Hyperparameters that were chosen by the search.
    best_loss_
        Loss of the chosen hyperparameters, which is optimistic because it was selected.
    loo_
        Leave-one-out result of the chosen model.
    loo_error_
        Leave-one-out error of the chosen model.
    loo_bounds_
        Proven bounds on the exact leave-one-out error of the chosen model.
    suspects_
        Indices of the training rows whose labels the other rows contradict, the most clearly wrong
        first. These labels are likely errors.
    estimator_
        Fitted ``SVC``, which takes scaled features.
    scaler_
        Fitted scaler, or None.
    encoding_
        How the columns become features, for DataFrames with text and with `impute`; else None.
    n_iter_
        Number of iterations of the final fit; the largest one if there are several classes.
    study_
        Study of Optuna, or None if Optuna was not used.
    objective_
        Objective that was minimised.
    classes_, n_features_in_, feature_names_in_
        Labels of the classes, and number and names of the features, as scikit-learn defines them.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from span_hpo import RBF, SpanSVC, UniformCost
    >>> X, y = load_iris(return_X_y=True)
    >>> model = SpanSVC(n_trials=5, random_state=0).fit(X, y)
    >>> sorted(model.best_params_)
    ['C_0', 'C_1', 'C_2', 'gamma']
    >>> model.predict(X[::50]).tolist()
    [0, 1, 2]

    If all hyperparameters are fixed, nothing is searched:

    >>> fixed = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    >>> round(fixed.loo_error_, 2)
    0.04
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        weighting: Weighting | None = None,
        *,
        metric: Any = "error",
        loo_method: str = "span",
        n_trials: int = 50,
        timeout: float | None = None,
        sampler: Any = None,
        pruner: Any = None,
        budgets: Any = (1.0,),
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int = 1,
        search: Any = None,
        scale: str | None = "minmax",
        impute: str | None = None,
        random_state: Any = None,
        progress_bar: bool = False,
        tol: float = DEFAULT_TOL,
        max_iter: int = DEFAULT_MAX_ITER,
        solver: str = "auto",
        memory_limit: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.weighting = weighting
        self.metric = metric
        self.loo_method = loo_method
        self.n_trials = n_trials
        self.timeout = timeout
        self.sampler = sampler
        self.pruner = pruner
        self.budgets = budgets
        self.storage = storage
        self.study_name = study_name
        self.n_jobs = n_jobs
        self.search = search
        self.scale = scale
        self.impute = impute
        self.random_state = random_state
        self.progress_bar = progress_bar
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.memory_limit = memory_limit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.allow_nan = self.impute is not None
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        scores: Any = None,
        groups: Any = None,
    ) -> "SpanSVC":
        """Choose the hyperparameters and fit the model.

        Parameters
        ----------
        X
            Features, shape (l, d), dense or sparse; the kernel matrix for a precomputed kernel. A
            DataFrame may have columns of text and of categories, each of which becomes a feature of
            0 and 1.
        y
            Labels, shape (l,), two or more classes.
        sample_weight
            Factor of each row's cost, and weight of the row in the metric, shape (l,), at least 0.
            Rows with weight 0 are left out.
        scores, groups
            Scores and group of each row, for the weighting; see `SpanObjective`.

        Returns
        -------
        The estimator itself.
        """
        impute, given = as_impute(self.impute), y
        rows, y = training_rows(self, X, y, is_kernel=self._is_precomputed())
        check_classification_targets(y)
        weight = None if sample_weight is None else _weights(sample_weight, y)
        kept = self._kept_rows(weight, len(y))
        X, self.encoding_ = learned_columns(rows, kept, impute, given)
        self.scaler_ = self._fitted_scaler(X)
        features = X if self.scaler_ is None else self.scaler_.transform(X)
        named = {name: column[kept] for name, column in named_scores(scores, len(y)).items()}
        weighting = ClassCosts() if self.weighting is None else self.weighting
        if weight is not None:
            weight = weight[kept]
            weighting, named = _RowWeighted(weighting), {**named, _WEIGHT: weight}
        self.objective_ = SpanObjective(
            features,
            y[kept],
            kernel=self.kernel,
            weighting=weighting,
            metric=self.metric,
            loo_method=self.loo_method,
            scores=named or None,
            groups=None if groups is None else as_column(groups, "groups", len(y))[kept],
            metric_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
            solver=self.solver,
            memory_limit=self.memory_limit,
            scaling=None if self.scaler_ is None else self.scale,
        )
        self.classes_ = self.objective_.data.classes.copy()
        self.best_params_ = self._searched_params()
        evaluation = self.objective_.evaluate(self.best_params_, complete=True)
        self.best_loss_ = evaluation.loss
        self.loo_ = evaluation.loo
        self.loo_error_ = evaluation.loo.error
        self.loo_bounds_ = evaluation.loo.error_bounds
        self.suspects_ = kept[_suspects(evaluation.loo)]
        self.estimator_ = self.objective_.fit_model(self.best_params_)
        self.n_iter_ = int(np.max(self.estimator_.n_iter_))
        self._sigmoids = loo_sigmoids(evaluation.loo, evaluation.metric_weight)
        return self

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each row."""
        features = self._features(X)
        labels: Array = self.estimator_.predict(features)
        return labels

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of each row, as scikit-learn's ``SVC`` does."""
        features = self._features(X)
        values: FloatArray = self.estimator_.decision_function(features)
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, shape (m, k).

        The probabilities are Platt's sigmoids of the decision values. The sigmoids are fitted to
        leave-one-out values, so that every training row takes part in the calibration, but none is
        judged by a model that was trained with it. Several classes are coupled from their pairs.
        If calibration makes other classes more probable than the predicted one, all of them are
        given the mean of their probabilities.
        """
        features = self._features(X)
        model = self.estimator_
        if len(self.classes_) == 2:
            values = model.decision_function(features)
        else:
            of_pairs = copy.copy(model)
            of_pairs.decision_function_shape = "ovo"
            # The values that scikit-learn gives for pairs are positive for the first class.
            values = -of_pairs.decision_function(features)
        predicted = np.searchsorted(self.classes_, model.predict(features))
        return class_probabilities(self._sigmoids, values, predicted)

    def as_predictor(self, columns: Encoding | None = None) -> Predictor:
        """Return the fitted model, with scaling and calibration, in a form that files can hold.

        Parameters
        ----------
        columns
            Encoding of the table that the features come from; by default the one of the fit, which
            `encoding_` holds.

        Raises
        ------
        ValueError
            If the kernel is not "rbf", "linear" or "poly".
        """
        check_is_fitted(self)
        return Predictor.from_svc(
            self.estimator_,
            parameters=self.best_params_,
            scaler=self.scaler_,
            sigmoids=self._sigmoids,
            columns=self.encoding_ if columns is None else columns,
        )

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        X = new_rows(self, X, self.encoding_)
        return X if self.scaler_ is None else self.scaler_.transform(X)

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    def _kept_rows(self, weight: FloatArray | None, count: int) -> IndexArray:
        """Return the rows of the fit; a kernel matrix keeps all rows, some of them with cost 0."""
        if weight is None or self._is_precomputed():
            return np.arange(count)
        return rows_of(weight)

    def _fitted_scaler(self, X: Any) -> Any:
        scale = as_scale(self.scale)
        return None if self._is_precomputed() else fitted_scaler(scale, X)

    def _searched_params(self) -> dict[str, Any]:
        """Return the hyperparameters that a search finds; none if all of them are fixed."""
        self.study_ = None
        if not self.objective_.space:
            return {}
        if len(self.objective_.metrics) > 1:
            raise ValueError(f"`metric` must be one metric for a search, got {self.metric!r}.")
        if self.search is not None:
            return checked_params(self.objective_.space, self.search(self.objective_))
        n_trials = whole("n_trials", self.n_trials, at_least=1)
        try:
            from span_hpo.integrations import optuna as adapter
        except ModuleNotFoundError:
            raise  # something else than Optuna is missing, for which the adapter has a message
        except ImportError as error:
            raise ImportError(
                "A search needs Optuna: pip install 'span-hpo[optuna]'. It is not needed if all "
                "hyperparameters are fixed, as in SpanSVC(RBF(gamma=0.1), UniformCost(1.0))."
            ) from error
        budgets = self.objective_.budget_rows(self.budgets)
        self.study_ = adapter.new_study(
            sampler=self.sampler,
            pruner=self.pruner,
            storage=self.storage,
            study_name=self.study_name,
            seed=sampler_seed(self.random_state),
        )
        adapter.search(
            self.study_,
            self.objective_,
            n_trials=n_trials,
            budgets=budgets,
            timeout=self.timeout,
            n_jobs=whole("n_jobs", self.n_jobs, at_least=1),
            progress_bar=self.progress_bar,
        )
        return adapter.params_of(adapter.best_trial(self.study_), self.objective_)


def sampler_seed(random_state: Any) -> int:
    """Return the seed of a sampler that follows from a `random_state` of scikit-learn."""
    return int(check_random_state(random_state).randint(_LARGEST_SEED))


@dataclass(frozen=True)
class _RowWeighted(ComposableWeighting):
    """A weighting whose costs are multiplied by the weights of the rows."""

    weighting: Weighting

    def bind(self, data: Dataset) -> "_RowWeighted":
        """Return this rule with its weighting bound to the data."""
        return _RowWeighted(bind_to(self.weighting, _without_weight(data)))

    @property
    def space(self) -> Space:
        """Hyperparameters that are searched."""
        return self.weighting.space

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return the weighted cost of every row."""
        costs = sample_costs(self.weighting, _without_weight(data), params)
        return costs * data.score(_WEIGHT)

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return the starting points of the weighting."""
        return starts_of(self.weighting, _without_weight(data))


def _without_weight(data: Dataset) -> Dataset:
    """Return the data without the internal score that holds the weights of the rows."""
    scores = {name: values for name, values in data.scores.items() if name != _WEIGHT}
    return replace(data, scores=scores)


def _weights(sample_weight: Any, X: Any) -> FloatArray:
    weights: FloatArray = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weights


def _suspects(loo: LeaveOneOut) -> IndexArray:
    """Return the rows whose leave-one-out class is wrong, the most clearly wrong first."""
    values = loo.decision_values
    if values.ndim == 1:
        margins = loo.y * values
    else:
        margins = np.full(len(values), np.inf)
        for column, (rows, signs) in enumerate(rows_of_pairs(loo.y)):
            margins[rows] = np.minimum(margins[rows], signs * values[rows, column])
    wrong = rows_of(is_wrong(loo.y, values))
    order: IndexArray = wrong[np.argsort(margins[wrong], kind="stable")]
    return order
