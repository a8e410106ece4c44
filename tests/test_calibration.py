import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from span_hpo import RBF, SpanSVC, UniformCost
from span_hpo.calibration import PlattSigmoid, calibrated, class_probabilities, platt_sigmoid
from span_hpo.metrics import METRICS
from span_hpo.solver.pairwise import pairs_of
from tests.problems import labels_and_values


def test_coupling_of_three_classes_by_hand():
    """Consistent pairs r_ij = p_i / (p_i + p_j) give back p."""
    p = np.array([[0.5, 0.3, 0.2], [0.05, 0.9, 0.05]])
    pairs = [(0, 1), (0, 2), (1, 2)]
    odds = np.column_stack([np.log(p[:, j] / p[:, i]) for i, j in pairs])
    found = class_probabilities([PlattSigmoid(1.0, 0.0)] * 3, odds, p.argmax(axis=1))
    np.testing.assert_allclose(found, p, rtol=1e-10)


def test_probabilities_are_calibrated():
    """On new rows they are as good as those of scikit-learn's calibration with folds."""
    from sklearn.calibration import CalibratedClassifierCV

    X, y = make_classification(1500, 6, n_informative=4, flip_y=0.15, random_state=0)
    X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
    model = SpanSVC(RBF(gamma=0.5), UniformCost(1.0), scale="standard").fit(X_train, y_train)
    own = brier_score_loss(y_test, model.predict_proba(X_test)[:, 1])
    svc = SVC(C=1.0, gamma=0.5)
    folds = CalibratedClassifierCV(svc, ensemble=False).fit(
        model.scaler_.transform(X_train), y_train
    )
    other = brier_score_loss(y_test, folds.predict_proba(model.scaler_.transform(X_test))[:, 1])
    assert own < other + 0.005


def test_probabilities_agree_with_predictions_of_many_classes():
    """The most probable class is the predicted one, also if several others were more probable."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), size=500)
    predicted = rng.integers(6, size=500)
    odds = np.column_stack([np.log(p[:, j] / p[:, i]) for i, j in pairs_of(6)])
    before, after = (
        class_probabilities([PlattSigmoid(1.0, 0.0)] * 15, odds, elected)
        for elected in (p.argmax(axis=1), predicted)
    )
    np.testing.assert_allclose(before, p, atol=1e-9)
    np.testing.assert_array_equal(after.argmax(axis=1), predicted)
    np.testing.assert_allclose(after.sum(axis=1), 1.0)
    same = p.argmax(axis=1) == predicted
    assert same.any()
    np.testing.assert_array_equal(after[same], before[same])


def test_platt_sigmoid_is_the_minimum():
    """A general minimiser finds no better sigmoid."""
    for seed in range(10):
        y, f, w = labels_and_values(seed)
        w = w / w.mean()
        n_pos, n_neg = w[y > 0].sum(), w[y < 0].sum()
        target = np.where(y > 0, (n_pos + 1) / (n_pos + 2), 1 / (n_neg + 2))

        def entropy(theta, f=f, w=w, target=target):
            odds = theta[0] * f + theta[1]
            return np.average(np.logaddexp(0, odds) - target * odds, weights=w)

        found = platt_sigmoid(y, f, w)
        best = minimize(entropy, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-9})
        assert entropy([found.slope, found.offset]) <= best.fun + 1e-9


@pytest.mark.parametrize("size", [1e-8, 1.0, 1e8])
def test_platt_sigmoid_of_extreme_values(size):
    """Separated, constant and huge values give finite losses and no warning."""
    y = np.array([-1.0, -1, -1, 1, 1])
    for f in (size * y, np.full(5, size), -size * y):
        for name in ("log_loss", "brier"):
            assert 0 < METRICS[name](y, f, np.ones(5)) < 1


def test_values_that_rank_the_wrong_way_round_are_worth_a_constant():
    """Platt's sigmoid never falls: anti-ranked values give the loss of the base rate, not less."""
    y, _, w = labels_and_values(1)
    for name in ("log_loss", "brier"):
        constant = METRICS[name](y, np.zeros(len(y)), w)
        assert METRICS[name](y, -y, w) == pytest.approx(constant, abs=1e-9)
        assert METRICS[name](y, y, w) < constant
    assert platt_sigmoid(y, -y, w).slope == 0.0


def test_scaling_the_values_does_not_change_probabilities():
    """Platt's sigmoid takes up the scale of the decision values."""
    y, f, w = labels_and_values(3)
    one, other = platt_sigmoid(y, f, w), platt_sigmoid(y, 1e6 * f, w)
    np.testing.assert_allclose(one.probability(f), other.probability(1e6 * f), atol=1e-7)


def test_calibrated_probabilities_do_not_depend_on_the_prediction():
    """They are the sigmoid itself, also where it contradicts the sign, and keep small ones."""
    sigmoid, values = PlattSigmoid(2.0, 1.0), np.array([-0.2, 0.3, -40.0, 40.0])
    found = calibrated([sigmoid], values)
    np.testing.assert_allclose(found[:, 1], 1 / (1 + np.exp(-2 * values - 1)))
    assert found[3, 0] == pytest.approx(np.exp(-81))
    held = class_probabilities([sigmoid], values, (values > 0).astype(int))
    assert found[0, 1] > 0.5 > held[0, 1]


@pytest.mark.parametrize(("shift", "scale"), [(1.0, 1e-6), (-1e3, 1e-3), (0.0, 1e-9), (1e-9, 1e6)])
def test_the_sigmoid_does_not_depend_on_origin_and_unit(shift, scale):
    """Values that are nearly equal, as at the margin, get the probabilities of others."""
    y, f, w = labels_and_values(0)
    expected = platt_sigmoid(y, f, w).probability(f)
    moved = shift + scale * f
    found = platt_sigmoid(y, moved, w).probability(moved)
    np.testing.assert_allclose(found, expected, atol=1e-8)


def test_values_that_differ_by_rounding_are_worth_a_constant():
    """The sigmoid does not tell rows apart that are all at their margin but for rounding."""
    y = np.where(np.arange(22) < 3, -1.0, 1.0)
    f = 1 + 2e-16 * np.random.default_rng(0).integers(-2, 3, size=22)
    sigmoid = platt_sigmoid(y, f, np.ones(22))
    assert sigmoid.slope == 0
    assert sigmoid.probability(f)[0] == pytest.approx((3 / 5 + 19 * 20 / 21) / 22)
