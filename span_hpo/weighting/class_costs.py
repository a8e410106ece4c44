"""Weightings that give one cost to all rows, or one cost to each class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from span_hpo.data import Dataset
from span_hpo.runtime import FloatArray, IndexArray, plain, real
from span_hpo.space import (
    Float,
    Hyperparameter,
    Params,
    Space,
    names_of,
    searched,
    value_of,
    written,
)
from span_hpo.weighting.products import ComposableWeighting

COST_RANGE = Float(2.0**-6, 2.0**10, log=True)
BALANCE_RANGE = Float(0.0, 1.5)


@dataclass(frozen=True)
class UniformCost(ComposableWeighting):
    """The same cost for all rows, ``C_i = C``.

    Parameters
    ----------
    C
        Cost of every row; positive.

    Examples
    --------
    >>> from span_hpo import SpanObjective, UniformCost
    >>> data = SpanObjective([[0.0], [1.0], [2.0]], [-1, 1, 1]).data
    >>> UniformCost(C=2.0).costs(data, {}).tolist()
    [2.0, 2.0, 2.0]
    >>> UniformCost().costs(data, {"C": 5.0}).tolist()
    [5.0, 5.0, 5.0]
    """

    C: Hyperparameter = COST_RANGE

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return ``C`` for every row."""
        return np.full(len(data), real("C", value_of(self.C, "C", params), at_least=0))

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return ``sum_i weights_i``, the derivative by `C` if it is searched."""
        return dict.fromkeys(self.space, float(weights.sum()))


@dataclass(frozen=True)
class ClassCosts(ComposableWeighting):
    """One cost for each class.

    The name of a parameter is ``C_`` followed by the label, for example ``C_-1`` and ``C_1`` for
    the labels -1 and 1, ``C_bad`` and ``C_good``, or ``C_naïve``. In a label of ASCII
    characters only, those outside ``[A-Za-z0-9_.+-]`` are replaced by ``_``, and in others those
    that cannot be printed. If two names would then be equal, the parameters are numbered ``C_0``,
    ``C_1`` and so on in sorted order of the labels. `SpanObjective.legend` says which label a name
    stands for if the name does not hold it.

    Parameters
    ----------
    per_class
        One number or dimension for all classes; or one for each class, as a mapping from labels or
        as a sequence in sorted order of the labels.
    names
        Names of the parameters in sorted order of the labels, in place of the default names.

    Examples
    --------
    >>> from span_hpo import ClassCosts, SpanObjective
    >>> X, y = [[0.0], [1.0], [2.0]], ["bad", "good", "good"]
    >>> objective = SpanObjective(X, y, weighting=ClassCosts({"bad": 3.0, "good": 1.0}))
    >>> objective.weighting.costs(objective.data, {}).tolist()
    [3.0, 1.0, 1.0]
    >>> list(SpanObjective(X, y, kernel="linear", weighting=ClassCosts()).space)
    ['C_bad', 'C_good']
    """

    per_class: Any = COST_RANGE
    names: Sequence[str] | None = None

    def bind(self, data: Dataset) -> "ClassCosts":
        """Return this weighting with a cost and a name for each label of these data."""
        labels = data.classes.tolist()
        per_class = self.per_class
        if isinstance(per_class, Mapping):
            if set(per_class) != set(labels):
                raise ValueError(
                    f"`per_class` must name exactly the labels {labels}, got {list(per_class)}."
                )
            settings = tuple(per_class[label] for label in labels)
        elif isinstance(per_class, Sequence | np.ndarray) and not isinstance(per_class, str):
            settings = tuple(per_class)
        else:
            settings = (per_class,) * len(labels)
        if isinstance(self.names, str) or not isinstance(self.names, Sequence | None):
            raise TypeError(f"`names` must be a list of names, got {self.names!r}.")
        names = names_of("C_", labels) if self.names is None else tuple(self.names)
        for argument, values in (("per_class", settings), ("names", names)):
            if len(values) != len(labels):
                raise ValueError(
                    f"`{argument}` must have one entry for each of the labels {labels}, "
                    f"got {plain(list(values))}."
                )
        if len(set(names)) < len(names):
            raise ValueError(f"`names` must differ from each other, got {list(names)}.")
        return replace(self, per_class=settings, names=names)

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched(self._settings())

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the cost of its class."""
        per_class = [
            real(name, value_of(setting, name, params), at_least=0)
            for name, setting in self._settings().items()
        ]
        return np.array(per_class)[data.codes]

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the sum of the weights of each class whose cost is searched."""
        sums = np.bincount(data.codes, weights, len(data.classes)).tolist()
        of_names = dict(zip(self._settings(), sums, strict=True))
        return {name: of_names[name] for name in self.space}

    def legend(self, data: Dataset) -> dict[str, str]:
        """Return what those names stand for that do not hold their labels."""
        labels = zip(self._settings(), data.classes.tolist(), strict=True)
        return {
            name: f"cost of class {label!r}"
            for name, label in labels
            if name != f"C_{written(label)}"
        }

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs whose sum is the same in every class."""
        counts = np.bincount(data.codes)
        balanced = (len(data) / (len(counts) * counts)).tolist()
        names = list(self._settings())
        return [dict.fromkeys(names, 1.0), dict(zip(names, balanced, strict=True))]

    def _settings(self) -> dict[str, Any]:
        if not isinstance(self.per_class, tuple) or self.names is None:
            raise ValueError(
                "`ClassCosts` must know the labels before it has parameters: "
                "use the `weighting` of a SpanObjective, or ClassCosts().bind(data)."
            )
        return dict(zip(self.names, self.per_class, strict=True))


