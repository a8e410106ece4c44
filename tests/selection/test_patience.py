import numpy as np
import pytest

from span_hpo.selection.patience import PATIENCE, is_settled, trials_since_best


def by_running_minimum(losses):
    """Return the trials after the first place of the minimum, counted in another way."""
    values = np.array([np.inf if loss is None else loss for loss in losses])
    if not np.isfinite(values).any():
        return 0
    return len(values) - 1 - int(np.argmin(values))


@pytest.mark.parametrize("seed", range(20))
def test_the_count_begins_at_the_first_least_loss(seed):
    """On sequences with ties and trials without a loss, the count is that after the minimum."""
    rng = np.random.default_rng(seed)
    losses = [None if rng.random() < 0.3 else float(rng.integers(5)) for _ in range(60)]
    for n_trials in range(61):
        assert trials_since_best(losses[:n_trials]) == by_running_minimum(losses[:n_trials])


def test_a_search_that_has_found_nothing_has_not_settled():
    """Without any loss there is nothing to keep, however many trials have been pruned."""
    assert not is_settled([None] * 1000, patience=1)
    assert not is_settled([], patience=1)
    assert is_settled([None] * 1000 + [0.5] + [None] * 3, patience=3)


def test_ties_are_no_progress_and_any_lower_loss_is():
    """Equal losses settle a search, and the smallest step down does not."""
    assert is_settled([0.1] * (PATIENCE + 1))
    assert not is_settled([0.1] * PATIENCE)
    down = np.nextafter(0.1, 0)
    assert not is_settled([*[0.1] * (PATIENCE + 1), down])
