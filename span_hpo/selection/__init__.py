"""What all trials of a search say together, such as an honest estimate of the chosen loss."""

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
from span_hpo.selection.trials import check_is_mean, honest_estimate_of

__all__ = [
    "FEW_TRIALS",
    "LEVEL",
    "PATIENCE",
    "HonestEstimate",
    "LossTable",
    "binomial_interval",
    "bootstrap_counts",
    "check_is_mean",
    "chosen_trials",
    "honest_estimate",
    "honest_estimate_of",
    "is_settled",
    "out_of_bag_losses",
    "percentile_interval",
    "trials_since_best",
]
