"""Provide estimators for scikit-learn that tune themselves."""

from span_hpo.estimators.all_rows import AllRows
from span_hpo.estimators.defaults import AUTO, default_weighting
from span_hpo.estimators.gradients import GradientSearch, searched_by_gradients
from span_hpo.estimators.leaks import depends_on_labels, steps_that_depend_on_labels
from span_hpo.estimators.learner import LEARNER_SPACE, LEARNER_START, learner_arguments
from span_hpo.estimators.loo_scorers import loo_loss, loo_scorer
from span_hpo.estimators.loo_svc import LooSVC
from span_hpo.estimators.plain import as_plain
from span_hpo.estimators.scaling import SCALES, fitted_scaler
from span_hpo.estimators.scaling_inside import ScaledRows, exact_evaluation
from span_hpo.estimators.search_cv import SpanSearchCV
from span_hpo.estimators.searches import sampler_seed
from span_hpo.estimators.span_svc import SpanSVC
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.estimators.svm_plus import SVMPlus, costs_from_svm_plus
from span_hpo.estimators.widths import kernel_of_columns, relevance_of_model

__all__ = [
    "AUTO",
    "LEARNER_SPACE",
    "LEARNER_START",
    "SCALES",
    "AllRows",
    "GradientSearch",
    "LooSVC",
    "SVCArguments",
    "SVMPlus",
    "ScaledRows",
    "SpanSVC",
    "SpanSearchCV",
    "as_plain",
    "costs_from_svm_plus",
    "default_weighting",
    "depends_on_labels",
    "exact_evaluation",
    "fitted_scaler",
    "kernel_of_columns",
    "learner_arguments",
    "loo_loss",
    "loo_scorer",
    "relevance_of_model",
    "sampler_seed",
    "searched_by_gradients",
    "steps_that_depend_on_labels",
]
