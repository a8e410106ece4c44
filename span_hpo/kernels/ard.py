"""A Gaussian kernel with a width of its own for each feature or group of features."""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from span_hpo.data import as_features
from span_hpo.kernels.blocks import KernelBlocks
from span_hpo.kernels.distances import (
    WeightedPairs,
    about_mean,
    close_pairs,
    cross_squared_distances,
    some_rows,
    squared_distances,
    squared_norms,
    typical_distance,
    weighted_squared_differences,
)
from span_hpo.kernels.functions import relative_to
from span_hpo.kernels.kernel import Kernel, WeightBlock
from span_hpo.kernels.row_pairs import RowPairs
from span_hpo.runtime import FloatArray, IndexArray, plain, real
from span_hpo.space import Float, as_dimension, names_of

# The default range of each gamma, in units of one over the median squared distance of the rows.
RELATIVE_WIDTHS_OF_FEATURES = Float(1e-4, 1e3, log=True)


class _Groups(dict[str, tuple[int, ...]]):
    """The columns of each group by the name of its hyperparameter, for rows that are known."""

    @functools.cached_property
    def order(self) -> tuple[IndexArray, IndexArray]:
        """The columns of all groups one after the other, and the size of each group."""
        columns = np.fromiter(itertools.chain.from_iterable(self.values()), dtype=np.intp)
        return columns, np.fromiter(map(len, self.values()), dtype=np.intp)

    def __reduce__(self) -> Any:
        return _Groups, (dict(self),)  # without what has been computed


