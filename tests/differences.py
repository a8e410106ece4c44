"""Central differences, with which the tests compare derivatives."""

import itertools

import numpy as np

from span_hpo.solver import PairwiseSolution


def central_differences(function, params, names=None, *, steps=(1e-4,)):
    """Return the derivatives of ``function(params)`` by the named parameters.

    A step and its double are combined so that the error is of fourth order (Richardson). Of several
    steps, in falling order, the two neighbours that agree best decide. Steps are relative to the
    parameters, as in their logarithms, and absolute for a parameter of 0.
    """
    found = {}
    for name in params if names is None else names:
        slopes = [_slope(function, params, name, step) for step in steps]
        gaps = [abs(one - other) for one, other in itertools.pairwise(slopes)]
        found[name] = slopes[int(np.argmin(gaps)) + 1] if gaps else slopes[0]
    return found


def _slope(function, params, name, step):
    size = step * (abs(params[name]) or 1.0)
    near, far = (
        [function({**params, name: params[name] + sign * factor * size}) for sign in (1, -1)]
        for factor in (1, 2)
    )
    return (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * size)


def kinds(solution):
    """Return which rows are in-bound and which are bounded, in all pairs of classes."""
    fits = solution.solutions if isinstance(solution, PairwiseSolution) else [solution]
    masks = [mask for fit in fits for mask in (fit.in_bound, fit.bounded)]
    return np.concatenate(masks).tobytes()


def is_smooth_at(objective, params, names=None, *, steps=(1e-4,)):
    """Tell whether no row changes its kind over the steps of `central_differences`."""
    here = kinds(objective.solution(params))
    for name in params if names is None else names:
        size = 2 * max(steps) * (abs(params[name]) or 1.0)
        for sign in (1, -1):
            there = {**params, name: params[name] + sign * size}
            if kinds(objective.solution(there)) != here:
                return False
    return True


def differences_of(objective, params, names=None, *, steps=(1e-4,), rows=None):
    """Return central differences of the loss of an evaluation."""

    def loss(there):
        return objective.evaluate(there, rows, certify=False).loss

    return central_differences(loss, params, names, steps=steps)


def assert_gradients_agree(found, expected, tolerance=2e-5, floor=1e-12):
    """Fail if derivatives differ by more than a share of the largest, each by ``ln t``."""
    assert list(found) == list(expected)
    one, other = np.array(list(found.values())), np.array(list(expected.values()))
    assert np.abs(one - other).max() <= tolerance * max(np.abs(other).max(), floor)
