"""Draw points with any sampler, and then follow gradients from the best of them."""

from span_hpo.integrations.optuna import GradientSampler, store_gradient, wants_gradient

__all__ = ["GradientSampler", "store_gradient", "wants_gradient"]
