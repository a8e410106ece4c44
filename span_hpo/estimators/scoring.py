"""Read the argument `scoring`, and score leave-one-out predictions and those of new rows.

Scores are greater if models are better, as scikit-learn has it, and losses are smaller. A score of
scikit-learn that equals one of our metrics is computed by it, because standard errors, honest
estimates and the exact method know our metrics. All others are computed by scikit-learn's scorer
from the leave-one-out predictions.
"""

import copy
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import get_scorer, get_scorer_names
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d

from span_hpo.estimators.left_out import LabelledValues
from span_hpo.estimators.loo_scorers import OF_SIGMOIDS, check_no_metric_of_labels, is_scorer
from span_hpo.estimators.loo_svc import LooSVC
from span_hpo.metrics import METRICS, as_metrics, loss_name
from span_hpo.runtime import Array, FloatArray, IndexArray
from span_hpo.solver import pairs_of

_POSITIVE = 1  # label of the positive class in scikit-learn's scores of one class
_PROBE_SEED = 0
# Scores of scikit-learn that are one minus a metric or minus a metric: for any number of classes,
# for two classes, for two classes if the second one is positive, and for more classes.
_FOR_ANY = {"accuracy": "error", "balanced_accuracy": "balanced_error", "matthews_corrcoef": "mcc"}
_FOR_TWO = {"roc_auc": "auc", **OF_SIGMOIDS}
_FOR_ONE_OF_TWO = {"f1": "f1", "average_precision": "average_precision"}
_FOR_MORE = {"f1_macro": "f1"}


@dataclass(frozen=True)
class Score:
    """A named score.

    Attributes
    ----------
    name
        Name of the score in the results.
    metric
        Metric whose loss is computed: a name or a callable, for `SpanObjective`.
    offset
        Number from which the loss is subtracted, 0 or 1.
    scorer
        Function ``(estimator, X, y) -> score`` for new rows.
    weighted
        Whether a user's loss gets weights.
    """

    name: str
    metric: Any
    offset: float
    scorer: Callable[..., float]
    weighted: bool = False

    def of(self, loss: float) -> float:
        """Return the score that belongs to a loss."""
        return self.offset - loss


def read_scoring(scoring: Any, classes: Array, *, weighted: bool) -> dict[str, Score]:
    """Return the scores that a user asks for, by name; a single one is called "score".

    Parameters
    ----------
    scoring
        A name of scikit-learn or one of our metrics, a scorer ``(estimator, X, y) -> score``, a
        loss ``(y, decision_values) -> loss``, a list of names, a dictionary from names to any of
        these, or None for the accuracy.
    classes
        Labels of the classes in sorted order.
    weighted
        Whether rows have weights.

    Raises
    ------
    TypeError, ValueError
        If `scoring` is none of these, or names a score twice.
    """
    if not is_multiple(scoring):
        return {"score": _read(scoring, "score", classes, weighted)}
    if not scoring:
        raise ValueError("`scoring` must name at least one score, got none.")
    if isinstance(scoring, Mapping):
        named = dict(scoring)
    else:
        names = list(scoring)
        if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
            raise ValueError(
                f"`scoring` must be a list of different names, got {names!r}. Use a dictionary to "
                "give names to functions."
            )
        named = dict(zip(names, names, strict=True))
    return {name: _read(given, name, classes, weighted) for name, given in named.items()}


def is_multiple(scoring: Any) -> bool:
    """Return whether several scores are asked for, even if it is a list of one."""
    return isinstance(scoring, Mapping | list | tuple | set)


def check_scores(scores: Sequence[Score], codes: Array, classes: Array, weight: FloatArray) -> None:
    """Compute scores and users' losses for made-up values of these labels, before any fit.

    Raises
    ------
    ValueError
        If a score cannot be computed from leave-one-out predictions, or a loss is no number.
    """
    rng = np.random.default_rng(_PROBE_SEED)
    if len(classes) == 2:
        y = 2.0 * codes - 1
        values = y + rng.normal(size=len(y))
    else:
        y = codes.astype(float)
        signs = [(codes == b) * 1.0 - (codes == a) for a, b in pairs_of(len(classes))]
        values = np.column_stack(signs) + rng.normal(size=(len(y), len(signs)))
    for score in scores:
        if isinstance(score.metric, ScorerLoss):
            score.metric.check(y, values, weight)
        elif callable(score.metric):
            _check_loss(score, y, values, weight)


