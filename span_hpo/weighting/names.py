"""The words that stand for weightings, in Python and on the command line."""

import functools
from collections.abc import Callable
from typing import Any

from span_hpo.weighting.class_costs import ClassCosts, ImbalanceCost, UniformCost
from span_hpo.weighting.confidence import LabelConfidence
from span_hpo.weighting.group_costs import GroupCosts
from span_hpo.weighting.knots import KnotScore
from span_hpo.weighting.products import ComposableWeighting, Weighting, is_weighting
from span_hpo.weighting.scores import PowerScore, SigmoidScore


def times_classes(rule: Callable[..., ComposableWeighting]) -> Weighting:
    """Return the product of class costs and a rule for single rows."""
    return ClassCosts() * rule(C=1.0)


# Rules for single rows. In a product, the classes have the costs, so that the rule has the cost 1.
ROW_RULES: dict[str, Callable[..., ComposableWeighting]] = {
    "sigmoid": SigmoidScore,
    "power": PowerScore,
    "knots": KnotScore,
    "groups": GroupCosts,
    "confidence": LabelConfidence,
}
WEIGHTINGS: dict[str, Callable[[], Weighting]] = {
    "class": ClassCosts,
    "uniform": UniformCost,
    "imbalance": ImbalanceCost,
    **ROW_RULES,
    **{f"class*{word}": functools.partial(times_classes, rule) for word, rule in ROW_RULES.items()},
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
