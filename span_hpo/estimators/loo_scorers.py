"""Score fitted estimators by their leave-one-out values, without predictions."""

import hashlib
import inspect
import pickle
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import get_scorer, get_scorer_names

from span_hpo.data import not_negative
from span_hpo.errors import LeakWarning
from span_hpo.estimators.fitted import FittedSVC
from span_hpo.estimators.leaks import steps_that_depend_on_labels
from span_hpo.estimators.left_out import LeftOutClassifier
from span_hpo.metrics import METRICS, as_metrics, loss_name
from span_hpo.runtime import Array, FloatArray, Memo

_ESTIMATOR_NAMES = ("estimator", "clf", "model", "est")  # first argument of users' scorers
# Scores of two classes that need probabilities, and the metrics of which they are the negative.
# These take Platt's sigmoid as it is, while `loo_proba_` never contradicts the predicted class.
OF_SIGMOIDS = {"neg_log_loss": "log_loss", "neg_brier_score": "brier"}
_SETTINGS = 256  # number of settings of transformers that are remembered
_leaking: Memo[tuple[str, ...]] = Memo(most=_SETTINGS)


def loo_scorer(metric: Any = "error") -> "LooScorer":
    """Return a scorer that reads the leave-one-out values of a fitted `LooSVC` or `SpanSVC`.

    It is the argument `scoring` of scikit-learn's searches, whose argument `cv` is `AllRows`. The
    estimator may be the last step of a ``Pipeline``. Nothing is predicted, so that a candidate
    takes one fit.

    Parameters
    ----------
    metric
        Name of a metric of `SpanObjective`; a scorer of scikit-learn or its name, such as
        "accuracy", "roc_auc" or "neg_log_loss"; or a callable ``(y, decision_values) -> loss``.
        Larger scores are better: losses such as "error" are returned with a minus sign, and "auc",
        "average_precision", "f1" and "mcc" as they are. Scorers of scikit-learn get leave-one-out
        predictions in place of predictions. "neg_log_loss" and "neg_brier_score" of two classes
        are the negative "log_loss" and "brier", as in `SpanSearchCV`: their probabilities are those
        of the sigmoid alone, which `loo_proba_` replaces by 1/2 where they contradict the class.

    Returns
    -------
    A scorer ``(estimator, X, y, sample_weight=None) -> score``, which can be pickled. Rows are
    weighted as in the fit, or by `sample_weight` if it is given. Scores do not depend on the
    `threshold` of the estimator. The scorer issues a `LeakWarning` if a transformer of the pipeline
    depends on the labels.

    Raises
    ------
    ValueError, TypeError
        If the metric is unknown.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import RandomizedSearchCV
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from scipy.stats import loguniform
    >>> from span_hpo import AllRows, LooSVC, loo_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), LooSVC())
    >>> space = {"loosvc__C": loguniform(0.1, 100), "loosvc__gamma": loguniform(0.01, 1)}
    >>> search = RandomizedSearchCV(
    ...     pipeline, space, n_iter=5, scoring=loo_scorer(), cv=AllRows(), random_state=0
    ... ).fit(X, y)
    >>> print(round(search.best_score_, 3), round(search.best_estimator_[-1].loo_error_, 3))
    -0.04 0.04
    """
    return LooScorer(metric)


