"""The alignment of a kernel with the labels."""

import math

import numpy as np
import pytest
from scipy import sparse

from span_hpo import ARD, RBF, Linear, Polynomial, SpanObjective
from span_hpo.search import Alignment, Coordinates, Spread, aligned_point, spread_of


def rows(seed, count=25, features=4, classes=2):
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(classes), rng.integers(classes, size=count - classes)])
    return rng.normal(size=(count, features)) + codes[:, None] * (np.arange(features) == 0), codes


def by_definition(K, codes):
    """Return the cosine between two centred matrices."""
    n = len(codes)
    H = np.eye(n) - 1 / n
    T = (codes[:, None] == codes).astype(float)
    Kc, Tc = H @ K @ H, H @ T @ H
    return float((Kc * Tc).sum() / math.sqrt((Kc**2).sum() * (Tc**2).sum()))


@pytest.mark.parametrize("classes", [2, 3, 5])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_cosine_of_centred_matrices(classes, seed):
    """The alignment is the cosine between the centred matrices of the kernel and the classes."""
    X, codes = rows(seed, classes=classes)
    widths = np.random.default_rng(seed).uniform(0.1, 2.0, size=4)
    K = np.exp(-(((X[:, None] - X) ** 2) * widths).sum(axis=2))
    kernel = ARD(gamma=widths.tolist()).bind(X)
    assert Alignment.of(kernel, X, codes).at({})[0] == pytest.approx(by_definition(K, codes))


@pytest.mark.parametrize("kernel", [ARD(), RBF(), ARD(groups=[[0, 2]])])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_derivatives_agree_with_central_differences(kernel, as_sparse):
    """Derivatives of the alignment agree with central differences, for dense and sparse rows."""
    X, codes = rows(1)
    X = sparse.csr_array(X) if as_sparse else X
    kernel = kernel.bind(X)
    alignment = Alignment.of(kernel, X, codes)
    params = {name: 0.2 + 0.3 * place for place, name in enumerate(kernel.space)}
    _, slopes = alignment.at(params)
    assert set(slopes) == set(params)
    for name, value in params.items():
        up, down = ({**params, name: value + step} for step in (1e-5, -1e-5))
        expected = (alignment.at(up)[0] - alignment.at(down)[0]) / 2e-5
        assert slopes[name] == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("X", "codes"),
    [
        (np.ones((6, 2)), np.array([0, 1] * 3)),  # all rows are the same
        (np.arange(6.0)[:, None], np.zeros(6, dtype=int)),  # one class
    ],
)
def test_nothing_is_aligned_where_rows_or_labels_are_all_the_same(X, codes):
    """The alignment is 0 and has no derivatives where all rows or all labels are the same."""
    assert Alignment.of(RBF(gamma=1.0), X, codes).at({}) == (0.0, {})


def test_many_rows_are_drawn_once_and_for_all():
    """Of more than 500 rows, the alignment uses 500, which are the same in every call."""
    X, codes = rows(0, count=900)
    first, second = (Alignment.of(Linear(), X, codes) for _ in range(2))
    assert len(first.classes) == 500
    np.testing.assert_array_equal(first.classes, second.classes)
    np.testing.assert_allclose(first.classes.sum(axis=0), 0, atol=1e-12)


def noisy_square(count=200, noise=20, seed=0):
    """Return rows whose class is the sign of a product of two of many features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(count, 2 + noise))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize("strength", [0.0, 0.3])
def test_features_that_matter_get_the_largest_widths(strength):
    """Features that say nothing of the class alone, but do so together, get the largest widths."""
    X, y = noisy_square()
    objective = SpanObjective(X, y, kernel=ARD(), metric="smooth_error")
    start = objective.centres()[0]
    coordinates = Coordinates.of(objective.space, start)
    spread = spread_of(objective, coordinates, strength)
    alignment = Alignment.of(objective.kernel, objective.data.X, objective.data.codes)
    before = coordinates.point(start)
    after = aligned_point(alignment, coordinates, spread, before)
    found = coordinates.params(after)
    widths = [found[f"gamma_{k}"] for k in range(X.shape[1])]
    assert set(np.argsort(widths)[-2:]) == {0, 1}
    assert alignment.at(found)[0] > 2 * alignment.at(start)[0]
    others = [place for place in range(len(before)) if place not in spread.places]
    np.testing.assert_array_equal(after[others], before[others])
    assert ((coordinates.lower <= after) & (after <= coordinates.upper)).all()


def test_a_strong_penalty_keeps_widths_equal():
    """With a strong penalty, widths that are aligned with the labels stay equal."""
    X, y = noisy_square(60, 3)
    objective = SpanObjective(X, y, kernel=ARD(), metric="smooth_error")
    coordinates = Coordinates.of(objective.space, objective.centres()[0])
    places = coordinates.places(objective.alike)
    alignment = Alignment.of(objective.kernel, objective.data.X, objective.data.codes)
    start = coordinates.point(objective.centres()[0])
    point = aligned_point(alignment, coordinates, Spread(places, 1e4), start)
    assert np.ptp(point[places]) < 1e-3


def test_other_kernels_have_an_alignment_as_well():
    """The alignment of a polynomial kernel is the cosine of centred matrices as well."""
    X, codes = rows(2)
    kernel = Polynomial(degree=2, gamma=0.5, coef0=1.0)
    K = (0.5 * X @ X.T + 1.0) ** 2
    assert Alignment.of(kernel, X, codes).at({})[0] == pytest.approx(by_definition(K, codes))
