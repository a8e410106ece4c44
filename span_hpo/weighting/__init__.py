"""Weightings, which are rules that turn what is known about the rows into costs."""

from span_hpo.weighting.class_costs import (
    BALANCE_RANGE,
    COST_RANGE,
    ClassCosts,
    ImbalanceCost,
    UniformCost,
    balanced_weights,
)
from span_hpo.weighting.confidence import LabelConfidence
from span_hpo.weighting.group_costs import GroupCosts
from span_hpo.weighting.knots import KnotScore
from span_hpo.weighting.names import ROW_RULES, WEIGHTINGS, as_weighting
from span_hpo.weighting.products import (
    ComposableWeighting,
    Weighting,
    bind_to,
    cost_gradient,
    legend_of,
    sample_costs,
    starts_of,
    uses_features,
)
from span_hpo.weighting.scores import PowerScore, SigmoidScore

__all__ = [
    "BALANCE_RANGE",
    "COST_RANGE",
    "ROW_RULES",
    "WEIGHTINGS",
    "ClassCosts",
    "ComposableWeighting",
    "GroupCosts",
    "ImbalanceCost",
    "KnotScore",
    "LabelConfidence",
    "PowerScore",
    "SigmoidScore",
    "UniformCost",
    "Weighting",
    "as_weighting",
    "balanced_weights",
    "bind_to",
    "cost_gradient",
    "legend_of",
    "sample_costs",
    "starts_of",
    "uses_features",
]
