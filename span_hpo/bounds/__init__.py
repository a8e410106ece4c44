"""Bounds and estimates of the leave-one-out error from one fit, and radius-margin values."""

from span_hpo.bounds.ball import EnclosingBall, enclosing_ball
from span_hpo.bounds.classical import (
    jaakkola_haussler,
    opper_winther,
    own_span_bound,
    span_bound,
    support_vectors,
    xi_alpha,
)
from span_hpo.bounds.derivatives import (
    BoundDerivatives,
    l2_radius_margin_derivatives,
    smooth_radius_margin_derivatives,
)
from span_hpo.bounds.l2_svm import (
    L2Solution,
    l2_ball,
    l2_distance_bound,
    l2_radius_margin,
    l2_slack_bound,
    l2_solution,
)
from span_hpo.bounds.radius_margin import (
    diameter_slack_bound,
    radius_cost_bound,
    radius_margin,
    radius_slack_bound,
    smooth_radius_margin,
)
from span_hpo.bounds.rescaling import rescaled_radius_margin

__all__ = [
    "BoundDerivatives",
    "EnclosingBall",
    "L2Solution",
    "diameter_slack_bound",
    "enclosing_ball",
    "jaakkola_haussler",
    "l2_ball",
    "l2_distance_bound",
    "l2_radius_margin",
    "l2_radius_margin_derivatives",
    "l2_slack_bound",
    "l2_solution",
    "opper_winther",
    "own_span_bound",
    "radius_cost_bound",
    "radius_margin",
    "radius_slack_bound",
    "rescaled_radius_margin",
    "smooth_radius_margin",
    "smooth_radius_margin_derivatives",
    "span_bound",
    "support_vectors",
    "xi_alpha",
]
