"""Name the widths of features after the columns of a table, and read relevances by column.

One column of text or categories becomes several features of 0 and 1. These share one width, so that
there is one width for each column, as a user of a DataFrame expects.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from span_hpo.io import Encoding
from span_hpo.kernels import ARD, as_kernel
from span_hpo.objective import SpanObjective, feature_relevance
from span_hpo.space import Params


def kernel_of_columns(
    kernel: Any, names: Sequence[str] | None, encoding: Encoding | None = None
) -> Any:
    """Return a kernel whose widths are named after the columns of the features.

    Parameters
    ----------
    kernel
        Kernel as a user specifies it. One without a width for each feature is returned as it is.
    names
        Names of the columns that the user gave, or None if they have no names.
    encoding
        Encoding of these columns, or None if each column is a feature.

    Raises
    ------
    ValueError
        If two columns have the same name, or the groups of the kernel name a column twice.
    """
    kernel = as_kernel(kernel)
    if not isinstance(kernel, ARD) or kernel.columns is not None:
        return kernel
    if names is not None:
        _check_different(names)
    if encoding is None or len(encoding.feature_names) == len(encoding.features):
        return kernel if names is None else kernel.named(list(names))
    return ARD(kernel.gamma, _groups_of_features(kernel, encoding), tuple(encoding.feature_names))


def relevance_of_columns(
    objective: SpanObjective,
    params: Params,
    encoding: Encoding | None,
    names: Sequence[str] | None = None,
) -> dict[Any, float]:
    """Return the relevance of each column, the most relevant one first; see `feature_relevance`.

    A column that has become several features has the sum of their relevances.

    Parameters
    ----------
    objective, params
        Objective and hyperparameters.
    encoding
        Encoding of the columns, or None if each column is a feature.
    names
        Names of the columns, for a kernel that does not know them.
    """
    relevance = feature_relevance(objective, params)
    if encoding is None or len(encoding.features) == len(relevance):
        is_named = names is not None and len(set(names)) == len(relevance)
        if names is None or not is_named or set(relevance) != set(range(len(relevance))):
            return relevance
        return {names[number]: value for number, value in relevance.items()}
    features = encoding.feature_names
    own = iter([relevance[name if name in relevance else k] for k, name in enumerate(features)])
    return _ordered(
        {
            column.name: sum(itertools.islice(own, len(column.feature_names)))
            for column in encoding.features
        }
    )


def relevance_of_model(model: Any, encoding: Encoding | None) -> dict[Any, float]:
    """Return the relevance of each column to a fitted estimator, the most relevant one first.

    That of an ensemble is the weighted mean over its members.

    Parameters
    ----------
    model
        Fitted estimator of this package, whose kernel has a width for each feature.
    encoding
        Encoding of the columns, or None if each column is a feature.
    """
    names = getattr(model, "feature_names_in_", None)
    weights: Any = getattr(model, "weights_", None)
    if weights is None:
        params = getattr(model, "best_params_", {})
        return relevance_of_columns(model.objective_, params, encoding, names)
    weighted = [
        (weight, relevance_of_columns(model.objective_, params, encoding, names))
        for weight, params in zip(weights.tolist(), model.members_params_, strict=True)
    ]
    return _ordered({name: sum(w * one[name] for w, one in weighted) for name in weighted[0][1]})


def _ordered(relevance: dict[Any, float]) -> dict[Any, float]:
    """Return relevances in decreasing order; equal ones keep theirs."""
    return dict(sorted(relevance.items(), key=lambda item: -item[1]))


def _check_different(names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(
                "`X` must have columns of different names for a kernel with a width for each of "
                f"them, got {name!r} twice."
            )
        seen.add(name)


def _groups_of_features(kernel: ARD, encoding: Encoding) -> Any:
    """Return the groups of a kernel in terms of features; a category is a group by default."""
    groups = kernel.groups
    if isinstance(groups, Mapping):
        given = list(groups.items())
    elif groups is None:
        given = []
    elif isinstance(groups, Sequence) and not isinstance(groups, str):
        given = [(None, group) for group in groups]
    else:
        return groups  # the kernel refuses it
    found: dict[Any, Any] = {}
    for label, group in given:
        if not isinstance(group, Sequence) or isinstance(group, str) or not len(group):
            return groups
        label = _column_name(group[0], encoding) if label is None else label
        if label in found:
            raise ValueError(f"`groups` must name each column once, got column {label!r} twice.")
        found[label] = [feature for column in group for feature in _features(column, encoding)]
    taken = {feature for group in found.values() for feature in group}
    for column in encoding.features:
        own = column.feature_names[: column.n_values]
        if column.categories is not None and not taken & set(own):
            found[column.name] = own
    return found


def _features(column: Any, encoding: Encoding) -> list[Any]:
    """Return the features of a column that a user names or numbers; a feature is itself."""
    name = _column_name(column, encoding)
    own = [found.feature_names for found in encoding.features if found.name == name]
    return own[0] if own else [name]


def _column_name(column: Any, encoding: Encoding) -> Any:
    if isinstance(column, int) and not isinstance(column, bool):
        if not 0 <= column < len(encoding.features):
            raise ValueError(
                f"`groups` must hold columns of `X`, numbers from 0 to {len(encoding.features) - 1}"
                f" or names, got {column!r}."
            )
        return encoding.features[column].name
    return column