@dataclass(frozen=True)
class ImbalanceCost(ComposableWeighting):
    """One cost for all classes, and an exponent that balances classes of different size.

    A row of class c costs ``C (l / (k l_c))^balance``, where l_c of the l rows are in class c, and
    k is the number of classes. With `balance` 0 all rows have the same cost; with 1 the sum of the
    costs is the same in every class, as with ``class_weight="balanced"`` in scikit-learn. So two
    hyperparameters are enough for any number of classes.

    Parameters
    ----------
    C
        Cost of a row if all classes have the same number of rows; positive.
    balance
        Exponent of the class weights.

    Examples
    --------
    >>> from span_hpo import ImbalanceCost, SpanObjective
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], ["bad", "good", "good", "good"]
    >>> objective = SpanObjective(X, y, kernel="linear", weighting=ImbalanceCost(C=3.0))
    >>> list(objective.space)
    ['balance']
    >>> objective.weighting.costs(objective.data, {"balance": 1.0}).tolist()
    [6.0, 2.0, 2.0, 2.0]
    """

    C: Hyperparameter = COST_RANGE
    balance: Hyperparameter = BALANCE_RANGE

    @property
    def space(self) -> Space:
        """The parameters that are searched."""
        return searched({"C": self.C, "balance": self.balance})

    def costs(self, data: Dataset, params: Params) -> FloatArray:
        """Return for each row the cost of its class."""
        cost = real("C", value_of(self.C, "C", params), at_least=0)
        balance = real("balance", value_of(self.balance, "balance", params))
        per_class = cost * balanced_weights(np.bincount(data.codes), balance)
        return per_class[data.codes]

    def gradient(self, data: Dataset, params: Params, weights: FloatArray) -> dict[str, float]:
        """Return the derivatives by `C` and by `balance`, as far as they are searched."""
        counts = np.bincount(data.codes)
        cost = real("C", value_of(self.C, "C", params), at_least=0)
        balance = real("balance", value_of(self.balance, "balance", params))
        sums = np.bincount(data.codes, weights, len(counts)) * balanced_weights(counts, balance)
        logarithms = np.log(balanced_weights(counts, 1.0))
        found = {"C": float(sums.sum()), "balance": float(cost * sums @ logarithms)}
        return {name: found[name] for name in self.space}

    def starts(self, data: Dataset) -> list[dict[str, Any]]:
        """Return equal costs, and costs whose sum is the same in every class."""
        return [{"C": 1.0, "balance": 0.0}, {"C": 1.0, "balance": 1.0}]


def balanced_weights(counts: IndexArray, balance: float) -> FloatArray:
    """Return ``(l / (k l_c))^balance`` for each class c, of which l_c of the l rows are.

    Parameters
    ----------
    counts
        Number of rows of each of the k classes.
    balance
        Exponent, which is 0 for equal weights and 1 for an equal sum of weights in every class.
    """
    shares: FloatArray = counts.sum() / (len(counts) * counts)
    weights: FloatArray = shares**balance
    return weights
