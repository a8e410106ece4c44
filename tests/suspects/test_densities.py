"""Scores from the densities of classes, compared with sums over all pairs of rows."""

import numpy as np
import pytest
from scipy import sparse

from span_hpo.suspects import density_scores
from tests.problems import two_moons


def by_hand(X, codes, weight, width):
    """Return the scores of one width from plain loops."""
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    median = np.median(squared[squared > 0])
    found = np.empty((len(X), codes.max() + 1))
    for i in range(len(X)):
        near = weight * np.exp(-width * squared[i] / median)
        near[i] = 0
        for code in range(found.shape[1]):
            own, others = near[codes == code].sum(), near[codes != code].sum()
            found[i, code] = np.log((0.5 + own) / (0.5 + others))
    return found


def three_classes():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, np.arange(30) % 3, rng.uniform(0.5, 1.5, 30)


def test_scores_are_sums_over_the_other_rows():
    """The first and the last width agree with the formula, row by row."""
    X, codes, weight = three_classes()
    scores = density_scores(X, codes, weight)
    assert scores.shape == (5, 30, 3)
    np.testing.assert_allclose(scores[0], by_hand(X, codes, weight, 0.5), rtol=1e-8)
    np.testing.assert_allclose(scores[4], by_hand(X, codes, weight, 128.0), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("form", ["sparse", "kernel"])
def test_other_forms_of_the_rows(form):
    """Sparse rows and the matrix of the linear kernel have the same distances."""
    X, codes, weight = three_classes()
    other = sparse.csr_array(X) if form == "sparse" else X @ X.T
    scores = density_scores(other, codes, weight, is_kernel=form == "kernel")
    np.testing.assert_allclose(scores, density_scores(X, codes, weight), rtol=1e-6, atol=1e-9)


def test_a_row_says_nothing_about_itself():
    """The scores of a row of two classes do not depend on its own label."""
    X, y = two_moons(40)
    codes = (y > 0).astype(int)
    changed = codes.copy()
    changed[7] = 1 - changed[7]
    scores = [density_scores(X, labels, np.ones(40))[:, 7] for labels in (codes, changed)]
    np.testing.assert_allclose(*scores, rtol=1e-12)


def test_equal_rows_have_finite_scores():
    """Rows without any distance are all equally near."""
    scores = density_scores(np.ones((6, 2)), np.arange(6) % 2, np.ones(6))
    assert np.isfinite(scores).all()
