"""Central differences, with which the tests compare derivatives."""

import numpy as np

from span_hpo.solver import PairwiseSolution


def central_differences(function, params, names=None, *, step=1e-4, relative=True):
    """Return the derivatives of ``function(params)`` by the named parameters.

    Two steps are combined so that the error is of fourth order (Richardson). Steps are relative to
    the parameters, as in their logarithms, or absolute.
    """
    found = {}
    for name in params if names is None else names:
        slopes = []
        for factor in (1.0, 2.0):
            size = factor * step * (abs(params[name]) if relative and params[name] else 1.0)
            ends = [function({**params, name: params[name] + sign * size}) for sign in (1, -1)]
            slopes.append((ends[0] - ends[1]) / (2 * size))
        found[name] = (4 * slopes[0] - slopes[1]) / 3
    return found


def kinds(solution):
    """Return which rows are in-bound and which are bounded, in all pairs of classes."""
    fits = solution.solutions if isinstance(solution, PairwiseSolution) else [solution]
    masks = [mask for fit in fits for mask in (fit.in_bound, fit.bounded)]
    return np.concatenate(masks).tobytes()


def is_smooth_at(objective, params, names=None, *, step=1e-4):
    """Tell whether no row changes its kind over the steps of `central_differences`."""
    here = kinds(objective.solution(params))
    for name in params if names is None else names:
        size = 2 * step * (abs(params[name]) or 1.0)
        for sign in (1, -1):
            there = {**params, name: params[name] + sign * size}
            if kinds(objective.solution(there)) != here:
                return False
    return True


def differences_of(objective, params, names=None, *, step=1e-4, rows=None):
    """Return central differences of the loss of an evaluation."""

    def loss(there):
        return objective.evaluate(there, rows, certify=False).loss

    return central_differences(loss, params, names, step=step)


def assert_gradients_agree(found, expected, tolerance=2e-5, floor=1e-12):
    """Fail if derivatives differ by more than a share of the largest, each by ``ln t``."""
    assert list(found) == list(expected)
    one, other = np.array(list(found.values())), np.array(list(expected.values()))
    assert np.abs(one - other).max() <= tolerance * max(np.abs(other).max(), floor)
