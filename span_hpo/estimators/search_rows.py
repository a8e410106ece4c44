"""Check the rows of a search, and decide which parts of its estimator get their weights."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.metadata_routing import process_routing
from sklearn.utils.multiclass import check_classification_targets

from span_hpo.estimators.loo_svc import LooSVC
from span_hpo.estimators.pipelines import Parts
from span_hpo.estimators.row_weights import checked_weights
from span_hpo.runtime import Array, FloatArray, IndexArray, rows_of

_NEGLIGIBLE = 1e-12  # weight, relative to the largest, that replaces 0 where a row must stay


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """The rows of a search as the user gave them.

    Attributes
    ----------
    X, y
        Rows as the estimator takes them, and labels, shape (l,).
    weight
        Weight of each row, shape (l,), or None.
    weights_costs
        Whether the weights are factors of the costs.
    fit_params
        Arguments of the transformers' fit.
    """

    X: Any
    y: Array
    weight: FloatArray | None
    weights_costs: bool
    fit_params: Mapping[str, Any]

    @property
    def kept(self) -> IndexArray:
        """Rows of the leave-one-out fits, which are those whose costs are not 0."""
        if self.weight is None or not self.weights_costs:
            return np.arange(len(self.y))
        return rows_of(self.weight)


def rows_of_search(
    search: Any, parts: Parts, X: Any, y: Any, sample_weight: Any, groups: Any
) -> tuple[TrainingRows, dict[str, Any]]:
    """Return the rows of a search, and the arguments for the fit of the best estimator.

    Parameters
    ----------
    search
        The search, whose metadata routing decides which steps of a pipeline get the weights.
    parts
        Parts of its estimator.
    X, y, sample_weight, groups
        Arguments of the search's `fit`.

    Raises
    ------
    ValueError
        If groups are given, or labels or weights are not valid.
    """
    if groups is not None:
        raise ValueError(
            "`groups` must be None, because single rows are left out and not groups. Use "
            "GridSearchCV with cv=GroupKFold() for rows that belong together."
        )
    if y is None:
        raise ValueError(
            f"This {type(search).__name__} estimator requires y to be passed, but the target y is "
            "None."
        )
    labels = np.asarray(column_or_1d(y, warn=True))
    check_consistent_length(X, labels)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    classes = np.unique(labels).tolist()
    if len(classes) < 2:
        # scikit-learn's checks of estimators look for the words "one class".
        found = f"only one class, {classes[0]!r}" if classes else "no rows"
        raise ValueError(f"`y` must have at least two classes, got {found}.")
    if sample_weight is None:
        return TrainingRows(X, labels, None, False, {}), {}
    weight = checked_weights(sample_weight, labels, in_each_class=True)
    given = weight
    if parts.svm.kernel == "precomputed" and not isinstance(parts.svm, LooSVC):
        # ``SVC`` would drop rows of weight 0 and take the wrong columns of new matrices.
        given = np.maximum(weight, _NEGLIGIBLE * weight.max())
    if not get_config()["enable_metadata_routing"]:
        name = f"{parts.prefix}sample_weight"
        return TrainingRows(X, labels, weight, True, {}), {name: given}
    before, own = _routed(search, parts, given)
    return TrainingRows(X, labels, weight, bool(own), before), before | own


def _routed(
    search: Any, parts: Parts, weight: FloatArray
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """Return the arguments of the transformers' fit and of the SVM's fit.

    Raises
    ------
    UnsetMetadataPassedError
        If a step that takes weights does not say whether it wants them.
    """
    given = {"sample_weight": weight}
    if parts.transformers is None:
        return {}, dict(process_routing(search, "fit", **given).estimator.fit)
    of_steps = process_routing(search.estimator, "fit", **given)
    wanted = parts.transformers.get_metadata_routing().consumes("fit", ["sample_weight"])
    own = of_steps[parts.prefix.removesuffix("__")].fit
    return given if wanted else {}, dict(own)
