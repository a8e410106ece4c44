"""Estimators of scikit-learn that tune themselves."""

from span_hpo.estimators.scaling import SCALES, fitted_scaler
from span_hpo.estimators.span_svc import SpanSVC, sampler_seed

__all__ = ["SCALES", "SpanSVC", "fitted_scaler", "sampler_seed"]
