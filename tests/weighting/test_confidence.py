import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import KNeighborsClassifier

from span_hpo import ClassCosts, Float, LabelConfidence, PowerScore, SpanObjective, minimize
from span_hpo.data import as_dataset
from span_hpo.weighting.products import bind_to
from tests.problems import two_moons
from tests.weighting.rows import Q, X, assert_gradient_is_right, costs


def rows(seed=0, count=40, classes=2):
    rng = np.random.default_rng(seed)
    return as_dataset(rng.normal(size=(count, 2)), rng.integers(classes, size=count))


def confidence(weighting, data, params=None):
    return bind_to(weighting, data).confidence(data, params or {})


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("bandwidth", [0.05, 0.3, 2.0])
def test_kernel_confidence_follows_the_formula(bandwidth, classes):
    """Each row is left out of a weighted vote of all others (Nadaraya and Watson)."""
    data = rows(classes=classes)
    distances = ((data.X[:, None] - data.X) ** 2).sum(axis=2)
    h2 = bandwidth**2 * np.median(distances[distances > 0])
    found = confidence(LabelConfidence(C=1, tau=1, bandwidth=bandwidth, floor=0.0), data)
    for i in range(len(data)):
        others = np.arange(len(data)) != i
        votes = np.exp(-(distances[i, others] - distances[i, others].min()) / (2 * h2))
        same = data.codes[others] == data.codes[i]
        assert found[i] == pytest.approx(votes @ same / votes.sum(), abs=1e-9)


@pytest.mark.parametrize("count", [1, 3, 10])
def test_neighbours_agree_with_scikit_learn(count):
    """The share of equal labels among the nearest rows is that of a classifier without the row."""
    data = rows(1)
    found = confidence(LabelConfidence("neighbours", C=1, tau=1, neighbours=count, floor=0.0), data)
    for i in range(len(data)):
        others = np.arange(len(data)) != i
        model = KNeighborsClassifier(count).fit(data.X[others], data.codes[others])
        expected = model.predict_proba(data.X[[i]])[0, data.codes[i]]
        assert found[i] == pytest.approx(expected)


def test_rows_at_the_same_distance_share_the_places():
    """Copies of a row vote for it with equal weights, whatever their order is."""
    data = as_dataset([[0.0], [0.0], [0.0], [0.0], [9.0]], [0, 0, 0, 1, 1])
    found = confidence(LabelConfidence("neighbours", C=1, tau=1, neighbours=2, floor=0.0), data)
    np.testing.assert_allclose(found, [2 / 3, 2 / 3, 2 / 3, 0.0, 0.25])


def test_given_probabilities():
    """The score is the probability of the second class, and so of a label or of the other one."""
    data = as_dataset(X, ["no", "yes", "no", "yes"], scores=Q)
    found = costs(LabelConfidence("probability", C=2.0, tau=1.0), data=data)
    np.testing.assert_allclose(found, 2 * np.array([1.0, 0.25, 0.5, 1.0]))
    as_scores = as_dataset(X, [0, 1, 0, 1], scores=[1.0, 0.25, 0.5, 1.0])
    np.testing.assert_allclose(found, costs(PowerScore(C=2.0, tau=1.0), data=as_scores))


def test_the_least_confidence_is_the_floor():
    """No row is left out of the fit because its neighbours have another label."""
    data = as_dataset([[0.0], [0.1], [0.2], [0.3]], [0, 1, 0, 0])
    weighting = LabelConfidence("neighbours", C=1.0, tau=2.0, neighbours=3, floor=0.1)
    np.testing.assert_allclose(costs(weighting, data=data), [4 / 9, 0.01, 4 / 9, 4 / 9])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("bandwidth", [0.2, 0.7])
def test_gradients_are_those_of_central_differences(bandwidth, classes):
    """The derivatives by C, the exponent and the bandwidth."""
    params = {"C": 3.0, "tau": 1.3, "bandwidth": bandwidth}
    assert_gradient_is_right(LabelConfidence(floor=0.0), params, rows(2, classes=classes))
    assert_gradient_is_right(LabelConfidence(floor=0.4), params, rows(2, classes=classes))


