"""Four rows with a score, and their costs."""

import numpy as np

from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, cost_gradient, sample_costs
from tests.differences import assert_gradients_agree, central_differences

X = np.arange(8.0).reshape(4, 2)
Q = np.array([0.0, 0.25, 0.5, 1.0])
DATA = as_dataset(X, [-1, 1, -1, 1], scores=Q)


def costs(weighting, params=None, data=DATA):
    return sample_costs(bind_to(weighting, data), data, params or {})


def assert_gradient_is_right(weighting, params, data=DATA):
    """Compare the derivatives of a weighted sum of costs with central differences."""
    bound = bind_to(weighting, data)
    weights = np.random.default_rng(0).normal(size=len(data))
    expected = central_differences(
        lambda there: weights @ sample_costs(bound, data, there), params, list(bound.space)
    )
    assert_gradients_agree(cost_gradient(bound, data, params, weights), expected, 1e-9)
