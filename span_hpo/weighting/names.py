"""The words that stand for weightings, in Python and on the command line."""

from collections.abc import Callable
from typing import Any

from span_hpo.weighting.class_costs import ClassCosts, ImbalanceCost, UniformCost
from span_hpo.weighting.products import Weighting, is_weighting
from span_hpo.weighting.scores import PowerScore, SigmoidScore

# In a product, the classes have the costs, so that the rule for scores has the cost 1.
WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "class": ClassCosts,
    "uniform": UniformCost,
    "imbalance": ImbalanceCost,
    "sigmoid": SigmoidScore,
    "power": PowerScore,
    "class*sigmoid": lambda: ClassCosts() * SigmoidScore(C=1.0),
    "class*power": lambda: ClassCosts() * PowerScore(C=1.0),
}


def as_weighting(weighting: Any) -> Weighting:
    """Return the weighting that an argument stands for; by default one cost per class.

    Parameters
    ----------
    weighting
        A weighting, one of the words in `WEIGHTINGS`, or None.

    Raises
    ------
    TypeError, ValueError
        If the argument is not a weighting, or the word is unknown.
    """
    if weighting is None:
        return ClassCosts()
    if isinstance(weighting, str):
        if weighting not in WEIGHTINGS:
            raise ValueError(
                f"`weighting` must be one of {list(WEIGHTINGS)} or a weighting such as "
                f"ClassCosts(), got {weighting!r}."
            )
        return WEIGHTINGS[weighting]()
    if not is_weighting(weighting):
        raise TypeError(
            "`weighting` must have `space` and `costs(data, params)`, such as ClassCosts(), "
            f"got {weighting!r}."
        )
    found: Weighting = weighting
    return found
