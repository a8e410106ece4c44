"""The objective of every search: from hyperparameters to a leave-one-out loss."""

from span_hpo.objective.derivatives import ValueAndGradient
from span_hpo.objective.description import check_same
from span_hpo.objective.differentiable import followed_metric, with_derivatives
from span_hpo.objective.evaluation import CrossValidation, Evaluation, model_rank
from span_hpo.objective.left_out import left_out_rows, with_values
from span_hpo.objective.models import pair_values
from span_hpo.objective.radius_margin import L2Model, RadiusMargin
from span_hpo.objective.relevance import feature_relevance
from span_hpo.objective.rescaled import RescaledSVC, rescaled_svc
from span_hpo.objective.row_losses import MOST_TRIALS, TrialRows
from span_hpo.objective.span_objective import SpanObjective

__all__ = [
    "MOST_TRIALS",
    "CrossValidation",
    "Evaluation",
    "L2Model",
    "RadiusMargin",
    "RescaledSVC",
    "SpanObjective",
    "TrialRows",
    "ValueAndGradient",
    "check_same",
    "feature_relevance",
    "followed_metric",
    "left_out_rows",
    "model_rank",
    "pair_values",
    "rescaled_svc",
    "with_derivatives",
    "with_values",
]
