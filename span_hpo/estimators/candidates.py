"""Read what a search may try, and make the candidates of a grid or of a random search."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, ParameterSampler
from sklearn.utils import check_random_state

from span_hpo.runtime import plain, whole
from span_hpo.space import Choice, Dimension, Float, Int, Params, Space, as_dimension

_LARGEST_SEED = 2**31 - 1
_SAME = 1e-9  # relative difference of two medians that is rounding
_TAIL = 2.0**-20  # quantiles closer to 0 and 1 are not drawn, because they may be infinite


@dataclass(frozen=True)
class DrawnSpace:
    """What a sampler draws from, and how what it draws becomes a candidate.

    Attributes
    ----------
    dimensions
        Dimension of every hyperparameter, by name.
    quantiles
        Distributions of scipy of which the dimension holds the quantile, by name.
    """

    dimensions: Space
    quantiles: Mapping[str, Any]

    @classmethod
    def of(cls, distributions: Mapping[str, Any]) -> "DrawnSpace":
        """Return the space of checked distributions.

        A log-uniform or uniform distribution of scipy and ``randint`` become a `Float` or `Int`.
        Any other distribution is drawn by its quantile, which is uniform.
        """
        dimensions: dict[str, Dimension] = {}
        quantiles = {}
        for name, given in distributions.items():
            if hasattr(given, "rvs"):
                known = _dimension_of_scipy(given)
                if known is None:
                    quantiles[name] = given
                dimensions[name] = Float(_TAIL, 1 - _TAIL) if known is None else known
            else:
                dimension = as_dimension(given)
                dimensions[name] = Choice(list(given)) if dimension is None else dimension
        return cls(dimensions, quantiles)

    def candidate(self, params: Params) -> dict[str, Any]:
        """Return the candidate that a sampler has drawn, with values in place of quantiles."""
        return {name: self.value(name, drawn) for name, drawn in params.items()}

    def value(self, name: str, drawn: Any) -> Any:
        """Return the value of a hyperparameter that a sampler has drawn."""
        if name not in self.quantiles:
            return drawn
        value = plain(self.quantiles[name].ppf(drawn))
        return int(value) if hasattr(self.quantiles[name], "pmf") else value


def checked_distributions(param_distributions: Any, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return what is searched as a list of dictionaries, after checking it.

    Parameters
    ----------
    param_distributions
        Dictionary from names to lists or distributions, or a list of such dictionaries.
    names
        Names of all parameters of the estimator.

    Raises
    ------
    TypeError, ValueError
        If something else is given, a name is unknown, or a list is empty.
    """
    is_one = isinstance(param_distributions, Mapping)
    if not is_one and not isinstance(param_distributions, list | tuple):
        raise TypeError(
            "`param_distributions` must be a dictionary from names to lists or distributions, or a "
            f"list of such dictionaries, got {param_distributions!r}."
        )
    parts = [param_distributions] if is_one else list(param_distributions)
    if not parts:
        raise ValueError(
            "`param_distributions` must have at least one dictionary, because an empty list has no "
            "candidates."
        )
    for part in parts:
        if not isinstance(part, Mapping):
            raise TypeError(
                "`param_distributions` must hold dictionaries from names to lists or "
                f"distributions, got {part!r} in the list."
            )
        for name, given in part.items():
            _check_name(name, part, names)
            _check_values(name, given)
    return [dict(part) for part in parts]


