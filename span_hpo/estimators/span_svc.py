"""Provide a scikit-learn classifier that tunes itself with one fit per trial and no folds."""

import copy
import sys
import warnings
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from span_hpo.calibration import class_probabilities, loo_sigmoids
from span_hpo.data import as_column, named_scores
from span_hpo.estimators.columns import learned_columns, new_rows, training_rows
from span_hpo.estimators.defaults import AUTO, as_loo_method, chosen_loo_method, weighting_for
from span_hpo.estimators.row_weights import WEIGHT, checked_weights, row_weighted
from span_hpo.estimators.scaling import check_fits_in_a_file, scaled
from span_hpo.estimators.scaling_inside import ScaledRows, as_scale_inside
from span_hpo.io import Encoding, Predictor, as_impute
from span_hpo.kernels import Precomputed
from span_hpo.objective import SpanObjective
from span_hpo.runtime import Array, FloatArray, IndexArray, rows_of, thread_count
from span_hpo.search import wanted_trials
from span_hpo.solver import DEFAULT_MAX_ITER, DEFAULT_TOL
from span_hpo.space import checked_params
from span_hpo.suspects import density_scores, listed, wrong_label_probabilities
from span_hpo.weighting import Weighting

_LARGEST_SEED = 2**31 - 1  # upper limit of the seeds of samplers