def _check_loss(score: Score, y: FloatArray, values: FloatArray, weight: FloatArray) -> None:
    """Raise if a user's loss gives no number for such labels and values."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about the values, which are made up
            (metric,) = as_metrics(score.metric, weighted=score.weighted)
            metric.loss(y, values, weight)
    except Exception as error:  # whatever a user's function may raise
        shown = getattr(score.metric, "__name__", repr(score.metric))
        raise ValueError(
            "`scoring` must give one finite number for labels and decision values, which "
            f"{shown} does not ({type(error).__name__}: {error})."
        ) from error


class ScorerLoss:
    """The negative score of leave-one-out predictions by one of scikit-learn's scorers.

    Parameters
    ----------
    scorer
        Function ``(estimator, X, y) -> score``.
    shown
        What the user calls the scorer.
    classes
        Labels of the classes in sorted order.
    weighted
        Whether the scorer gets an argument `sample_weight`.
    """

    def __init__(self, scorer: Any, shown: str, classes: Array, weighted: bool) -> None:
        self.scorer = scorer
        self.shown = shown
        self.classes = classes
        self.weighted = weighted
        self.__name__ = shown  # the name of the metric

    def __call__(self, y: FloatArray, values: FloatArray, weight: FloatArray | None = None) -> Any:
        """Return the negative score of the leave-one-out predictions."""
        weights = np.ones(len(y)) if weight is None else weight
        return self.of_samples(y, values, weights)(np.arange(len(y)))

    def of_samples(
        self, y: FloatArray, values: FloatArray, weight: FloatArray
    ) -> Callable[[IndexArray], Any]:
        """Return a function that gives the loss of a sample of these rows.

        Its probabilities are those of all rows, whose sigmoids are fitted once.
        """
        rows = LabelledValues(y, values, self.classes)
        model = rows.classifier(weight)
        labels = rows.labels

        def loss(sample: IndexArray) -> Any:
            arguments = {"sample_weight": weight[sample]} if self.weighted else {}
            return -self.scorer(model, model.rows[sample], labels[sample], **arguments)

        return loss

    def check(self, y: FloatArray, values: FloatArray, weight: FloatArray) -> None:
        """Raise if the scorer gives no number for such labels and values."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about the values, which are made up
                loss = self(y, values, weight)
            float(loss)
        except Exception as error:  # whatever a user's function may raise
            raise ValueError(
                "`scoring` must give one number for the leave-one-out labels, decision values or "
                f"probabilities of all training rows, which {self.shown} does not "
                f"({type(error).__name__}: {error}). Use GridSearchCV for other scores."
            ) from error