def grid_candidates(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return all combinations of the values, in the order of scikit-learn's ``ParameterGrid``.

    Raises
    ------
    ValueError
        If there is a distribution, which has no list of values.
    """
    for part in parts:
        for name, given in part.items():
            if _is_distribution(given):
                raise ValueError(
                    f"`param_distributions` must have lists of values for search='grid', got "
                    f"{_shown(given)} for {name!r}. Use search='random' or 'tpe' for it."
                )
    return list(ParameterGrid([dict(part) for part in parts]))


def combinations(parts: Sequence[Mapping[str, Any]]) -> float:
    """Return the number of combinations of all values; infinity if there is a distribution."""
    if any(_is_distribution(given) for part in parts for given in part.values()):
        return math.inf
    return len(ParameterGrid([dict(part) for part in parts]))


def random_candidates(
    parts: Sequence[Mapping[str, Any]], n_iter: int, random_state: Any
) -> list[dict[str, Any]]:
    """Return the candidates that scikit-learn's ``RandomizedSearchCV`` would try.

    Parameters
    ----------
    parts
        Checked dictionaries of lists and distributions.
    n_iter
        Number of candidates; fewer if there are only lists, and these have fewer combinations.
    random_state
        Random state or seed, as of ``RandomizedSearchCV``.
    """
    drawn = [
        {name: given if as_dimension(given) is None else _Drawn(given) for name, given in p.items()}
        for p in parts
    ]
    with warnings.catch_warnings():
        # A list that is too short for so many candidates is tried in full.
        warnings.filterwarnings("ignore", "The total space of parameters", UserWarning)
        return list(ParameterSampler(drawn, n_iter, random_state=random_state))


def drawn_space(parts: Sequence[Mapping[str, Any]], search: str) -> DrawnSpace:
    """Return the space that a sampler of Optuna draws from.

    Raises
    ------
    ValueError
        If there are several dictionaries, or a distribution has no quantiles.
    """
    if len(parts) > 1:
        raise ValueError(
            f"`param_distributions` must be one dictionary for search={search!r}, got a list of "
            f"{len(parts)}. Use search='grid' or 'random' for it."
        )
    for name, given in parts[0].items():
        if hasattr(given, "rvs") and not hasattr(given, "ppf"):
            raise ValueError(
                f"`param_distributions` must have distributions with a method `ppf` for "
                f"search={search!r}, got {_shown(given)} for {name!r}. Use search='random' for it."
            )
    return DrawnSpace.of(parts[0])


def checked_n_iter(n_iter: Any) -> int:
    """Return the number of candidates, or raise if it is not a whole number of at least 1."""
    return whole("n_iter", n_iter, at_least=1)


class _Drawn:
    """A dimension with the method that scikit-learn wants of a distribution."""

    def __init__(self, given: Any) -> None:
        dimension = as_dimension(given)
        assert dimension is not None
        self.dimension = dimension

    def rvs(self, random_state: Any = None) -> Any:
        """Return one value."""
        seed = check_random_state(random_state).randint(_LARGEST_SEED)
        return self.dimension.sample(np.random.default_rng(seed))


def _dimension_of_scipy(distribution: Any) -> Dimension | None:
    """Return the dimension that a frozen distribution of scipy describes, if there is one."""
    name = getattr(getattr(distribution, "dist", None), "name", None)
    low, high = plain(distribution.support()[0]), plain(distribution.support()[1])
    if name == "randint":
        return Int(int(low), int(high))
    median = float(distribution.ppf(0.5))
    if name == "uniform":
        return Float(low, high)
    # A log-uniform distribution that is shifted is none any more.
    if name in ("loguniform", "reciprocal") and low > 0:
        is_log = math.isclose(median, math.sqrt(low * high), rel_tol=_SAME)
        return Float(low, high, log=True) if is_log else None
    return None


def _check_name(name: Any, part: Mapping[str, Any], names: Sequence[str]) -> None:
    """Raise if the estimator has no such parameter, and no step that is searched may have it."""
    if not isinstance(name, str):
        raise TypeError(f"`param_distributions` must have names as keys, got {name!r}.")
    step, separator, _ = name.partition("__")
    if name in names or (separator and step in part):
        return
    near = [known for known in names if known.lower() == name.lower()]
    near += [known for known in names if known.endswith(f"__{name}") and known not in near]
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise ValueError(
        f"`param_distributions` must name parameters of the estimator, got {name!r}.{hint} Its "
        "method `get_params` lists them."
    )


def _check_values(name: str, given: Any) -> None:
    if _is_distribution(given):
        return
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list and not (isinstance(given, np.ndarray) and given.ndim == 1):
        raise TypeError(
            "`param_distributions` must have a list of values or a distribution for each name, got "
            f"{given!r} for {name!r}."
        )
    if len(given) == 0:
        raise ValueError(
            f"`param_distributions` must have at least one value for {name!r}, got none."
        )


def _is_distribution(given: Any) -> bool:
    return hasattr(given, "rvs") or as_dimension(given) is not None


def _shown(given: Any) -> str:
    name = getattr(getattr(given, "dist", None), "name", None)
    return f"scipy's {name}" if isinstance(name, str) else repr(given)
