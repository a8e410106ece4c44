"""Four rows with a score, and their costs."""

import numpy as np

from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to, sample_costs

X = np.arange(8.0).reshape(4, 2)
Q = np.array([0.0, 0.25, 0.5, 1.0])
DATA = as_dataset(X, [-1, 1, -1, 1], scores=Q)


def costs(weighting, params=None, data=DATA):
    return sample_costs(bind_to(weighting, data), data, params or {})
