"""Problems in which a few of many features matter."""

import numpy as np
from scipy import sparse

RELEVANT = (3, 8)


def two_of_twelve(count=150, seed=0, noise=0.0):
    """Return rows whose class is the side of a circle in features 3 and 8, and ten others."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (count, 12))
    radius = X[:, RELEVANT[0]] ** 2 + X[:, RELEVANT[1]] ** 2
    y = np.where(radius + noise * rng.normal(size=count) < 0.6, 1, 0)
    return X, y


def thinned(X, share=0.5, seed=0):
    """Return rows in which a share of the entries is 0, in compressed form."""
    rng = np.random.default_rng(seed)
    return sparse.csr_array(np.where(rng.random(X.shape) < share, 0.0, X))
