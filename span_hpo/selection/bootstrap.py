"""Bootstrap samples of rows, and the interval of a share of errors."""

from collections.abc import Iterator

import numpy as np
from scipy.stats import beta

from span_hpo.runtime import FloatArray

BLOCK = 1_000_000  # numbers in one block of a large array


def bootstrap_counts(n_rows: int, n_resamples: int, seed: int) -> Iterator[FloatArray]:
    """Yield how often each row is in each of some samples, in blocks of shape (b, n_rows).

    A sample has as many rows as there are, drawn with replacement, so that about 37 % of the rows
    are out of the bag: their count is 0.
    """
    rng = np.random.default_rng(seed)
    most = max(1, BLOCK // n_rows)
    for begin in range(0, n_resamples, most):
        size = min(most, n_resamples - begin)
        drawn = rng.integers(n_rows, size=(size, n_rows))
        drawn += n_rows * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n_rows)
        yield counts.reshape(size, n_rows).astype(float)


def binomial_interval(errors: float, trials: int, level: float) -> tuple[float, float]:
    """Return the interval of Clopper and Pearson for a share of errors.

    Parameters
    ----------
    errors, trials
        Numbers of errors and of trials. The first need not be whole.
    level
        Share of such intervals that hold the true share, at least.
    """
    tail = (1 - level) / 2
    low = float(beta.ppf(tail, errors, trials - errors + 1)) if errors > 0 else 0.0
    high = float(beta.ppf(1 - tail, errors + 1, trials - errors)) if errors < trials else 1.0
    return low, high
