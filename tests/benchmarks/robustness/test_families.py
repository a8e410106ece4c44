"""The families of the sweep."""

import numpy as np
import pytest

from benchmarks.robustness.families import EXHAUSTIVE, FAMILIES, make


def test_there_are_enough_families():
    """The sweep promises at least 15."""
    assert len(FAMILIES) >= 15


@pytest.mark.parametrize("family", [*FAMILIES, EXHAUSTIVE])
def test_problems_can_be_made_again(family):
    """The same number gives the same problem, other numbers give others."""
    first, again, other = make(family, 7), make(family, 7), make(family, 8)
    assert (first.K == again.K).all()
    assert (first.y == again.y).all()
    assert (first.costs == again.costs).all()
    assert first.K.shape != other.K.shape or not (
        (first.K == other.K).all() and (first.y == other.y).all()
    )


@pytest.mark.parametrize("family", [*FAMILIES, EXHAUSTIVE])
def test_problems_are_what_the_package_accepts(family):
    """Matrices are finite and symmetric; every class has a row with a positive cost."""
    for number in range(20):
        made = make(family, number)
        assert np.isfinite(made.K).all()
        assert (made.K == made.K.T).all()
        assert (made.costs >= 0).all()
        assert made.K.flags.c_contiguous
        assert np.unique(made.y[made.costs > 0]).tolist() == np.unique(made.y).tolist()
        assert len(np.unique(made.y)) >= 2


def test_rows_of_very_different_norms_are_there():
    """Norms differ by more than eight orders of magnitude in some problems."""
    ratios = []
    for number in range(20):
        norms = np.sqrt(make("norms", number).K.diagonal())
        ratios.append(norms.max() / norms.min())
    assert max(ratios) > 1e8
