import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    hinge_loss,
    log_loss,
    matthews_corrcoef,
    roc_auc_score,
)

from span_hpo.calibration import platt_sigmoid
from span_hpo.metrics import METRICS
from tests.problems import labels_and_values

NAMES = [
    "error",
    "balanced_error",
    "smooth_error",
    "hinge",
    "log_loss",
    "brier",
    "auc",
    "average_precision",
    "f1",
    "mcc",
]


def test_metrics_by_hand():
    """Four rows whose losses can be counted."""
    y, f, w = np.array([1.0, 1, -1, -1]), np.array([2.0, -1, -0.5, 0]), np.ones(4)
    assert METRICS["error"](y, f, w) == 0.5
    assert METRICS["error"](y, f, np.array([1.0, 1, 1, 5])) == 6 / 8
    assert METRICS["balanced_error"](y, f, np.array([3.0, 1, 1, 1])) == (0.25 + 0.5) / 2
    assert METRICS["hinge"](y, f, w) == pytest.approx((0 + 2 + 0.5 + 1) / 4)
    assert METRICS["smooth_error"](np.array([1.0]), np.array([0.0]), np.ones(1)) == 0.5
    assert METRICS["auc"](y, f, w) == pytest.approx(1 - 2 / 4)
    assert METRICS["average_precision"](y, f, w) == pytest.approx(1 - (1 + 2 / 4) / 2)
    assert METRICS["f1"](y, f, w) == pytest.approx(1 - 2 / (2 + 1 + 1))
    assert METRICS["mcc"](y, f, w) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", range(5))
def test_metrics_equal_scikit_learn(seed):
    """Weighted losses agree with scikit-learn's functions of the same name."""
    y, f, w = labels_and_values(seed)
    predicted = np.where(f > 0, 1.0, -1.0)
    found = {name: METRICS[name](y, f, w) for name in NAMES}
    weighted = {"sample_weight": w}
    probability = platt_sigmoid(y, f, w).probability(f)
    expected = {
        "balanced_error": 1 - balanced_accuracy_score(y, predicted, **weighted),
        "hinge": hinge_loss(y, f, **weighted),
        "auc": 1 - roc_auc_score(y, f, **weighted),
        "f1": 1 - f1_score(y, predicted, **weighted),
        "mcc": 1 - matthews_corrcoef(y, predicted, **weighted),
        "log_loss": log_loss(y, probability, **weighted),
        "brier": brier_score_loss(y, probability, **weighted),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


@given(st.integers(0, 10_000), st.floats(0.01, 100))
@settings(max_examples=50, deadline=None)
def test_weights_count_rows(seed, scale):
    """A weight of 2 is a row that stands twice; the unit of the weights is free."""
    y, f, _ = labels_and_values(seed, 25)
    w = np.random.default_rng(seed).integers(1, 4, 25)
    for name in NAMES:
        repeated = METRICS[name](np.repeat(y, w), np.repeat(f, w), np.ones(w.sum()))
        if name in ("log_loss", "brier"):
            # Platt's targets depend on the number of rows, so only the unit is free.
            weighted = METRICS[name](y, f, w.astype(float))
            assert METRICS[name](y, f, scale * w) == pytest.approx(weighted, rel=1e-6)
        else:
            assert METRICS[name](y, f, scale * w) == pytest.approx(repeated, abs=1e-12)


def test_constant_predictions():
    """If one class is never predicted, F1 and MCC have their conventional values."""
    y, w = np.array([1.0, 1, -1]), np.ones(3)
    assert METRICS["f1"](y, np.full(3, -1.0), w) == 1.0
    assert METRICS["mcc"](y, np.full(3, -1.0), w) == 1.0
    assert METRICS["mcc"](y, y, w) == pytest.approx(0.0, abs=1e-15)
    assert METRICS["mcc"](y, -y, w) == pytest.approx(2.0)