@dataclass(frozen=True)
class ARD(Kernel):
    """A Gaussian kernel with one width per feature or per group of features.

    The kernel is ``K(x, z) = exp(-sum_k gamma_k (x_k - z_k)^2)``. Features of one group share their
    `gamma`. A feature that does not matter gets a small one, which is known as automatic relevance
    determination. There is a hyperparameter for each group, called ``gamma_`` and the name of the
    group: the name of its first column in a DataFrame, or the number of that column. So many
    hyperparameters are searched by gradients; see `minimize`.

    Parameters
    ----------
    gamma
        One number or dimension for all groups; or one for each group, as a sequence in the order of
        the groups or as a mapping from their names. By default, each is searched over [0.0001,
        1000] divided by the median nonzero squared distance of the rows. A gamma of 0 leaves the
        features of its group out.
    groups
        Groups of columns that share a gamma, such as the columns of one encoded category: lists of
        column numbers or names, or a mapping from names of groups to such lists. Every other
        column is a group of its own. Groups come first, in the order given.
    columns
        Names of the features, from which those of the hyperparameters follow. An objective takes
        them from a DataFrame.

    Examples
    --------
    >>> from span_hpo import ARD, SpanObjective
    >>> ARD(gamma=[0.5, 0.0])([[0.0, 3.0], [2.0, 1.0]]).round(3).tolist()
    [[1.0, 0.135], [0.135, 1.0]]
    >>> objective = SpanObjective([[0, 0, 1], [1, 1, 0]], [0, 1], kernel=ARD(groups=[[1, 2]]))
    >>> list(objective.kernel.space)
    ['gamma_1', 'gamma_0']
    """

    gamma: Any = None
    groups: Any = None
    columns: Sequence[str] | None = None
    gives_blocks: ClassVar[bool] = True

    def __call__(self, X: Any, Z: Any = None) -> FloatArray:
        """Return the kernel values of all pairs of rows; see `Kernel`."""
        bound = self.bind(as_features(X, "X", least_rows=1))
        return super(ARD, bound).__call__(X, Z)

    def named(self, feature_names: Sequence[str]) -> "ARD":
        """Return this kernel with hyperparameters that are named after these columns."""
        return self if self.columns is not None else replace(self, columns=tuple(feature_names))

    def bind(self, X: Any) -> "ARD":
        """Return this kernel with its groups and the default ranges filled in."""
        groups = self._groups_of(X.shape[1])
        settings = self._settings_of(tuple(groups), X)
        return replace(self, gamma=settings, groups=groups)

    @property
    def alike(self) -> tuple[str, ...]:
        """Names of the widths that are searched."""
        return tuple(self.space)

    def starts(self, X: Any) -> list[dict[str, Any]]:
        """Return equal widths: one over the number of features, and over the median distance."""
        typical = typical_distance(squared_distances(some_rows(X)))
        names = list(self._hyperparameters())
        return [dict.fromkeys(names, 1 / X.shape[1]), dict.fromkeys(names, 1 / typical)]

    def check(self, name: str, value: Any) -> Any:
        """Return the value of one hyperparameter, or raise ``ValueError`` if it is not valid."""
        return real(name, value, at_least=0)

    def statistic(self, X: Any) -> RowPairs:
        """Return the rows themselves, because distances depend on the hyperparameters."""
        return RowPairs(X)

    def shifted(self, X: Any) -> Any:
        """Return the features minus their mean, or sparse features unchanged."""
        return about_mean(X)

    def cross_statistic(self, X: Any, Z: Any) -> RowPairs:
        """Return the pairs of the rows of X and the rows of Z."""
        return RowPairs(X, Z)

    def restrict(self, statistic: RowPairs, rows: IndexArray) -> RowPairs:
        """Return the pairs of the given rows."""
        return statistic.among(rows)

    def part(self, statistic: RowPairs, rows: IndexArray, columns: IndexArray) -> RowPairs:
        """Return the pairs of some rows with some others."""
        return statistic.between(rows, columns)

    def matrix(self, statistic: RowPairs, **values: Any) -> FloatArray:
        """Return ``exp(-sum_k gamma_k (x_k - z_k)^2)``."""
        roots = np.sqrt(self.widths(values))
        if statistic.second is None:
            distances = squared_distances(_scaled(statistic.first, roots))
        else:
            X, Z = statistic.sides
            distances = cross_squared_distances(_scaled(X, roots), _scaled(Z, roots))
        np.negative(distances, out=distances)
        return np.exp(distances, out=distances)

    def diagonal(self, X: Any, **values: Any) -> FloatArray:
        """Return ones."""
        return np.ones(X.shape[0])

    def gradient(
        self, statistic: RowPairs, K: FloatArray, weights: FloatArray, **values: Any
    ) -> dict[str, float]:
        """Return ``-sum_ij weights_ij K_ij sum_{k in group} (x_ik - z_jk)^2`` for each group."""
        X, Z = statistic.sides
        both = sparse.vstack([X, Z], "csr") if sparse.issparse(X) else np.vstack([X, Z])
        rows = np.arange(both.shape[0])
        block = rows[: X.shape[0]], rows[X.shape[0] :], K, weights.copy()
        return self._total(both, [block], values)

    def total_gradient(
        self,
        X: Any,
        statistic: RowPairs | None,
        K: KernelBlocks,
        blocks: Iterable[WeightBlock],
        **values: Any,
    ) -> dict[str, float]:
        """Return the sum of `gradient` over blocks, in which work for single rows is shared."""
        with_values = (
            (rows, columns, K.block(rows, columns), weights) for rows, columns, weights in blocks
        )
        return self._total(X, with_values, values)

    def svc_arguments(self, **values: Any) -> dict[str, Any]:
        """Return the arguments that give scikit-learn's ``SVC`` this kernel."""
        return {"kernel": functools.partial(ard_kernel, widths=tuple(self.widths(values)))}

    def features_of_fit(self, X: Any, **values: Any) -> tuple[Any, dict[str, Any]]:
        """Return scaled features, on which the kernel is that of ``RBF(gamma=1)``."""
        return _scaled(X, np.sqrt(self.widths(values))), {"kernel": "rbf", "gamma": 1.0}

    def widths(self, values: Mapping[str, Any]) -> FloatArray:
        """Return the gamma of each column, shape (d,), from the values of all hyperparameters."""
        groups = self._bound_groups()
        columns, sizes = groups.order
        widths = np.empty(len(columns))
        widths[columns] = np.repeat([float(values[name]) for name in groups], sizes)
        return widths

    def _total(
        self,
        X: Any,
        blocks: Iterable[tuple[IndexArray, IndexArray, FloatArray, FloatArray]],
        values: Mapping[str, Any],
    ) -> dict[str, float]:
        """Return the derivatives from rows, columns, kernel values and weights, block by block."""
        X = about_mean(X)
        norms = squared_norms(_scaled(X, np.sqrt(self.widths(values))))

        def weighted() -> Iterator[WeightedPairs]:
            for rows, columns, K, weights in blocks:
                close = close_pairs(K, norms[rows], norms[columns])
                weights *= K
                yield WeightedPairs(rows, columns, weights, close)

        of_columns = weighted_squared_differences(X, weighted())
        groups = self._bound_groups()
        columns, sizes = groups.order
        sums = np.add.reduceat(of_columns[columns], np.cumsum(sizes) - sizes)
        return dict(zip(groups, (-sums).tolist(), strict=True))

    def _hyperparameters(self) -> dict[str, Any]:
        return dict(zip(self._bound_groups(), self.gamma, strict=True))

    def _bound_groups(self) -> "_Groups":
        """Return the columns of each group by the name of its hyperparameter."""
        if not isinstance(self.groups, _Groups):
            raise ValueError(
                "`ARD` must know the features before it has hyperparameters: use the `kernel` of a "
                "SpanObjective, or ARD().bind(X)."
            )
        return self.groups

    def _groups_of(self, count: int) -> "_Groups":
        """Return the columns of each group by the name of its hyperparameter, for d columns."""
        if self.columns is not None and len(self.columns) != count:
            raise ValueError(
                f"`columns` must name each of the {count} features, got {len(self.columns)} names."
            )
        labels: list[Any] = list(range(count) if self.columns is None else self.columns)
        if self.groups is None:
            given: list[tuple[Any, Any]] = []
        elif isinstance(self.groups, Mapping):
            given = list(self.groups.items())
        elif isinstance(self.groups, Sequence | np.ndarray) and not isinstance(self.groups, str):
            given = [(None, group) for group in self.groups]
        else:
            raise TypeError(f"`groups` must be a list of lists of columns, got {self.groups!r}.")
        places = {label: place for place, label in enumerate(labels)}
        found: list[tuple[Any, tuple[int, ...]]] = []
        taken: set[int] = set()
        for label, group in given:
            own = tuple(_place(column, places, count) for column in _listed(group))
            if not own:
                raise ValueError("`groups` must have at least one column in each, got none in one.")
            if len(set(own)) < len(own) or taken & set(own):
                twice = next(c for c in own if c in taken or own.count(c) > 1)
                raise ValueError(
                    f"`groups` must name each column once, got column {labels[twice]!r} twice."
                )
            taken |= set(own)
            found.append((labels[own[0]] if label is None else label, own))
        found += [(labels[place], (place,)) for place in range(count) if place not in taken]
        shown = [label for label, _ in found]
        self._check_names(shown)
        names = shown if isinstance(self.groups, _Groups) else names_of("gamma_", shown)
        return _Groups(zip(names, (own for _, own in found), strict=True))

    def _check_names(self, names: Sequence[Any]) -> None:
        """Raise if two widths would have one name."""
        if len(set(names)) == len(names):
            return
        twice, _ = Counter(names).most_common(1)[0]
        if self.groups is None:
            raise ValueError(
                f"`X` must have columns with different names for a width of each, got {twice!r} "
                "twice: rename one of them, or pass an array."
            )
        raise ValueError(
            "`groups` must have names that differ from each other and from those of all other "
            f"columns, got {twice!r} twice."
        )

    def _settings_of(self, names: tuple[str, ...], X: Any) -> tuple[Any, ...]:
        """Return the number or the dimension of each hyperparameter."""
        gamma = self.gamma
        if gamma is None:
            distances = squared_distances(some_rows(X))
            return (relative_to(RELATIVE_WIDTHS_OF_FEATURES, distances),) * len(names)
        if isinstance(gamma, Mapping):
            if set(gamma) != set(names):
                raise ValueError(f"`gamma` must name exactly {list(names)}, got {list(gamma)}.")
            settings = tuple(gamma[name] for name in names)
        elif isinstance(gamma, Sequence | np.ndarray) and not isinstance(gamma, str):
            settings = tuple(plain(list(gamma)))
            if len(settings) != len(names):
                raise ValueError(
                    f"`gamma` must have one entry for each of {len(names)} groups of features, got "
                    f"{len(settings)} entries."
                )
        else:
            settings = (gamma,) * len(names)
        for name, setting in zip(names, settings, strict=True):
            if as_dimension(setting) is None:
                self.check(name, setting)
        return settings


