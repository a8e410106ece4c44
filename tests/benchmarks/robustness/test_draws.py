"""Random parts of problems."""

import numpy as np

from benchmarks.robustness.draws import (
    blob_rows,
    costs_of,
    labels_of,
    random_labels,
    size,
    with_both_classes,
)


def test_labels_have_both_classes():
    """Whatever is drawn, a fit is possible."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for y in (
            random_labels(rng, 3),
            labels_of(rng, np.zeros(4), 0.0),
            blob_rows(rng, 2)[1],
            with_both_classes(np.ones(2)),
        ):
            assert set(y) == {-1.0, 1.0}


def test_costs_are_within_their_range():
    """Costs are powers of ten between the two exponents."""
    for seed in range(30):
        costs = costs_of(np.random.default_rng(seed), np.array([1.0, -1.0, 1.0]), -2, 1)
        assert costs.shape == (3,)
        assert ((costs >= 0.01) & (costs <= 10.0)).all()


def test_large_problems_are_rare_and_asked_for():
    """Sizes are between low and high, and some are large where that is wanted."""
    rng = np.random.default_rng(0)
    assert max(size(rng, 4, 9) for _ in range(500)) == 9
    large = [size(rng, 4, 9, large=True) > 9 for _ in range(2_000)]
    assert 10 < sum(large) < 100
