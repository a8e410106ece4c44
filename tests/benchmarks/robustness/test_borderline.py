"""Problems that lie on a border."""

import numpy as np
import pytest

from benchmarks.robustness.borderline import boundary, degenerate, edges, indefinite
from benchmarks.robustness.reference import leave_one_out_margins, offset_interval, solve_dual


def of_full_fit(instance):
    """Return beta and the margins of the fit of all rows."""
    K, y, costs = instance.K, instance.y, instance.costs
    beta = solve_dual(K, y, costs, np.zeros(len(y)))
    low, high = offset_interval(y, costs, beta, K @ beta)
    return beta, y * (K @ beta + (low + high) / 2)


def instances(make, count=12):
    """Return the first problems of a family."""
    return [make(np.random.default_rng(number), number) for number in range(count)]


def test_rows_on_the_boundary_have_tiny_margins():
    """In most problems, the fit without some row is nearly 0 at that row."""
    found = [
        np.abs(leave_one_out_margins(made.K, made.y, made.costs).margins).min()
        for made in instances(boundary)
    ]
    assert np.median(found) < 1e-3


def test_degenerate_rows_are_at_the_margin():
    """Many rows have y f = 1 without being support vectors in earnest."""
    close = 0
    for made in instances(degenerate):
        beta, margins = of_full_fit(made)
        close += np.count_nonzero((np.abs(margins - 1) < 1e-3) & (np.abs(beta) < 1e-2))
    assert close >= 6


def test_edges_put_dual_variables_next_to_their_costs():
    """Some dual variables nearly reach their cost."""
    close = 0
    for made in instances(edges):
        alpha = np.abs(of_full_fit(made)[0])
        close += np.count_nonzero((alpha > 0) & (alpha > made.costs * (1 - 1e-3)))
    assert close >= 6


@pytest.mark.parametrize("number", range(4))
def test_indefinite_matrices_are_barely_so(number):
    """The least eigenvalue is at least -1e-10 of the largest."""
    made = indefinite(np.random.default_rng(number), number)
    values = np.linalg.eigvalsh(made.K)
    assert values[0] >= -1.1e-10 * values[-1]
