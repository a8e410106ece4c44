"""Split an estimator into its transformers and the SVM at its end."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.svm import SVC

from span_hpo.estimators.loo_svc import LooSVC
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.estimators.thresholds import threshold_rule
from span_hpo.metrics import as_metrics
from span_hpo.runtime import Array

_SVM_CLASSES = (SVC, LooSVC)
# Parameters of the SVM that no search can compare, and what to do instead.
_NOT_SEARCHED = {
    "probability": "Give LooSVC() as the estimator for probabilities, which it always has.",
    "loo_method": "Use the argument `loo_method` of SpanSearchCV, which holds for all candidates.",
    **dict.fromkeys(("threshold", "miss_cost", "metric"), "Give it to the LooSVC() itself."),
}


@dataclass(frozen=True)
class Parts:
    """The parts of an estimator.

    Attributes
    ----------
    transformers
        Pipeline of all steps before the SVM, or None if there are none.
    svm
        The SVM at the end.
    prefix
        What the names of its parameters begin with: the empty string, or "svc__" for the step "svc"
        of a pipeline.
    """

    transformers: Pipeline | None
    svm: Any
    prefix: str

    @property
    def arguments(self) -> SVCArguments:
        """Arguments of the SVM after checking them."""
        return checked_arguments(self.svm.get_params(deep=False))


def parts_of(estimator: Any) -> Parts:
    """Return the parts of an estimator.

    Parameters
    ----------
    estimator
        An SVM, or a ``Pipeline`` that ends in one.

    Raises
    ------
    TypeError
        If the estimator is something else.
    """
    if isinstance(estimator, type):
        raise TypeError(
            f"`estimator` must be an estimator and not its class, got {estimator.__name__}. Use "
            f"{estimator.__name__}()."
        )
    if isinstance(estimator, Pipeline):
        name, svm = estimator.steps[-1]
        transformers = estimator[:-1] if len(estimator.steps) > 1 else None
        parts = Parts(transformers, svm, f"{name}__")
    else:
        parts = Parts(None, estimator, "")
    if isinstance(parts.svm, Pipeline):
        raise TypeError(
            "`estimator` must be one Pipeline with an SVM as its last step, got a Pipeline whose "
            f"last step {estimator.steps[-1][0]!r} is a Pipeline. Put all steps into one of them."
        )
    if type(parts.svm) not in _SVM_CLASSES:
        raise TypeError(
            "`estimator` must be SVC(), LooSVC() or a Pipeline that ends in one of them, got "
            f"{_shown(estimator, parts.svm)}. Use GridSearchCV for other estimators."
        )
    for name, step in estimator.steps[:-1] if isinstance(estimator, Pipeline) else ():
        if hasattr(step, "fit_resample"):
            raise TypeError(
                f"`estimator` must keep all rows, which the step {name!r} "
                f"({type(step).__name__}) does not. Use GridSearchCV for it."
            )
    return parts


def configured(estimator: Any, candidate: Mapping[str, Any]) -> Any:
    """Return a clone of the estimator with the parameters of a candidate.

    Estimators among the parameters are cloned as well, as scikit-learn does.
    """
    return clone(estimator).set_params(**clone(dict(candidate), safe=False))


def check_searched(names: Any, prefix: str) -> None:
    """Raise if a search is to compare what it cannot, such as ``svc__probability``.

    Parameters
    ----------
    names
        Names of the parameters that are searched.
    prefix
        What the names of the parameters of the SVM begin with.
    """
    for parameter, remedy in _NOT_SEARCHED.items():
        if f"{prefix}{parameter}" in names:
            raise ValueError(
                f"`param_distributions` must not search `{prefix}{parameter}`, which leaves the "
                f"leave-one-out predictions as they are. {remedy}"
            )


def check_own_arguments(svm: Any, labels: Array, *, weighted: bool) -> None:
    """Raise if arguments of a `LooSVC` that no candidate uses would make its own fit fail.

    Parameters
    ----------
    svm
        The SVM, of which a plain ``SVC`` has no such arguments.
    labels
        Labels of the rows, shape (l,).
    weighted
        Whether the SVM gets the weights of the rows.

    Raises
    ------
    ValueError
        If `threshold`, `miss_cost` or `metric` are not valid or do not suit the labels.
    """
    if isinstance(svm, LooSVC):
        as_metrics(svm.metric, weighted=weighted)
        threshold_rule(svm.threshold, svm.miss_cost, svm.metric, np.unique(labels))


def checked_arguments(given: Mapping[str, Any]) -> SVCArguments:
    """Return the arguments of an SVM after checking them.

    Raises
    ------
    ValueError, TypeError
        If an argument is not valid, or asks for what has no leave-one-out values. The message then
        names the class to use.
    """
    kernel, probability = given.get("kernel"), given.get("probability", False)
    if isinstance(kernel, str) and kernel == "sigmoid":
        raise ValueError(
            "`kernel` must be positive semi-definite for leave-one-out, which 'sigmoid' is not. "
            "Use GridSearchCV to search it."
        )
    if probability is True:
        raise ValueError(
            "`probability` must be False, got True. Give LooSVC() as the estimator, whose "
            "`predict_proba` is calibrated on leave-one-out values."
        )
    return SVCArguments.of(given)


def _shown(estimator: Any, svm: Any) -> str:
    if estimator is svm:
        return type(svm).__name__
    return f"a {type(estimator).__name__} that ends in {type(svm).__name__}"
