"""What all trials of a search say together, such as an honest estimate of the chosen loss.

The decision values at which predictions switch are also chosen here.
"""

from span_hpo.selection.bootstrap import binomial_interval, bootstrap_counts
from span_hpo.selection.honest import (
    FEW_TRIALS,
    LEVEL,
    HonestEstimate,
    chosen_trials,
    honest_estimate,
    out_of_bag_losses,
    percentile_interval,
)
from span_hpo.selection.patience import PATIENCE, is_settled, trials_since_best
from span_hpo.selection.tables import LossTable
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
from span_hpo.selection.trials import check_is_mean, honest_estimate_of, honest_estimate_of_rows

__all__ = [
    "COUNTED",
    "FEW_TRIALS",
    "LEVEL",
    "PATIENCE",
    "UNMOVED",
    "HonestEstimate",
    "LossTable",
    "best_threshold",
    "binomial_interval",
    "bootstrap_counts",
    "check_is_mean",
    "chosen_trials",
    "class_share",
    "cost_loss",
    "cost_probability",
    "honest_estimate",
    "honest_estimate_of",
    "honest_estimate_of_rows",
    "is_settled",
    "out_of_bag_losses",
    "percentile_interval",
    "shifted",
    "threshold_at",
    "trials_since_best",
]