@dataclass(frozen=True)
class LooScorer:
    """A scorer of scikit-learn that reads leave-one-out values; see `loo_scorer`.

    Attributes
    ----------
    metric
        What is computed from the values.
    """

    metric: Any = "error"

    def __post_init__(self) -> None:
        if _is_theirs(self.metric):
            return
        if isinstance(self.metric, str) and self.metric not in METRICS:
            raise ValueError(
                f"`metric` must be one of {sorted(METRICS)}, the name of a scorer of scikit-learn "
                f"such as 'accuracy', or a callable (y, decision_values) -> loss, got "
                f"{self.metric!r}."
            )
        if isinstance(self.metric, tuple | list):
            raise ValueError(
                f"`metric` must be one metric, got {self.metric!r}: give a search a dictionary of "
                "scorers for several."
            )
        check_no_metric_of_labels(self.metric, "metric")
        as_metrics(self.metric, weighted=False)

    @property
    def __name__(self) -> str:
        """Name of the score, by which TPOT calls its columns."""
        name = getattr(self.metric, "__name__", type(self.metric).__name__)
        return f"loo_{self.metric if isinstance(self.metric, str) else name}"

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the score of a fitted estimator, which is larger for better ones.

        Parameters
        ----------
        estimator
            Fitted `LooSVC` or `SpanSVC`, or a pipeline that ends in one.
        X, y
            Rows and labels, which must be those of the fit.
        sample_weight
            Weight of each row in the score; by default that of the fit.

        Raises
        ------
        TypeError
            If the estimator has no leave-one-out values.
        ValueError
            If the rows are not those of the fit.
        """
        steps = _flat_steps(estimator)
        model = steps[-1][1]
        if not isinstance(model, FittedSVC):
            raise TypeError(
                "`estimator` must be a fitted LooSVC or SpanSVC, or a pipeline that ends in one, "
                f"got {type(model).__name__}."
            )
        left_out = model.left_out()
        _check_rows(left_out, y)
        _warn_of_leaks(steps, X, y)
        if sample_weight is None:
            weight, is_weighted = left_out.weight, bool((left_out.weight != 1).any())
        else:
            weight, is_weighted = (
                not_negative(sample_weight, "sample_weight", left_out.n_rows),
                True,
            )
            weight = weight[left_out.rows]
        metric = self.metric
        if isinstance(metric, str) and len(left_out.classes_) == 2:
            metric = OF_SIGMOIDS.get(metric, metric)
        if not _is_theirs(metric):
            loss = _loss_of(metric, left_out, weight, is_weighted)
            is_complement = isinstance(metric, str) and loss_name(metric) != metric
            return 1 - loss if is_complement else -loss
        scorer = get_scorer(metric)
        weights = {"sample_weight": weight} if is_weighted else {}
        return float(scorer(left_out, left_out.rows, left_out.data.labels, **weights))

    def _accept_sample_weight(self) -> bool:
        """Return True, which scikit-learn asks of the scorers of a dictionary."""
        return True


def loo_loss(model: Any, metric: str) -> float:
    """Return the leave-one-out loss of a fitted estimator, with the weights of its fit.

    Parameters
    ----------
    model
        Fitted `LooSVC` or `SpanSVC`, or a pipeline that ends in one.
    metric
        Name of a metric of `SpanObjective`.
    """
    left_out = _flat_steps(model)[-1][1].left_out()
    return _loss_of(metric, left_out, left_out.weight, is_weighted=True)


def _loss_of(
    metric: Any, left_out: LeftOutClassifier, weight: FloatArray, is_weighted: bool
) -> float:
    (chosen,) = as_metrics(metric, weighted=is_weighted)
    return chosen.loss(left_out.data.y, left_out.loo.decision_values, weight)


def _is_theirs(metric: Any) -> bool:
    """Return whether a metric is a scorer of scikit-learn, ``(estimator, X, y) -> score``."""
    if isinstance(metric, str):
        return metric not in METRICS and metric in get_scorer_names()
    return callable(metric) and is_scorer(metric)


def is_scorer(function: Any) -> bool:
    """Return whether a function takes an estimator, rows and labels, and not labels and values."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except ValueError:
        return False  # some functions written in C do not reveal their arguments
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one.name for one in parameters if one.kind in kinds and one.default is one.empty]
    needed = [name for name in needed if name not in ("weight", "sample_weight")]
    return (bool(needed) and needed[0] in _ESTIMATOR_NAMES) or len(needed) > 2


def check_no_metric_of_labels(function: Any, argument: str) -> None:
    """Raise if a function is a metric of scikit-learn, whose scores would be taken for losses.

    Parameters
    ----------
    function
        What a user gives as a score or a loss.
    argument
        Name of the argument that it was given for.
    """
    module = str(getattr(getattr(function, "func", function), "__module__", ""))
    if module.startswith("sklearn.metrics.") and module != "sklearn.metrics._scorer":
        name = getattr(function, "__name__", repr(function))
        raise ValueError(
            f"`{argument}` must be a scorer, the name of one such as 'roc_auc', or a loss (y, "
            f"decision_values) -> loss, got {name} of scikit-learn, which looks like a metric "
            "function rather than a scorer. Use sklearn.metrics.make_scorer to make a scorer of it."
        )


def _flat_steps(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of an estimator, of which only the last is not a transformer."""
    if not hasattr(estimator, "steps"):
        return [("", estimator)]
    *before, (name, last) = estimator.steps
    return [*before, *((inner or name, step) for inner, step in _flat_steps(last))]


def _check_rows(left_out: LeftOutClassifier, y: Any) -> None:
    """Raise if the labels are not those of the rows to which the estimator was fitted."""
    labels: Array = np.reshape(y, -1)
    if len(labels) != left_out.n_rows:
        received = f"{len(labels)} rows for a fit of {left_out.n_rows}"
    elif not np.array_equal(labels[left_out.rows], left_out.data.labels):
        received = "other labels"
    else:
        return
    raise ValueError(
        "`X` and `y` must be the rows to which the estimator was fitted, because there are "
        f"leave-one-out values of no others, got {received}: use cv=AllRows() in a search, and "
        "`best_estimator_.score` for new rows."
    )


def _warn_of_leaks(steps: list[tuple[str, Any]], X: Any, y: Any) -> None:
    """Warn if a transformer depends on the labels; settings are examined once for the same rows."""
    if len(steps) == 1:
        return
    names = _leaking.get(_key(steps, X, y), lambda: steps_that_depend_on_labels(steps, X, y))
    if names:
        warnings.warn(
            f"The features that {' and '.join(names)} makes depend on the labels, also on that of "
            "the row that is left out, so that leave-one-out errors are far too low. Use folds for "
            "this pipeline, or a transformer that does not look at labels.",
            LeakWarning,
            stacklevel=3,
        )


class _Digest:
    """A file that keeps a digest of what is written to it, so that rows are not held twice."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b()

    def write(self, data: Any) -> None:
        """Add bytes to the digest."""
        self._hash.update(data)

    def digest(self) -> bytes:
        """Return the digest."""
        return self._hash.digest()


def _key(steps: list[tuple[str, Any]], X: Any, y: Any) -> Hashable:
    """Return a key that differs for other settings of transformers, other rows or other labels."""
    transformers = [
        (name, step if step is None or isinstance(step, str) else clone(step))
        for name, step in steps[:-1]
    ]
    written = _Digest()
    try:
        pickle.dump((transformers, X, np.asarray(y)), written)
    except (AttributeError, TypeError, pickle.PicklingError):
        return object()  # what cannot be written is examined each time
    return written.digest()
