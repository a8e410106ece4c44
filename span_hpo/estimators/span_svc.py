"""Provide a scikit-learn classifier that tunes itself with one fit per trial and no folds."""

import time
from typing import Any

from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from span_hpo.data import as_column, named_scores
from span_hpo.estimators.columns import learned_columns, training_rows
from span_hpo.estimators.defaults import AUTO, as_loo_method, chosen_loo_method, weighting_for
from span_hpo.estimators.fitted import FittedSVC
from span_hpo.estimators.gradients import (
    GradientSearch,
    as_refine,
    check_refinable,
    refined,
    searched_by_gradients,
)
from span_hpo.estimators.row_weights import WEIGHT, checked_weights, kept_rows, row_weighted
from span_hpo.estimators.scaling_inside import ScaledRows, as_scale_inside
from span_hpo.estimators.searches import SearchSettings, searched
from span_hpo.estimators.widths import kernel_of_columns
from span_hpo.io import as_impute
from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError
from span_hpo.selection import HonestEstimate, check_is_mean, ensemble_of
from span_hpo.solver import DEFAULT_MAX_ITER, DEFAULT_TOL
from span_hpo.weighting import Weighting


class SpanSVC(FittedSVC):
    """A support vector classifier that chooses its hyperparameters by leave-one-out.

    `fit` searches the hyperparameters with Optuna, with one weighted fit per trial. If all of them
    are fixed, nothing is searched, and Optuna is not needed. One width for each feature, as with
    ``kernel="ard"``, is searched by gradients instead, which takes seconds for dozens of widths.
    Ctrl-C ends the search with a warning, and the model is that of the best trial so far.

    Parameters
    ----------
    kernel
        "rbf", "ard" (with a width for each column), "linear", "poly", "laplacian" or "precomputed";
        a kernel such as ``RBF(gamma=0.1)`` or ``ARD(groups=[["red", "green", "blue"]])``; or a
        callable ``(X, Z) -> matrix``. A column of categories has one width for all of them.
    weighting
        Rule that gives each row its cost: "uniform" (one cost for all rows), "imbalance" (a common
        cost, and an exponent that balances classes of different size), "class" (one cost per
        class), "sigmoid", "power" or "knots" (of a score), "groups" (one cost for each group),
        "confidence" (by the labels of neighbours), or class costs times one of these,
        "class*sigmoid", "class*power", "class*knots", "class*groups" or "class*confidence"; or a
        weighting such as ``ClassCosts()``. By default it is "uniform" if every row counts alike in
        the metric, as in "error", "smooth_error", "hinge", "log_loss" and "brier", and "imbalance"
        for all other metrics.
    metric
        "error", "balanced_error", "smooth_error", "hinge", "log_loss", "brier", "auc",
        "average_precision", "f1", "mcc", "span_functional", or a callable
        ``(y, decision_values) -> loss``. All are minimised. If larger values of a metric are
        better, one minus its value is minimised.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit",
        "stopping", or "auto", which stands for "exact" or "span", whichever suits the data and the
        metric. `loo_method_` holds the choice.
    n_trials
        Number of trials; None for as many as the `timeout` allows. With a `storage`, trials of
        earlier fits of the study count. In a search by gradients, it is the number of evaluations,
        over which the steps become shorter; None then stands for the default of `minimize`.
    timeout
        End the search after this many seconds. The first trial is always finished, and the final
        fit follows.
    patience
        End the search when so many trials in a row have not lowered the loss. By default, the
        search does not end for this reason. 40 saves about half of 150 trials at little or no loss.
    sampler
        "tpe", "random", "qmc", "cmaes", "gp" or "gradient", seeded by `random_state`; or a sampler
        of Optuna.
        By default, a kernel with a width for each feature is searched by gradients, for which the
        settings from `patience` to `study_name` must be None, and other kernels by "tpe".
    pruner
        "none" (the default), "median", "percentile", "halving" or "hyperband"; or a pruner of
        Optuna.
    budgets
        Increasing numbers or shares of rows at which a pruner may stop a trial; by default 1/8,
        1/4, 1/2 and all rows for a pruner that is given by name, and else all rows. Default points
        are never stopped, and at least a quarter of the trials run to completion.
    storage, study_name
        Storage in which the study is kept under its name, so that a later fit can continue it: a
        storage of Optuna, the URL of a database or the path of a journal. By default, the study is
        kept in memory.
    n_jobs
        Number of threads that run trials; -1 stands for all cores. A search by gradients goes step
        by step in one.
    search
        Function that takes the `SpanObjective` and returns the chosen hyperparameters, or for an
        ensemble a list of them, the best first. It replaces the search with Optuna, so that the
        settings from `n_trials` to `n_jobs` are not used.
    refine
        Follow the gradient from the best point of the search, and keep the better one of this point
        and the best that is found: True for 30 evaluations, or their number. `refinement_` says
        what it has brought.
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
        Random seed of the sampler. A search by gradients is the same for all seeds.
    progress_bar
        Show a progress bar. By default, only a search on more than 3,000 rows prints something on
        standard error: one line about memory, and one about the time that is left. False prints
        nothing.
    threshold
        Where the prediction of two classes switches. With None, it follows the sign of the decision
        value. With "loo", it switches where the leave-one-out loss is lowest; for "balanced_error",
        where the calibrated probability of the second class reaches the share of that class. With a
        number, it switches where the second class reaches this probability. The search compares
        models without a threshold.
    miss_cost
        Costs of missing a row of each class, such as ``{"good": 1, "bad": 10}``; how many times as
        much it costs to miss the second class as the first; or a matrix of costs, with a row for
        each class and a column for each prediction. The class with the lower expected cost by
        Platt's sigmoid is predicted, also where `predict_proba` gives one half because the sigmoid
        contradicts the sign.
    ensemble
        Predict by the mean probability of several models of the search, which are chosen among the
        30 best trials by the log loss of the mean leave-one-out probability.
    tol, max_iter, solver, memory_limit
        Settings of the fits; see `SpanObjective`.

    Attributes
    ----------
    best_params_
        Hyperparameters that were chosen by the search.
    best_loss_
        Loss of the chosen hyperparameters. After a search it is optimistic, because it was
        selected.
    honest_error_, honest_interval_
        Estimate of the loss on new rows that is corrected for the search, and a 90 % interval. They
        are computed when they are first used, and exist after a search with Optuna by a metric that
        is a mean over rows or classes, such as "error" or "balanced_error". With `refine`, they are
        those of the best trial before the gradient steps.
    feature_relevance_
        Relevance of each column, the most relevant one first, for a kernel with a width for each:
        the width times the variance of the scaled feature, which is half of what the feature adds
        to the exponent of the kernel in the mean over pairs of rows; see `feature_relevance`. The
        keys are the names of the columns, or their numbers if they have no names. Of a column with
        categories, it is the sum over these; of an ensemble, the weighted mean.
    loo_method_
        Method of leave-one-out that was used.
    loo_
        Leave-one-out result of the chosen model; of an ensemble, that of its best trial.
    loo_error_
        Leave-one-out error of the chosen model, or of the ensemble.
    loo_bounds_
        Proven bounds on the exact leave-one-out error of the chosen model. An ensemble has none.
    members_, weights_, members_params_
        Fitted ``SVC``, weight and hyperparameters of each member of an ensemble.
    threshold_
        Decision value from which on the second class is predicted; 0 without `threshold` and
        `miss_cost`.
    threshold_loss_
        Leave-one-out loss at the threshold: of the metric, or the mean cost of a row. Present only
        with `threshold` or `miss_cost`. It is optimistic, because the threshold was chosen on the
        same values.
    label_error_probability_
        Probability that the label of each training row is wrong, shape (l,), computed from the
        labels and distances of the other rows when it is first used. Its sum is the expected number
        of wrong labels.
    suspects_
        Indices of the training rows whose labels are wrong with a probability above 0.5, the most
        probable first.
    estimator_
        Fitted ``SVC``, which takes scaled features. Costs that depend on the class only are its
        ``C`` or ``class_weight``; others are its attribute ``costs_``.
    scaler_
        Fitted scaler, or None.
    scale_rows_
        Indices of the training rows without which the scaling would be different.
    encoding_
        How the columns become features, for DataFrames with text and with `impute`; else None.
    n_iter_
        Number of iterations of the final fit; the largest one if there are several classes.
    study_
        Study of Optuna, or None if Optuna was not used.
    gradient_search_, refinement_
        What a search by gradients, and the steps of `refine`, have done: the metric whose gradient
        was followed, the number of evaluations, the loss before and after, and the path. They are
        None without such a search and without `refine`. A metric without derivatives, such as
        "error", is replaced by "smooth_error" for the steps; one in which classes count, such as
        "balanced_error", by the same with equal weights of all classes. All losses of the estimator
        are still those of its own metric.
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
        patience: int | None = None,
        sampler: Any = None,
        pruner: Any = None,
        budgets: Any = None,
        storage: Any = None,
        study_name: str | None = None,
        n_jobs: int = 1,
        search: Any = None,
        refine: bool | int = False,
        scale: Any = "auto",
        scale_inside: bool = False,
        impute: str | None = None,
        random_state: Any = None,
        progress_bar: bool | None = None,
        threshold: Any = None,
        miss_cost: Any = None,
        ensemble: bool = False,
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
        self.patience = patience
        self.sampler = sampler
        self.pruner = pruner
        self.budgets = budgets
        self.storage = storage
        self.study_name = study_name
        self.n_jobs = n_jobs
        self.search = search
        self.refine = refine
        self.scale = scale
        self.scale_inside = scale_inside
        self.impute = impute
        self.random_state = random_state
        self.progress_bar = progress_bar
        self.threshold = threshold
        self.miss_cost = miss_cost
        self.ensemble = ensemble
        self.tol = tol
        self.max_iter = max_iter
        self.solver = solver
        self.memory_limit = memory_limit

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
        loo_method = as_loo_method(self.loo_method)
        rows, y = training_rows(self, X, y, is_kernel=self._is_precomputed())
        check_classification_targets(y)
        self._check_threshold(self.metric, y)
        self._check_ensemble()
        weight = None if sample_weight is None else checked_weights(sample_weight, y)
        kept = kept_rows(weight, len(y), is_kernel=self._is_precomputed())
        X, self.encoding_ = learned_columns(rows, kept, impute, given)
        scaling = ScaledRows.of(self.scale, X, y[kept], is_kernel=self._is_precomputed())
        scale_inside = as_scale_inside(self.scale_inside)
        self.scaler_, self.scale_rows_ = scaling.scaler, kept[scaling.defining]
        named = {name: column[kept] for name, column in named_scores(scores, len(y)).items()}
        weighting = weighting_for(self.weighting, self.metric)
        if weight is not None:
            weight = weight[kept]
            weighting, named = row_weighted(weighting), {**named, WEIGHT: weight}
        self.objective_ = SpanObjective(
            scaling.features,
            y[kept],
            kernel=kernel_of_columns(
                self.kernel, getattr(self, "feature_names_in_", None), self.encoding_
            ),
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
        settings = SearchSettings.of(self)
        settings.check(self.objective_)
        scaling.warn(inside=scale_inside)
        if loo_method == AUTO:
            self.objective_.loo_method = chosen_loo_method(self.objective_)
        self.loo_method_ = self.objective_.loo_method
        points = self._searched(settings, self.objective_)
        self.best_params_ = points[0]
        self._honest_estimate: HonestEstimate | None = None  # computed when it is first used
        evaluation = self.objective_.evaluate(self.best_params_, complete=True)
        self.best_loss_ = evaluation.loss
        if self.scale_inside:
            evaluation = scaling.evaluated_inside(self.objective_, evaluation)
        ensemble = ensemble_of(self.objective_, points) if self.ensemble else None
        self._keep(evaluation, kept, len(y), ensemble)
        return self

    def _searched(self, settings: SearchSettings, objective: SpanObjective) -> list[dict[str, Any]]:
        """Search, and return the best hyperparameters; for an ensemble also other candidates."""
        self.study_: Any = None
        self.gradient_search_: GradientSearch | None = None
        self.refinement_: GradientSearch | None = None
        evaluations = as_refine(self.refine) if objective.space else 0
        end = None if self.timeout is None else time.monotonic() + self.timeout
        if settings.is_by_gradients(objective):
            points, self.gradient_search_ = searched_by_gradients(
                objective,
                self.n_trials,
                timeout=self.timeout,
                progress_bar=bool(self.progress_bar),
            )
            points = points if self.ensemble else points[:1]
        else:
            if evaluations:
                check_refinable(objective)
            points, self.study_ = searched(settings, objective)
        if evaluations:
            best, self.refinement_ = refined(objective, points[0], evaluations, end)
            points = [best, *(points if self.ensemble and best != points[0] else points[1:])]
        return points

    def _check_ensemble(self) -> None:
        if self.ensemble not in (True, False):
            raise ArgumentError("ensemble", f"must be True or False, got {self.ensemble!r}.")
        if self.ensemble and self.scale_inside:
            raise ArgumentError(
                "ensemble",
                "must be False with `scale_inside`, which refits rows of a single model, got True.",
            )

    @property
    def honest_error_(self) -> float:
        """Loss on new rows, estimated without the optimism of the search."""
        return self._honest("honest_error_").error

    @property
    def honest_interval_(self) -> tuple[float, float]:
        """Interval of `honest_error_`, with a level of 90 %."""
        return self._honest("honest_interval_").interval

    def _honest(self, name: str) -> HonestEstimate:
        """Return the honest estimate of the search, or raise if there is none."""
        check_is_fitted(self)
        if self.gradient_search_ is not None:
            raise AttributeError(
                f"`{name}` is there after a search with Optuna only, and this was a search by "
                "gradients, whose path is no sample of independent trials. Name a sampler, or use "
                "cross_val_score."
            )
        if self.study_ is None:
            raise AttributeError(
                f"`{name}` is there after a search with Optuna only. Without a search, nothing was "
                "selected, and `loo_error_` is not optimistic."
            )
        try:
            check_is_mean(self.objective_, ensemble=self.ensemble)
        except ValueError as error:
            raise AttributeError(f"`{name}` is not available: {error}") from error
        if self._honest_estimate is None:
            from span_hpo.integrations.optuna import honest_estimate

            self._honest_estimate = honest_estimate(
                self.study_, self.objective_, ensemble=self.ensemble
            )
        return self._honest_estimate
