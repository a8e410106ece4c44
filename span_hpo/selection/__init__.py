"""What all trials of a search say together, such as an honest estimate of the chosen loss.

The decision values at which predictions switch are also chosen here.
"""

from span_hpo.selection.bootstrap import binomial_interval, bootstrap_counts
from span_hpo.selection.ensembles import (
    MOST_CANDIDATES,
    class_errors,
    decision_values,
    greedy_counts,
    mean_probabilities,
    members_of,
    own_probabilities,
)
from span_hpo.selection.honest import (
    FEW_TRIALS,
    LEVEL,
    HonestEstimate,
    chosen_trials,
    honest_estimate,
    out_of_bag_losses,
    percentile_interval,
)
from span_hpo.selection.honest_ensembles import (
    ENSEMBLE_LOSSES,
    greedy_samples,
    honest_ensemble,
    ranked_candidates,
)
from span_hpo.selection.members import LOG_ODDS, Ensemble, ensemble_of
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
    "ENSEMBLE_LOSSES",
    "FEW_TRIALS",
    "LEVEL",
    "LOG_ODDS",
    "MOST_CANDIDATES",
    "PATIENCE",
    "UNMOVED",
    "Ensemble",
    "HonestEstimate",
    "LossTable",
    "best_threshold",
    "binomial_interval",
    "bootstrap_counts",
    "check_is_mean",
    "chosen_trials",
    "class_errors",
    "class_share",
    "cost_loss",
    "cost_probability",
    "decision_values",
    "ensemble_of",
    "greedy_counts",
    "greedy_samples",
    "honest_ensemble",
    "honest_estimate",
    "honest_estimate_of",
    "honest_estimate_of_rows",
    "is_settled",
    "mean_probabilities",
    "members_of",
    "out_of_bag_losses",
    "own_probabilities",
    "percentile_interval",
    "ranked_candidates",
    "shifted",
    "threshold_at",
    "trials_since_best",
]
