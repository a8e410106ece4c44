"""What all fitted estimators of this package can do: predict, calibrate and name suspects."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from span_hpo.calibration import PlattSigmoid, class_probabilities, loo_sigmoids
from span_hpo.estimators.columns import new_rows
from span_hpo.estimators.left_out import LeftOutClassifier
from span_hpo.estimators.plain import as_plain
from span_hpo.estimators.scaling import check_fits_in_a_file, scaled
from span_hpo.estimators.thresholds import threshold_rule
from span_hpo.estimators.widths import relevance_of_model
from span_hpo.io import Encoding, EnsemblePredictor, Predictor
from span_hpo.kernels import ARD, Precomputed
from span_hpo.objective import Evaluation, SpanObjective, pair_values, rescaled_svc
from span_hpo.runtime import Array, FloatArray, IndexArray
from span_hpo.selection import LOG_ODDS, Ensemble
from span_hpo.suspects import density_scores, listed, wrong_label_probabilities


class FittedSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A classifier that holds a fitted ``SVC`` and the leave-one-out values of its training rows.

    Subclasses have the constructor arguments `kernel` and, if missing values may be filled in,
    `impute`. If they have `threshold` and `miss_cost`, their `fit` begins with
    `_check_threshold`. It ends with `_keep`.

    Attributes
    ----------
    estimator_, scaler_, encoding_
        Fitted ``SVC``, and what turns new rows into its features; the latter two may be None.
    objective_, best_params_
        Objective of the training rows, and the hyperparameters of the model.
    """

    kernel: Any
    objective_: SpanObjective
    best_params_: dict[str, Any]
    scaler_: Any
    encoding_: Encoding | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = not self._is_precomputed()
        tags.input_tags.pairwise = self._is_precomputed()
        tags.input_tags.allow_nan = getattr(self, "impute", None) is not None
        return tags

    def _check_threshold(self, metric: Any, y: Array) -> None:
        """Raise before the fit if `threshold` or `miss_cost` do not suit the metric and labels."""
        threshold_rule(*self._asked_threshold(), metric, np.unique(y))

    def _asked_threshold(self) -> tuple[Any, Any]:
        return getattr(self, "threshold", None), getattr(self, "miss_cost", None)

    def _keep(
        self,
        evaluation: Evaluation,
        kept: IndexArray,
        count: int,
        ensemble: Ensemble | None = None,
    ) -> None:
        """Fit the model of an evaluation, and keep what is known about its training rows.

        Parameters
        ----------
        evaluation
            Evaluation of the objective at the chosen hyperparameters, with all values complete.
        kept
            Rows of the objective among those that the user gave.
        count
            Number of rows that the user gave.
        ensemble
            What predicts instead of the model, or None.
        """
        self.classes_ = self.objective_.data.classes.copy()
        self.loo_ = evaluation.loo
        self.loo_error_ = evaluation.loo.error if ensemble is None else ensemble.loo_error
        self._ensemble = ensemble
        self._n_rows, self._kept = count, kept
        self._label_errors: FloatArray | None = None  # computed when it is first used
        self._keep_model()
        self._sigmoids: tuple[PlattSigmoid, ...] = loo_sigmoids(
            evaluation.loo, evaluation.metric_weight
        )
        self._keep_threshold(evaluation)

    def _keep_threshold(self, evaluation: Evaluation) -> None:
        """Keep the decision value at which predictions switch."""
        self.threshold_, metric = 0.0, self.objective_.metrics[0]
        name = None if metric.own else metric.name
        rule = threshold_rule(*self._asked_threshold(), name, self.classes_)
        if rule is None:
            return
        values, sigmoid = evaluation.loo.decision_values, self._sigmoids[0]
        if self._ensemble is not None:
            values, sigmoid = self._ensemble.loo_decision_values, LOG_ODDS
        weight = evaluation.metric_weight
        self.threshold_, self.threshold_loss_ = rule.applied(
            evaluation.loo.y, values, weight, metric, sigmoid=sigmoid
        )

    @property
    def loo_bounds_(self) -> tuple[float, float]:
        """Proven bounds on the exact leave-one-out error of the chosen model."""
        check_is_fitted(self)
        if self._ensemble is not None:
            raise AttributeError(
                "An ensemble has no `loo_bounds_`: proofs hold for the classes of single models, "
                "not for the mean of their probabilities. `loo_.error_bounds` are those of the "
                "best model by itself."
            )
        return self.loo_.error_bounds

    @property
    def members_(self) -> tuple[Any, ...]:
        """Fitted ``SVC`` of each member of an ensemble."""
        return self._as_ensemble("members_").members

    @property
    def weights_(self) -> FloatArray:
        """Weight of each member of an ensemble, shape (members,)."""
        return self._as_ensemble("weights_").weights

    @property
    def members_params_(self) -> tuple[dict[str, Any], ...]:
        """Hyperparameters of each member of an ensemble."""
        return self._as_ensemble("members_params_").params

    def _as_ensemble(self, name: str) -> Ensemble:
        check_is_fitted(self)
        if self._ensemble is None:
            raise AttributeError(f"`{name}` belongs to ensembles, and this is a single model.")
        return self._ensemble

    def _check_is_single(self, method: str) -> None:
        check_is_fitted(self)
        if self._ensemble is not None:
            raise ValueError(
                f"`{method}` needs a single model, got an ensemble of {len(self.members_)}. Fit "
                "without `ensemble` for it."
            )

    def _keep_model(self) -> None:
        self.estimator_ = self.objective_.fit_model(self.best_params_)
        self.n_iter_ = int(np.max(self.estimator_.n_iter_))

    def _point(self) -> dict[str, Any]:
        """Return the hyperparameters of the model that its objective searches."""
        return getattr(self, "best_params_", {})

    def left_out(self) -> LeftOutClassifier:
        """Return a classifier that predicts each training row as the model without that row does.

        Its methods take indices of training rows, so that scorers of scikit-learn can use it.
        """
        self._check_is_single("left_out")
        data, weight = self.objective_.data, self.objective_.metric_weight
        return LeftOutClassifier(self.loo_, data, weight, self._kept, self._n_rows)

    @property
    def label_error_probability_(self) -> FloatArray:
        """Probability that the label of each training row is wrong, shape (l,)."""
        check_is_fitted(self)
        if self._label_errors is None:
            objective, weight = self.objective_, self.objective_.metric_weight
            codes, weight = objective.data.codes, weight / weight.mean()
            precomputed = self._is_precomputed()
            scores = density_scores(objective.data.X, codes, weight, is_kernel=precomputed)
            found = np.zeros(self._n_rows)
            found[self._kept] = wrong_label_probabilities(codes, scores, weight)
            self._label_errors = found
        return self._label_errors

    @property
    def suspects_(self) -> IndexArray:
        """Training rows whose labels are more probably wrong than right, most probable first."""
        return listed(self.label_error_probability_)

    @property
    def feature_relevance_(self) -> dict[Any, float]:
        """Relevance of each column to the kernel, the most relevant one first."""
        check_is_fitted(self)
        if not isinstance(self.objective_.kernel, ARD):
            raise AttributeError(
                "`feature_relevance_` needs a kernel with a width for each feature, such as "
                f'kernel="ard", and the kernel is {type(self.objective_.kernel).__name__}.'
            )
        return relevance_of_model(self, self.encoding_)

    def predict(self, X: Any) -> Array:
        """Return the predicted label of each row, by `threshold_` if there is one."""
        features, deciding = self._features(X), self._ensemble or self.estimator_
        if self.threshold_:
            second = deciding.decision_function(features) >= self.threshold_
            labels: Array = self.classes_[second.astype(int)]
        else:
            labels = deciding.predict(features)
        return labels

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of each row, as scikit-learn's ``SVC`` does.

        Those of an ensemble are the log-odds of the second of two classes, and the logarithms of
        the probabilities of several.
        """
        features, deciding = self._features(X), self._ensemble or self.estimator_
        values: FloatArray = deciding.decision_function(features)
        return values

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, shape (m, k).

        The probabilities are Platt's sigmoids of the decision values. The sigmoids are fitted to
        leave-one-out values, so that every training row takes part in the calibration, but none is
        judged by a model that was trained with it. Several classes are coupled from their pairs.
        If calibration makes other classes more probable than the predicted one, all of them are
        given the mean of their probabilities. A threshold changes predictions, but neither
        decision values nor probabilities. An ensemble has the mean of its members' probabilities.
        """
        features = self._features(X)
        if self._ensemble is not None:
            return self._ensemble.predict_proba(features)
        predicted = np.searchsorted(self.classes_, self.estimator_.predict(features))
        return class_probabilities(
            self._sigmoids, pair_values(self.estimator_, features), predicted
        )

    def as_predictor(self, columns: Encoding | None = None) -> Predictor | EnsemblePredictor:
        """Return the fitted model, with scaling and calibration, in a form that files can hold.

        Parameters
        ----------
        columns
            Encoding of the table that the features come from; by default the one of the fit, which
            `encoding_` holds.

        Raises
        ------
        ValueError
            If the kernel is not "rbf", "ard", "linear" or "poly", or files cannot hold the scaler.
        """
        check_is_fitted(self)
        check_fits_in_a_file(self.scaler_)
        columns = self.encoding_ if columns is None else columns

        def form(svc: Any, params: dict[str, Any], sigmoids: Any, threshold: float) -> Predictor:
            model, factors = rescaled_svc(svc, self.objective_, params)
            return Predictor.from_svc(
                model,
                parameters=params,
                scaler=self.scaler_,
                sigmoids=sigmoids,
                columns=columns,
                threshold=threshold,
                factors=factors,
            )

        if self._ensemble is None:
            return form(self.estimator_, self._point(), self._sigmoids, self.threshold_)
        own = self._ensemble
        members = [
            form(svc, params, sigmoids, 0.0)
            for svc, params, sigmoids in zip(own.members, own.params, own.sigmoids, strict=True)
        ]
        return EnsemblePredictor.of_members(members, own.weights, self.threshold_)

    def as_sklearn(self) -> Pipeline:
        """Return the fitted model as a pipeline of scikit-learn's own classes.

        It has the scaler, if there is one, and a classifier: for two classes with the same labels
        and, up to 1e-4, the same probabilities; for more classes an ``SVC`` without probabilities.
        With a threshold, the labels are still the same, but probabilities that contradict them are
        replaced by one half, because scikit-learn predicts the more probable class. Tools such as
        skl2onnx, skops and MLflow know these classes.

        Raises
        ------
        ValueError
            If the kernel is not "rbf", "ard", "linear" or "poly", the labels are neither text nor
            whole numbers nor truth values, columns were encoded, or this is an ensemble.
        """
        self._check_is_single("as_sklearn")
        svc, factors = rescaled_svc(self.estimator_, self.objective_, self._point())
        return as_plain(
            svc,
            self.scaler_,
            self._sigmoids,
            self.classes_,
            cut=self.threshold_,
            encoding=self.encoding_,
            feature_names=getattr(self, "feature_names_in_", None),
            factors=factors,
        )

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        X = new_rows(self, X, self.encoding_)
        return scaled(self.scaler_, X)

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )
