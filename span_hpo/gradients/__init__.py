"""Derivatives of leave-one-out losses by hyperparameters, backwards through one fit."""

from span_hpo.gradients.continuous import continuous_derivatives, continuous_values
from span_hpo.gradients.derivatives import Derivatives, NoGradientError
from span_hpo.gradients.pull_back import pulled_back

__all__ = [
    "Derivatives",
    "NoGradientError",
    "continuous_derivatives",
    "continuous_values",
    "pulled_back",
]
