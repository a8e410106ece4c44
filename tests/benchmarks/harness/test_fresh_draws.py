"""Problems that benchmarks draw."""

import numpy as np
import pytest

from benchmarks.harness.fresh_draws import DISTRIBUTIONS, N_TEST, fresh_draw


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_a_draw_is_its_number(name):
    """The same number gives the same rows, another one others, with the share that is asked for."""
    draw, again, other = (fresh_draw(name, 60, seed, share=0.25) for seed in (0, 0, 1))
    np.testing.assert_array_equal(draw.X_train, again.X_train)
    np.testing.assert_array_equal(draw.X_test, again.X_test)
    assert (draw.X_train != other.X_train).any()
    assert draw.y_train.sum() == 15
    assert draw.y_test.sum() == N_TEST // 4
    assert len(draw.X_test) == N_TEST


@pytest.mark.parametrize("name", DISTRIBUTIONS)
def test_training_and_test_rows_have_one_distribution(name):
    """The means of each class differ by chance only, in units of their standard errors."""
    draw = fresh_draw(name, 2000, 3)
    for label in (0, 1):
        one, two = draw.X_train[draw.y_train == label], draw.X_test[draw.y_test == label]
        error = np.sqrt(one.var(axis=0) / len(one) + two.var(axis=0) / len(two))
        assert (np.abs(one.mean(axis=0) - two.mean(axis=0)) < 5 * error + 1e-9).all()