@dataclass(frozen=True)
class LossScorer:
    """Scorer of new rows by one of our metrics or by a user's loss.

    Attributes
    ----------
    metric
        Name of a metric, or a callable ``(y, decision_values) -> loss``.
    offset
        Number from which the loss is subtracted.
    """

    metric: Any
    offset: float

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted estimator on some rows.

        Raises
        ------
        ValueError
            If some of the labels are not those of the fit.
        """
        classes, weighted = estimator.classes_, sample_weight is not None
        given = column_or_1d(y)
        unknown = set(given.tolist()) - set(classes.tolist())
        if unknown:
            raise ValueError(
                f"`y` must have no other labels than the fit, {classes.tolist()}, got "
                f"{sorted(unknown, key=repr)}."
            )
        codes = np.searchsorted(classes, given)
        labels: FloatArray = codes.astype(float)
        if len(classes) == 2:
            labels = 2 * labels - 1
        weight = np.asarray(sample_weight, dtype=float) if weighted else np.ones(len(labels))
        (metric,) = as_metrics(self.metric, weighted=weighted)
        return self.offset - metric.loss(labels, pair_values(estimator, X), weight)


def pair_values(estimator: Any, X: Any) -> FloatArray:
    """Return the decision values of new rows, positive for the second class of each pair.

    Parameters
    ----------
    estimator
        Fitted ``SVC`` or `LooSVC`, or a pipeline that ends in one.
    X
        New rows, as the estimator takes them.
    """
    if isinstance(estimator, Pipeline):
        if len(estimator) > 1:
            X = estimator[:-1].transform(X)
        estimator = estimator[-1]
    if isinstance(estimator, LooSVC):
        estimator = estimator.estimator_
    if len(estimator.classes_) == 2:
        values: FloatArray = estimator.decision_function(X)
        return values
    of_pairs = copy.copy(estimator).set_params(decision_function_shape="ovo")
    # The values that scikit-learn gives for pairs are positive for the first class.
    return -np.asarray(of_pairs.decision_function(X))


def _read(scoring: Any, name: str, classes: Array, weighted: bool) -> Score:
    scoring = "accuracy" if scoring is None else scoring
    if isinstance(scoring, str):
        return _named(scoring, name, classes, weighted)
    if not callable(scoring) or isinstance(scoring, type):
        raise TypeError(
            "`scoring` must be a name, a function or a dictionary of these, got "
            f"{scoring!r}{'' if name == 'score' else f' for {name!r}'}."
        )
    check_no_metric_of_labels(scoring, "scoring")
    shown = getattr(scoring, "__name__", repr(scoring))
    if is_scorer(scoring):
        return Score(name, ScorerLoss(scoring, shown, classes, weighted), 0.0, scoring)
    try:
        as_metrics(scoring, weighted=weighted)
    except ValueError as error:
        raise ValueError(
            f"`scoring` {shown} must take an argument `weight` or `sample_weight`, because "
            "`sample_weight` is given."
        ) from error
    return Score(name, scoring, 0.0, LossScorer(scoring, 0.0), weighted)


def _named(scoring: str, name: str, classes: Array, weighted: bool) -> Score:
    metric = _equal_metric(scoring, classes)
    if metric is None and scoring in get_scorer_names():
        scorer = get_scorer(scoring)
        return Score(name, ScorerLoss(scorer, repr(scoring), classes, weighted), 0.0, scorer)
    if metric is None:
        metric = scoring
    if metric not in METRICS:
        raise ValueError(
            f"`scoring` must be one of {sorted(METRICS)}, a name of scikit-learn, which "
            "sklearn.metrics.get_scorer_names() lists, a scorer (estimator, X, y) -> score or a "
            f"loss (y, decision_values) -> loss, got {scoring!r}."
        )
    # "auc" and "mcc" are scores already, and so are the names of scikit-learn but for the negative.
    is_score = loss_name(metric) != metric or scoring in _FOR_ANY
    offset = 1.0 if is_score else 0.0
    theirs = scoring in get_scorer_names() and _has_positive(scoring, classes)
    return Score(
        name, metric, offset, get_scorer(scoring) if theirs else LossScorer(metric, offset)
    )


def _equal_metric(scoring: str, classes: Array) -> str | None:
    """Return the metric of ours that computes a score of scikit-learn for these classes."""
    if scoring in _FOR_ANY:
        return _FOR_ANY[scoring]
    if len(classes) > 2:
        return _FOR_MORE.get(scoring)
    if scoring in _FOR_ONE_OF_TWO and classes[0] == _POSITIVE:
        return None  # the first class is the positive one
    return (_FOR_TWO | _FOR_ONE_OF_TWO).get(scoring)


def _has_positive(scoring: str, classes: Array) -> bool:
    """Return whether scikit-learn finds the positive class, if the score needs one."""
    return scoring not in _FOR_ONE_OF_TWO or _POSITIVE in classes.tolist()
