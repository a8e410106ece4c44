"""Provide a search like those of scikit-learn that takes one fit for each candidate."""

import sys
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from span_hpo.estimators.candidate_search import CandidateSearch
from span_hpo.estimators.candidates import checked_distributions
from span_hpo.estimators.defaults import AUTO, as_loo_method
from span_hpo.estimators.loo_svc import LooSVC
from span_hpo.estimators.outcomes import SearchedRows
from span_hpo.estimators.pipelines import (
    Parts,
    check_own_arguments,
    check_searched,
    configured,
    parts_of,
)
from span_hpo.estimators.scoring import Score, check_scores, is_multiple, read_scoring
from span_hpo.estimators.search_results import (
    best_index,
    check_failures,
    complete_errors,
    search_results,
)
from span_hpo.estimators.search_rows import TrainingRows, rows_of_search
from span_hpo.estimators.shared_objectives import SharedObjectives
from span_hpo.runtime import Array, FloatArray, plain
from span_hpo.selection import HonestEstimate


def _delegates(method: str) -> Any:
    """Return a check whether the chosen estimator, or else the given one, has a method."""

    def check(search: Any) -> bool:
        if not search.refit:
            raise AttributeError(
                f"`refit` must be true for `{method}`, because no estimator is fitted otherwise."
            )
        getattr(getattr(search, "best_estimator_", search.estimator), method)
        return True

    return check


class SpanSearchCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """A search like ``GridSearchCV`` and ``RandomizedSearchCV``, with one fit for each candidate.

    Each candidate is judged by the leave-one-out predictions of all rows, which one fit gives, and
    there are no folds. Candidates share distances, kernel matrices and transformed features. The
    results have the form of scikit-learn's, and the best estimator is fitted by scikit-learn.

    Parameters
    ----------
    estimator
        ``SVC()``, `LooSVC` for calibrated probabilities, or a ``Pipeline`` of transformers that
        ends in one of them. Transformers are fitted to all rows before the SVM is judged, so that
        they must not look at the labels.
    param_distributions
        Dictionary from names of parameters, such as ``svc__C``, to lists of values, distributions
        of scipy or Optuna, or `Float`, `Int` and `Choice`. search="grid" takes lists only. A list
        of dictionaries is possible with "grid" and "random".
    n_iter
        Number of candidates. It has no effect on search="grid", which tries all combinations.
        Samplers of Optuna may propose the same combination of lists several times.
    scoring
        Name of a score of scikit-learn or of one of our metrics; a scorer
        ``(estimator, X, y) -> score``, as ``make_scorer`` returns it; a loss
        ``(y, decision_values) -> loss``; or several, as a list of names or a dictionary. By default
        the accuracy. Scores of losses are negative, so that greater is better.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit",
        "stopping", or "auto": that of a `LooSVC` that names one, or else "exact" or "span",
        whichever suits the data and the score. The best `LooSVC` is fitted with the same method.
    search
        "tpe", "qmc", "cmaes" or "gp" (samplers of Optuna), "random" (the candidates that
        ``RandomizedSearchCV`` draws with the same `random_state`) or "grid". Samplers of Optuna
        treat lists as unordered. Lists with at most `n_iter` combinations are tried in full, each
        once, whatever the search. A distribution of scipy that is not uniform, log-uniform or
        ``randint`` is drawn by its quantile.
    refit
        Fit the best candidate to all rows. With several scores, the name of the one that decides. A
        function of `cv_results_` returns the position of the candidate that it prefers.
    patience
        End the search after so many candidates without a better score. Not available with "grid".
    timeout
        Start no candidate after this many seconds. The first one is always evaluated.
    n_jobs
        Number of threads; -1 stands for all cores.
    random_state
        Random seed of the candidates.
    memory_limit
        Megabytes for kernel matrices; by default a quarter of the machine's memory.
    verbose
        Print how many candidates there are, and which is the best.

    Attributes
    ----------
    cv_results_
        Results by column: those of scikit-learn (`mean_test_score`, `std_test_score`,
        `rank_test_score`, `params`, `param_C`, `mean_fit_time`, ...), and `loo_error`, its proven
        bounds `loo_error_low` and `loo_error_high`, `smooth_error`, `n_support`, `n_in_bound` and
        `n_undefined`. `std_test_score` is the standard error of the score over samples of rows. For
        scores that are not means over rows, such as "roc_auc" and "f1", it needs a bootstrap; it is
        computed for the best candidate only and is NaN for all others. Equal scores are ranked by
        the smooth error, then by the number of support vectors.
    best_estimator_
        Estimator with the best parameters, fitted to all rows.
    best_params_, best_score_, best_index_
        Parameters, score and position of the best candidate. The score is optimistic, because the
        candidate was chosen by it.
    honest_
        `HonestEstimate` of the loss of the chosen estimator on new rows, corrected for the choice.
    honest_error_, honest_interval_
        The loss of this estimate, such as the error for the accuracy, and its interval.
    loo_method_
        Method of leave-one-out that was used.
    study_
        Study of Optuna, or None.
    scorer_
        Scorer of new rows, or scorers by name.
    multimetric_, n_splits_, refit_time_
        Whether there are several scores; 1, because all rows are one split; and the seconds that
        the final fit took.
    classes_, n_features_in_, feature_names_in_
        Labels of the classes, and number and names of the features, as scikit-learn defines them.

    Examples
    --------
    >>> from scipy.stats import loguniform
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from sklearn.svm import SVC
    >>> from span_hpo import SpanSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"svc__C": loguniform(0.1, 100), "svc__gamma": loguniform(0.01, 1)}
    >>> pipeline = make_pipeline(StandardScaler(), SVC())
    >>> search = SpanSearchCV(pipeline, space, n_iter=20, search="random", random_state=0)
    >>> search = search.fit(X, y)
    >>> round(search.best_score_, 3), round(search.honest_error_, 3)
    (0.967, 0.049)
    >>> search.best_estimator_.predict(X[::50]).tolist()
    [0, 1, 2]

    A grid of lists, as for ``GridSearchCV``:

    >>> grid = {"C": [1, 10], "gamma": ["scale", 0.1], "class_weight": [None, {0: 2}]}
    >>> SpanSearchCV(SVC(), grid, search="grid").fit(X, y).best_params_
    {'C': 1, 'class_weight': {0: 2}, 'gamma': 0.1}
    """

    def __init__(
        self,
        estimator: Any,
        param_distributions: Any,
        *,
        n_iter: int = 50,
        scoring: Any = None,
        loo_method: str = AUTO,
        search: str = "tpe",
        refit: Any = True,
        patience: int | None = None,
        timeout: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        memory_limit: float | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.param_distributions = param_distributions
        self.n_iter = n_iter
        self.scoring = scoring
        self.loo_method = loo_method
        self.search = search
        self.refit = refit
        self.patience = patience
        self.timeout = timeout
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.memory_limit = memory_limit
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags = own.classifier_tags
        tags.target_tags.required = True
        tags.input_tags.pairwise = own.input_tags.pairwise
        tags.input_tags.sparse = own.input_tags.sparse
        tags.input_tags.allow_nan = own.input_tags.allow_nan
        return tags

    def get_metadata_routing(self) -> MetadataRouter:
        """Return how metadata such as `sample_weight` are passed on to the estimator."""
        mapping = MethodMapping().add(caller="fit", callee="fit")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(estimator=self.estimator, method_mapping=mapping)

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> "SpanSearchCV":
        """Search the parameters, and fit the best estimator.

        Parameters
        ----------
        X
            Rows, as the estimator takes them.
        y
            Labels, shape (l,), of two or more classes.
        sample_weight
            Factor of each row's cost, and weight of the row in the scores, shape (l,), at least 0.
        groups
            Must be None, because single rows are left out.

        Returns
        -------
        The search itself.
        """
        parts = parts_of(self.estimator)
        search = self._checked_search(parts)
        loo_method = self._loo_method(parts)
        rows, fit_params = rows_of_search(self, parts, X, y, sample_weight, groups)
        check_own_arguments(parts.svm, rows.y, weighted=rows.weights_costs)
        scores, decisive = self._scores(rows)
        metrics = _metrics_of(scores, decisive)
        positions = {name: metrics.index(score.metric) for name, score in scores.items()}
        shared = SharedObjectives(
            self.estimator,
            rows,
            metrics=tuple(metrics),
            loo_method=loo_method,
            memory_limit=self.memory_limit,
        )
        if self.verbose:
            _print(f"{search.count} candidates, with one fit of all rows for each")
        outcomes, self.study_ = search.run(shared, parts.prefix)
        check_failures(outcomes)
        results = search_results(outcomes, scores, positions)
        complete_errors(results, outcomes, shared, positions)
        self.cv_results_ = results
        self.loo_method_ = shared.loo_method
        self.n_splits_ = 1
        self.multimetric_ = is_multiple(self.scoring)
        scorers = {name: score.scorer for name, score in scores.items()}
        self.scorer_ = scorers if self.multimetric_ else scorers["score"]
        self._searched_rows = SearchedRows.of(outcomes, shared)
        self._honest: HonestEstimate | None = None  # computed when it is first used
        if self.refit or not self.multimetric_:
            self.best_index_ = best_index(self.refit, decisive, results)
            self.best_params_ = results["params"][self.best_index_]
            self.best_score_ = float(results[f"mean_test_{decisive}"][self.best_index_])
            if self.verbose:
                _print(f"best score {self.best_score_:.4g} at {plain(self.best_params_)}")
        if self.refit:
            self._fit_best(X, y, fit_params)
        return self

    @property
    def honest_(self) -> HonestEstimate:
        """Estimate of the loss of the chosen estimator on new rows, corrected for the choice."""
        check_is_fitted(self)
        if callable(self.refit) or not hasattr(self, "best_index_"):
            raise AttributeError(
                "`refit` must be True or the name of a score for an honest estimate, because it "
                f"repeats the choice of the best score, got {self.refit!r}."
            )
        if not self._searched_rows.metric.is_mean:
            raise AttributeError(
                "`scoring` must be a mean over rows for an honest estimate, such as 'accuracy', "
                f"'balanced_accuracy' or 'neg_log_loss', got {self.scoring!r}."
            )
        if self._honest is None:
            self._honest = self._searched_rows.honest_estimate()
        return self._honest

    @property
    def honest_error_(self) -> float:
        """Loss of the honest estimate, such as the error if the score is the accuracy."""
        return self.honest_.error

    @property
    def honest_interval_(self) -> tuple[float, float]:
        """Interval of the honest estimate."""
        return self.honest_.interval

    @available_if(_delegates("predict"))  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Array:
        """Return the labels that the best estimator predicts."""
        check_is_fitted(self)
        labels: Array = self.best_estimator_.predict(X)
        return labels

    @available_if(_delegates("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of the best estimator."""
        check_is_fitted(self)
        values: FloatArray = self.best_estimator_.decision_function(X)
        return values

    @available_if(_delegates("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return the class probabilities of the best estimator, if it is or ends in a `LooSVC`."""
        check_is_fitted(self)
        probabilities: FloatArray = self.best_estimator_.predict_proba(X)
        return probabilities

    @available_if(_delegates("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithms of the class probabilities of the best estimator."""
        check_is_fitted(self)
        logarithms: FloatArray = self.best_estimator_.predict_log_proba(X)
        return logarithms

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of the best estimator on other rows, by the score that has decided.

        Parameters
        ----------
        X, y
            Rows and their labels.
        sample_weight
            Weight of each row in the score.
        """
        check_is_fitted(self, "best_estimator_")
        scorer: Any = self.scorer_
        if self.multimetric_:
            if not isinstance(self.refit, str):
                raise ValueError(
                    "`refit` must be the name of a score for `score`, because there are several, "
                    f"got {self.refit!r}. Call one of `scorer_`."
                )
            scorer = scorer[self.refit]
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        return float(scorer(self.best_estimator_, X, y, **weights))

    def _checked_search(self, parts: Parts) -> CandidateSearch:
        """Return the search, after checking all that can be checked without data."""
        names = list(self.estimator.get_params(deep=True))
        distributions = checked_distributions(self.param_distributions, names)
        check_searched({name for part in distributions for name in part}, parts.prefix)
        search = CandidateSearch.of(self, distributions)
        search.check_arguments(parts.svm.get_params(deep=False), parts.prefix)
        return search

    def _loo_method(self, parts: Parts) -> str:
        """Return the method of leave-one-out, which is by default that of a `LooSVC`."""
        method, own = as_loo_method(self.loo_method), as_loo_method(_own_loo_method(parts))
        if AUTO not in (method, own) and method != own:
            raise ValueError(
                f"`loo_method` must be 'auto' or that of the LooSVC, {own!r}, got {method!r}."
            )
        return own if method == AUTO else method

    def _scores(self, rows: TrainingRows) -> tuple[dict[str, Score], str]:
        """Return the scores by name, and the name of the one that decides."""
        classes, codes = np.unique(rows.y, return_inverse=True)
        weight = np.ones(len(codes)) if rows.weight is None else rows.weight
        scores = read_scoring(self.scoring, classes, weighted=rows.weight is not None)
        decisive = next(iter(scores))
        if is_multiple(self.scoring):
            if isinstance(self.refit, str) and self.refit in scores:
                decisive = self.refit
            elif self.refit is not False and not callable(self.refit):
                raise ValueError(
                    f"`refit` must be one of the scores {list(scores)}, a function of "
                    f"`cv_results_` or False, because there are several scores, got {self.refit!r}."
                )
        elif not (
            isinstance(self.refit, bool) or callable(self.refit) or self.refit == self.scoring
        ):
            raise ValueError(
                "`refit` must be True, False or a function of `cv_results_` if there is one score, "
                f"got {self.refit!r}."
            )
        check_scores(list(scores.values()), codes, classes, weight)
        return scores, decisive

    def _fit_best(self, X: Any, y: Any, fit_params: Mapping[str, Any]) -> None:
        """Fit the best candidate to all rows, and take over what it knows of them."""
        best = configured(self.estimator, self.best_params_)
        parts = parts_of(best)
        if isinstance(parts.svm, LooSVC):
            parts.svm.set_params(loo_method=self.loo_method_)  # as the candidates were compared
        start = time.perf_counter()
        best.fit(X, y, **fit_params)
        self.refit_time_ = time.perf_counter() - start
        self.best_estimator_ = best
        self.classes_ = best.classes_
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(best, name):
                setattr(self, name, getattr(best, name))


def _own_loo_method(parts: Parts) -> Any:
    """Return the argument `loo_method` of the SVM, which a plain ``SVC`` does not have."""
    return parts.svm.loo_method if isinstance(parts.svm, LooSVC) else AUTO


def _print(line: str) -> None:
    """Print a line on standard error, as Optuna does."""
    sys.stderr.write(f"SpanSearchCV: {line}\n")


def _metrics_of(scores: Mapping[str, Score], decisive: str) -> list[Any]:
    """Return the different metrics of the scores, beginning with the one that decides."""
    metrics = [scores[decisive].metric]
    for score in scores.values():
        if not any(score.metric is known or score.metric == known for known in metrics):
            metrics.append(score.metric)
    return metrics
