"""Check the limits of a search: a number of trials, a time, or both."""

import math

from span_hpo.runtime import ArgumentError, real, whole


def wanted_trials(n_trials: int | None, timeout: float | None) -> float:
    """Return the number of trials to finish, which is infinity if only the time is limited.

    Parameters
    ----------
    n_trials
        Number of trials, or None.
    timeout
        Seconds after which the search ends, or None.

    Raises
    ------
    ArgumentError
        If a limit is not a positive number, or there is none.
    """
    if timeout is not None:
        real("timeout", timeout, above=0)
    elif n_trials is None:
        raise ArgumentError(
            "n_trials",
            "must be a whole number of at least 1 if there is no `timeout`, got None. Give one of "
            "the two, so that the search ends.",
        )
    return math.inf if n_trials is None else whole("n_trials", n_trials, at_least=1)
