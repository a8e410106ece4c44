"""Every small problem, up to symmetry."""

from itertools import permutations, product

import numpy as np
import pytest

from benchmarks.robustness.exhaustive import (
    PATTERNS,
    exhaustive_instance,
    n_problems,
    representatives,
)


def images(rows):
    """Yield what symmetries of the square and swapped labels make of rows (a, b, label)."""
    for turned, first, second, swap in product((0, 1), (-1, 1), (-1, 1), (-1, 1)):
        yield tuple(
            (first * (b if turned else a), second * (a if turned else b), swap * label)
            for a, b, label in rows
        )


def n_orbits(count, pattern):
    """Count problems by brute force: each one removes all that are symmetric to it."""
    kinds = list(product((-1, 0, 1), (-1, 0, 1), (-1, 1)))
    left = {rows for rows in product(kinds, repeat=count) if len({row[2] for row in rows}) == 2}
    found = 0
    while left:
        rows = next(iter(left))
        found += 1
        for image in images(rows):
            if pattern == "class" and image[0][2] != rows[0][2]:
                continue
            left -= {image} if pattern == "row" else set(permutations(image))
    return found


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("count", [2, 3])
def test_the_number_of_problems_is_that_of_brute_force(count, pattern):
    """Orbits of two and three rows are counted by removing what is symmetric."""
    assert len(representatives(count, pattern)) == n_orbits(count, pattern)


def test_there_are_125136_problems():
    """All patterns and two to five rows together."""
    assert n_problems() == 125_136


@pytest.mark.parametrize("number", [0, 11, 2_092, 6_234, 125_135])
def test_a_problem_lies_on_the_grid(number):
    """Two to five rows with both classes, and a kernel of small integers."""
    made = exhaustive_instance(number)
    assert 2 <= len(made.y) <= 5
    assert set(made.y) == {-1.0, 1.0}
    assert set(np.unique(made.K)) <= {-2.0, -1.0, 0.0, 1.0, 2.0}
    assert set(made.costs) <= {4.0**-k for k in range(5)}


def test_numbers_end():
    """A number beyond the last problem is an error that names the limit."""
    with pytest.raises(ValueError, match="below 125136, got 125136"):
        exhaustive_instance(n_problems())
