"""What all trials of a search say together, and the decision values at which predictions switch."""

from span_hpo.selection.thresholds import (
    COUNTED,
    UNMOVED,
    best_threshold,
    class_share,
    cost_loss,
    cost_probability,
    shifted,
    threshold_at,
)

__all__ = [
    "COUNTED",
    "UNMOVED",
    "best_threshold",
    "class_share",
    "cost_loss",
    "cost_probability",
    "shifted",
    "threshold_at",
]