def ard_kernel(X: Any, Z: Any, widths: Sequence[float]) -> FloatArray:
    """Return ``exp(-sum_k widths_k (x_k - z_k)^2)`` for all pairs of rows of X and Z."""
    roots = np.sqrt(np.asarray(widths))
    return np.exp(-cross_squared_distances(_scaled(X, roots), _scaled(Z, roots)))


def _scaled(X: Any, factors: FloatArray) -> Any:
    """Return features whose columns are multiplied by these factors."""
    if not sparse.issparse(X):
        return X * factors
    scaled = sparse.csr_array(X, copy=True)
    scaled.data = scaled.data * factors[scaled.indices]
    return scaled


def _listed(group: Any) -> list[Any]:
    """Return the columns of one group as a list."""
    if isinstance(group, str) or not isinstance(group, Iterable):
        raise TypeError(f"`groups` must hold lists of columns, got {group!r}.")
    return [plain(column) for column in group]


def _place(column: Any, places: Mapping[Any, int], count: int) -> int:
    """Return the number of the column that a user names or numbers."""
    if isinstance(column, int) and not isinstance(column, bool) and 0 <= column < count:
        return column
    if isinstance(column, str) and column in places:
        return places[column]
    known = f"numbers from 0 to {count - 1}" + (" or names" if isinstance(column, str) else "")
    raise ValueError(f"`groups` must hold columns of `X`, {known}, got {column!r}.")
