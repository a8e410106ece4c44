"""Probabilities of wrong labels, on problems whose wrong labels are known."""

import numpy as np
import pytest

from span_hpo.suspects import density_scores, listed, wrong_label_probabilities


def gaussians(count, distance, share=0.5, seed=0):
    """Return two classes of normal rows, whose centres have this distance."""
    rng = np.random.default_rng(seed)
    codes = (rng.random(count) < share).astype(int)
    X = rng.normal(size=(count, 2))
    X[:, 0] += distance * codes
    return X, codes, rng


def flipped(codes, rates, rng):
    """Return labels of which some are wrong, and which ones are."""
    wrong = rng.random(len(codes)) < np.asarray(rates)[codes]
    return np.where(wrong, 1 - codes, codes), wrong


def probabilities(X, codes, weight=None):
    weight = np.ones(len(codes)) if weight is None else weight
    return wrong_label_probabilities(codes, density_scores(X, codes, weight), weight)


@pytest.mark.parametrize(
    ("distance", "share"), [(5, 0.5), (2, 0.5), (1, 0.5), (2, 0.1), (1.5, 0.05)]
)
def test_classes_that_overlap_are_not_suspected(distance, share):
    """If no label is wrong, hardly any row is listed, however many rows are misclassified."""
    found = [
        len(listed(probabilities(*gaussians(400, distance, share, seed)[:2]))) for seed in range(5)
    ]
    assert np.mean(found) <= 2


@pytest.mark.parametrize(
    ("count", "distance", "share", "rates"),
    [(400, 4, 0.5, (0.1, 0.1)), (400, 3, 0.5, (0.2, 0.05)), (400, 4, 0.15, (0.1, 0.1))],
)
def test_flipped_labels_are_listed(count, distance, share, rates):
    """Most listed rows are wrong, about as many as the probabilities say or somewhat more."""
    n_listed = n_found = n_expected = n_wrong = 0.0
    for seed in range(5):
        X, codes, rng = gaussians(count, distance, share, seed)
        labels, wrong = flipped(codes, rates, rng)
        p = probabilities(X, labels)
        rows = listed(p)
        n_listed += len(rows)
        n_found += wrong[rows].sum()
        n_expected += p[rows].sum()
        n_wrong += wrong.sum()
    assert n_found >= 0.75 * n_listed
    assert n_found >= 0.4 * n_wrong
    assert 0.7 * n_found <= n_expected <= 1.2 * n_found


def test_several_classes():
    """Labels that were exchanged among four classes are listed, at least half of them."""
    rng = np.random.default_rng(0)
    codes = rng.choice(4, 500)
    X = rng.normal(size=(500, 2)) + 5 * np.array([[0, 0], [0, 1], [1, 0], [1, 1]])[codes]
    wrong = rng.random(500) < 0.1
    labels = np.where(wrong, (codes + rng.integers(1, 4, 500)) % 4, codes)
    rows = listed(probabilities(X, labels))
    assert wrong[rows].mean() > 0.9
    assert wrong[rows].sum() > 0.5 * wrong.sum()


def centres(count, n_classes, distance, seed):
    """Return normal rows of several classes, with centres that are this far apart."""
    rng = np.random.default_rng(seed)
    codes = rng.choice(n_classes, count)
    X = rng.normal(size=(count, n_classes))
    X[np.arange(count), codes] += distance / np.sqrt(2)
    return X, codes, rng


@pytest.mark.parametrize("n_classes", [3, 5])
def test_labels_exchanged_among_several_classes_are_listed(n_classes):
    """With one rate for all classes, most wrong labels are found, and few others."""
    n_listed = n_found = n_wrong = n_expected = 0.0
    for seed in range(5):
        X, codes, rng = centres(300, n_classes, 6, seed)
        wrong = rng.random(300) < 0.1
        labels = np.where(wrong, (codes + rng.integers(1, n_classes, 300)) % n_classes, codes)
        p = probabilities(X, labels)
        n_listed, n_found = n_listed + len(listed(p)), n_found + wrong[listed(p)].sum()
        n_wrong, n_expected = n_wrong + wrong.sum(), n_expected + p.sum()
    assert n_found >= 0.7 * n_wrong
    assert n_found >= 0.9 * n_listed
    assert 0.7 * n_wrong <= n_expected <= 1.1 * n_wrong


@pytest.mark.parametrize("distance", [1, 2])
def test_several_classes_that_overlap_are_not_suspected(distance):
    """If no label is wrong, hardly any row is listed, also among three classes."""
    found = [len(listed(probabilities(*centres(300, 3, distance, seed)[:2]))) for seed in range(4)]
    assert np.mean(found) <= 1


def test_few_rows_lead_to_no_suspicion():
    """Ten rows say too little about rates of wrong labels."""
    X, codes, _ = gaussians(10, 5)
    codes[:2] = 0, 1
    assert not len(listed(probabilities(X, codes)))


def test_the_two_classes_are_treated_alike():
    """Exchanging the names of the classes changes probabilities by little."""
    X, codes, rng = gaussians(150, 4)
    labels, _ = flipped(codes, (0.15, 0.05), rng)
    # The bins of the scores are not the same in the opposite order.
    np.testing.assert_allclose(probabilities(X, labels), probabilities(X, 1 - labels), atol=0.05)


def test_rows_without_weight_are_not_suspected():
    """A row of weight 0 has the probability 0, and others do not know it."""
    X, codes, rng = gaussians(150, 4)
    labels, _ = flipped(codes, (0.1, 0.1), rng)
    weight = np.ones(150)
    weight[::5] = 0
    kept = weight > 0
    scores = density_scores(X, labels, weight)
    p = wrong_label_probabilities(labels, scores, weight)
    assert not p[~kept].any()
    again = wrong_label_probabilities(labels[kept], scores[:, kept], np.ones(kept.sum()))
    np.testing.assert_allclose(p[kept], again, rtol=1e-12)


def test_the_most_probable_come_first():
    """Rows above one half are listed in the order of their probabilities."""
    assert listed(np.array([0.2, 0.6, 0.5, 0.9, 0.51])).tolist() == [3, 1, 4]
