"""Weightings, which are rules that turn what is known about the rows into costs."""

from span_hpo.weighting.class_costs import COST_RANGE, ClassCosts, UniformCost
from span_hpo.weighting.products import (
    ComposableWeighting,
    Weighting,
    bind_to,
    is_weighting,
    sample_costs,
    starts_of,
)
from span_hpo.weighting.scores import PowerScore, SigmoidScore

__all__ = [
    "COST_RANGE",
    "ClassCosts",
    "ComposableWeighting",
    "PowerScore",
    "SigmoidScore",
    "UniformCost",
    "Weighting",
    "bind_to",
    "is_weighting",
    "sample_costs",
    "starts_of",
]