def test_sparse_rows_blocks_and_parts_of_the_rows():
    """Sparse features, small blocks and unscaled distances change nothing."""
    data = rows(3)
    weighting = LabelConfidence(C=1, tau=1, bandwidth=0.3)
    found = confidence(weighting, data)
    as_sparse = as_dataset(sparse.csr_array(data.X), data.codes)
    np.testing.assert_allclose(confidence(weighting, as_sparse), found, atol=1e-9)
    larger = as_dataset(1e3 * data.X, data.codes)
    np.testing.assert_allclose(confidence(weighting, larger), found, atol=1e-9)


def test_far_rows_have_a_confidence():
    """A row so far from all others that their votes vanish has that of the nearest one."""
    data = as_dataset([[0.0], [0.1], [0.2], [0.3], [1e6]], [0, 0, 1, 1, 1])
    found = confidence(LabelConfidence(C=1, tau=1, bandwidth=0.05), data)
    assert found[4] == pytest.approx(1.0)


def test_flipped_labels_cost_less():
    """Among rows whose labels were flipped, the mean confidence is far below that of others."""
    features, y = two_moons(200, seed=1)
    flipped = np.random.default_rng(0).permutation(200)[:20]
    y = y.copy()
    y[flipped] *= -1
    data = as_dataset(features, y)
    for weighting in (
        LabelConfidence(C=1, tau=1, bandwidth=0.2),
        LabelConfidence("neighbours", C=1, tau=1, neighbours=10),
    ):
        found = confidence(weighting, data)
        assert found[flipped].mean() < 0.4
        assert np.delete(found, flipped).mean() > 0.75


def test_it_is_searched_like_any_other():
    """Its space follows from the source, and the smooth error can be followed by gradients."""
    features, y = two_moons(60)
    objective = SpanObjective(features, y, weighting=LabelConfidence(), metric="smooth_error")
    assert list(objective.space) == ["gamma", "C", "tau", "bandwidth"]
    found = minimize(objective, max_evaluations=20)
    assert found.loss < objective(objective.defaults()[0])
    neighbours = SpanObjective(features, y, weighting=LabelConfidence("neighbours"))
    assert list(neighbours.space) == ["gamma", "C", "tau", "neighbours"]
    assert 0 <= neighbours({"gamma": 1.0, "C": 1.0, "tau": 1.0, "neighbours": 5}) <= 1


@pytest.mark.parametrize(
    ("arguments", "params", "message"),
    [
        (
            {"source": "forest"},
            {},
            "`source` must be one of ['kernel', 'neighbours', 'probability'",
        ),
        ({"floor": 2.0}, {}, "`floor` must be a finite number of at least 0 and at most 1, got 2"),
        ({"bandwidth": 0.0}, {}, "`bandwidth` must be a finite number above 0, got 0"),
        ({"source": "neighbours", "neighbours": 0}, {}, "`neighbours` must be a whole number"),
        ({"tau": -1.0}, {}, "`tau` must be a finite number of at least 0, got -1"),
        ({"source": "probability"}, {}, "`scores` must hold one score per row"),
    ],
)
def test_wrong_arguments_are_named(arguments, params, message):
    """The message names the argument, its range and what was received."""
    settings = {"C": 1.0, "tau": 1.0, "bandwidth": 0.5, "neighbours": 3, **arguments}
    with pytest.raises(ValueError, match="must") as caught:
        costs(LabelConfidence(**settings), params, rows())
    assert message in str(caught.value)


def test_a_precomputed_kernel_has_no_features():
    """Distances of the rows of a kernel matrix are not those of its rows, and are not computed."""
    features, y = two_moons(40)
    K = features @ features.T
    for weighting in (LabelConfidence(), ClassCosts() * LabelConfidence("neighbours", C=1.0)):
        with pytest.raises(ValueError, match="`weighting` must not ask for distances of features"):
            SpanObjective(K, y, kernel="precomputed", weighting=weighting)
    given = LabelConfidence("probability")
    objective = SpanObjective(K, y, kernel="precomputed", weighting=given, scores=np.full(40, 0.5))
    assert 0 <= objective({"C": 1.0, "tau": 1.0}) <= 1


def test_probabilities_are_for_two_classes():
    """With three classes, one probability is not enough."""
    data = as_dataset(X, [0, 1, 2, 1], scores=Q)
    with pytest.raises(ValueError, match="`source` must be 'kernel' or 'neighbours' for more"):
        bind_to(LabelConfidence("probability"), data)
    with pytest.raises(ValueError, match="must know the distances of the rows"):
        LabelConfidence(C=1.0, tau=Float(0.0, 1.0)).costs(rows(), {"tau": 1.0, "bandwidth": 1.0})
