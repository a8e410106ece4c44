import math

import pytest

from span_hpo.search.limits import wanted_trials


def test_a_search_has_a_limit():
    """A number of trials or a time suffices, and without both the message asks for one."""
    assert wanted_trials(5, None) == wanted_trials(5, 1.0) == 5
    assert wanted_trials(None, 1) == math.inf
    with pytest.raises(
        ValueError, match=r"`n_trials` must be .* if there is no `timeout`, got None\. Give one"
    ):
        wanted_trials(None, None)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ((0, None), "`n_trials` must be a whole number of at least 1, got 0"),
        ((2.5, 1.0), "`n_trials` must be a whole number of at least 1, got 2.5"),
        ((5, 0), "`timeout` must be a finite number above 0, got 0"),
        ((None, "1 h"), "`timeout` must be a finite number above 0, got '1 h'"),
        ((None, math.inf), "`timeout` must be a finite number above 0, got inf"),
    ],
)
def test_wrong_limits_are_named(limits, message):
    """A limit that no search can keep is refused by name."""
    with pytest.raises(ValueError, match="must be") as caught:
        wanted_trials(*limits)
    assert message in str(caught.value)
