"""Provide estimators for scikit-learn that tune themselves."""

from span_hpo.estimators.learner import LEARNER_SPACE, LEARNER_START, learner, loo_loss
from span_hpo.estimators.scaling import fitted_scaler
from span_hpo.estimators.span_svc import SpanSVC, sampler_seed

__all__ = [
    "LEARNER_SPACE",
    "LEARNER_START",
    "SpanSVC",
    "fitted_scaler",
    "learner",
    "loo_loss",
    "sampler_seed",
]