class SpanSVC(ClassifierMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A support vector classifier that chooses its hyperparameters by leave-one-out.

    `fit` searches the hyperparameters with Optuna, with one weighted fit per trial. If all of them
    are fixed, nothing is searched, and Optuna is not needed. Ctrl-C ends the search with a warning,
    and the model is that of the best trial so far.

    Parameters
    ----------
    kernel
        "rbf", "linear", "poly", "laplacian" or "precomputed"; a kernel such as ``RBF(gamma=0.1)``;
        or a callable ``(X, Z) -> matrix``.
    weighting
        Rule that gives each row its cost: "uniform" (one cost for all rows), "imbalance" (a common
        cost, and an exponent that balances classes of different size), "class" (one cost per
        class), "sigmoid" or "power" (of a score), "class*sigmoid" or "class*power"; or a weighting
        such as ``ClassCosts()``. By default it is "uniform" if every row counts alike in the
        metric, as in "error", "smooth_error", "hinge", "log_loss" and "brier", and "imbalance" for
        all other metrics.
    metric
        "error", "balanced_error", "smooth_error", "hinge", "log_loss", "brier", "auc",
        "average_precision", "f1", "mcc", or a callable ``(y, decision_values) -> loss``. All are
        minimised: those for which more is better as one minus their value.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit",
        "stopping", or "auto". The latter is "exact" or "span", whichever suits the data and the
        metric; `loo_method_` tells which.
    n_trials
        Number of trials; None for as many as the `timeout` allows. With a `storage`, trials of
        earlier fits of the study count.
    timeout
        End the search after this many seconds. The first trial is always finished, and the final
        fit follows.
    sampler
        "tpe" (the default), "random", "qmc", "cmaes" or "gp", seeded by `random_state`; or a
        sampler of Optuna.
    pruner
        "none" (the default), "median", "percentile", "halving" or "hyperband"; or a pruner of
        Optuna.
    budgets
        Increasing numbers or shares of rows at which a pruner may stop a trial; by default 1/8,
        1/4, 1/2 and all rows for a pruner that is given by name, and else all rows. Default points
        are never stopped, and at least a quarter of the trials is complete.
    storage, study_name
        Storage in which the study is kept under its name, so that a later fit can continue it: a
        storage of Optuna, the URL of a database or the path of a journal. By default, the study is
        kept in memory.
    n_jobs
        Number of threads that run trials; -1 stands for all cores.
    search
        Function that takes the `SpanObjective` and returns the chosen hyperparameters. It replaces
        the search with Optuna, so that the settings from `n_trials` to `n_jobs` are not used.
    scale
        How the features are scaled, based on the training rows: "auto" ("minmax" for dense
        features, None for sparse ones), "minmax" (to [0, 1]; sparse features are divided by their
        largest absolute value), "standard", None (or "none") or a transformer of scikit-learn.
    scale_inside
        Leave rows out of the scaling as well: the rows that define it are refitted with a scaling
        of the other rows, for the exact `loo_`, `loo_error_` and `loo_bounds_`, but not during the
        search. With "minmax" these are the rows that alone define a minimum or maximum, with other
        scalings all rows.
    impute
        How missing values are filled in, based on the training rows: "median" (with the median of
        numbers and the most frequent category), "most_frequent" or "indicator" (as "median", with
        a feature of 0 and 1 for each column that has missing values). None refuses them.
    random_state
        Random seed of the sampler.
    progress_bar
        Show a progress bar. By default, only a search on more than 3,000 rows prints something on
        standard error: one line about memory, and one about the time that is left. False prints
        nothing.
    tol, max_iter, solver, memory_limit
        Settings of the fits; see `SpanObjective`.

    Attributes
    ----------
    best_params_
        Hyperparameters that were chosen by the search.
    best_loss_
        Loss of the chosen hyperparameters. After a search it is optimistic, because it was
        selected.
    loo_method_
        Method of leave-one-out that was used.
    loo_
        Leave-one-out result of the chosen model.
    loo_error_
        Leave-one-out error of the chosen model.
    loo_bounds_
        Proven bounds on the exact leave-one-out error of the chosen model.
    label_error_probability_
        Probability that the label of each training row is wrong, shape (l,), computed from the
        labels and distances of the other rows when it is first used. Its sum is the number of wrong
        labels to be expected.
    suspects_
        Indices of the training rows whose labels are wrong with a probability above 0.5, the most
        probable first.
    estimator_
        Fitted ``SVC``, which takes scaled features. Costs that depend on the class only are its
        ``C`` or ``class_weight``; others are its attribute ``costs_``.
    scaler_
        Fitted scaler, or None.
    scale_rows_
        Indices of the training rows without which the scaling would be another one.
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
    ['C', 'gamma']
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
        weighting: Weighting | str | None = None,
        *,
        metric: Any = "error",
        loo_method: str = AUTO,
        n_trials: int | None = 50,
        timeout: float | None = None,
        sampler: Any = None,
        pruner: Any = None,
        budgets: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int = 1,
        search: Any = None,
        scale: Any = "auto",
        scale_inside: bool = False,
        impute: str | None = None,
        random_state: Any = None,
        progress_bar: bool | None = None,
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
        self.scale_inside = scale_inside
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
        weight = None if sample_weight is None else checked_weights(sample_weight, y)
        kept = self._kept_rows(weight, len(y))
        X, self.encoding_ = learned_columns(rows, kept, impute, given)
        scaling = ScaledRows.of(self.scale, X, y[kept], is_kernel=self._is_precomputed())
        scaling.warn(inside=as_scale_inside(self.scale_inside))
        self.scaler_, self.scale_rows_ = scaling.scaler, kept[scaling.defining]
        named = {name: column[kept] for name, column in named_scores(scores, len(y)).items()}
        loo_method = as_loo_method(self.loo_method)
        weighting = weighting_for(self.weighting, self.metric)
        if weight is not None:
            weight = weight[kept]
            weighting, named = row_weighted(weighting), {**named, WEIGHT: weight}
        self.objective_ = SpanObjective(
            scaling.features,
            y[kept],
            kernel=self.kernel,
            weighting=weighting,
            metric=self.metric,
            loo_method="span" if loo_method == AUTO else loo_method,
            scores=named or None,
            groups=None if groups is None else as_column(groups, "groups", len(y))[kept],
            metric_weight=weight,
            tol=self.tol,
            max_iter=self.max_iter,
            solver=self.solver,
            memory_limit=self.memory_limit,
            scaling=scaling.name,
        )
        if loo_method == AUTO:
            self.objective_.loo_method = chosen_loo_method(self.objective_)
        self.loo_method_ = self.objective_.loo_method
        self.classes_ = self.objective_.data.classes.copy()
        self.best_params_ = self._searched_params()
        evaluation = self.objective_.evaluate(self.best_params_, complete=True)
        self.best_loss_ = evaluation.loss
        if self.scale_inside:
            evaluation = scaling.evaluated_inside(self.objective_, evaluation)
        self.loo_ = evaluation.loo
        self.loo_error_ = evaluation.loo.error
        self.loo_bounds_ = evaluation.loo.error_bounds
        self._n_rows, self._kept = len(y), kept
        self._label_errors: FloatArray | None = None  # computed when it is first used
        self.estimator_ = self.objective_.fit_model(self.best_params_)
        self.n_iter_ = int(np.max(self.estimator_.n_iter_))
        self._sigmoids = loo_sigmoids(evaluation.loo, evaluation.metric_weight)
        return self

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
            If the kernel is not "rbf", "linear" or "poly", or files cannot hold the scaler.
        """
        check_is_fitted(self)
        check_fits_in_a_file(self.scaler_)
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
        return scaled(self.scaler_, X)

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    def _kept_rows(self, weight: FloatArray | None, count: int) -> IndexArray:
        """Return the rows of the fit; a kernel matrix keeps all rows, some of them with cost 0."""
        if weight is None or self._is_precomputed():
            return np.arange(count)
        return rows_of(weight)

    def _searched_params(self) -> dict[str, Any]:
        """Return the hyperparameters that a search finds; none if all of them are fixed."""
        self.study_ = None
        if not self.objective_.space:
            return {}
        if len(self.objective_.metrics) > 1:
            raise ValueError(f"`metric` must be one metric for a search, got {self.metric!r}.")
        if self.search is not None:
            return checked_params(self.objective_.space, self.search(self.objective_))
        wanted_trials(self.n_trials, self.timeout)  # checked before a study is created
        n_jobs = thread_count("n_jobs", self.n_jobs)
        try:
            from span_hpo.integrations import optuna as adapter
        except ModuleNotFoundError:
            raise  # something else than Optuna is missing, for which the adapter has a message
        except ImportError as error:
            raise ImportError(
                "A search needs Optuna: pip install 'span-hpo[optuna]'. It is not needed if all "
                "hyperparameters are fixed, as in SpanSVC(RBF(gamma=0.1), UniformCost(1.0))."
            ) from error
        given = self.budgets
        budgets = None if given is None else self.objective_.budget_rows(given)
        self.study_ = adapter.new_study(
            sampler=self.sampler,
            pruner=self.pruner,
            storage=self.storage,
            study_name=self.study_name,
            seed=sampler_seed(self.random_state),
        )
        try:
            adapter.search(
                self.study_,
                self.objective_,
                n_trials=self.n_trials,
                budgets=budgets,
                timeout=self.timeout,
                n_jobs=n_jobs,
                progress_bar=bool(self.progress_bar),
                report=_print if self.progress_bar is not False else None,
            )
        except KeyboardInterrupt:
            done = len(adapter.finished_trials(self.study_))
            if not done:
                raise
            warnings.warn(
                f"The search was interrupted after {done} trials. The model is that of the best "
                "one so far.",
                stacklevel=3,
            )
        return adapter.params_of(adapter.best_trial(self.study_), self.objective_)


def _print(line: str) -> None:
    """Print a line on standard error, as Optuna does with its progress bar."""
    sys.stderr.write(f"SpanSVC: {line}\n")


def sampler_seed(random_state: Any) -> int:
    """Return the seed of a sampler that follows from a `random_state` of scikit-learn."""
    return int(check_random_state(random_state).randint(_LARGEST_SEED))
