import numpy as np
import pytest

from span_hpo import RBF, SpanObjective, SpanSVC, UniformCost
from span_hpo.cli.files import PredictionTask
from span_hpo.cli.results import (
    error_rate,
    group_errors,
    honest_figures,
    places_of,
    prediction_columns,
    scaling_of_rows,
    shape_of,
)
from span_hpo.io import Samples
from span_hpo.selection import HonestEstimate
from tests.problems import two_moons


def test_shape_counts_rows_features_and_classes():
    """Rows of each class are counted by the text of the label."""
    samples = Samples(np.zeros((5, 3)), np.array([2, 0, 2, 2, 0]))
    assert shape_of(samples) == {"rows": 5, "features": 3, "classes": {"0": 2, "2": 3}}


def test_scaling_has_a_share():
    """The rows that define the scaling are counted, and related to all rows."""
    found = scaling_of_rows("minmax", np.array([1, 4]), 8)
    assert found == {"scaling": "minmax", "scaling_rows": 2, "scaling_share": 0.25}


def test_groups_have_their_own_errors():
    """Errors of groups, weighted by their rows, make up the error of all rows."""
    X, y = two_moons(60)
    evaluation = SpanObjective(X, y, kernel=RBF(1.0), weighting=UniformCost(1.0)).evaluate({})
    samples = Samples(X, y, groups=np.array(["a", "b", "b"] * 20, dtype=object))
    found = group_errors(evaluation, samples)
    assert {name: group["rows"] for name, group in found.items()} == {"a": 20, "b": 40}
    total = sum(group["rows"] * group["error"] for group in found.values())
    assert total / 60 == pytest.approx(evaluation.loo.error)
    assert group_errors(evaluation, Samples(X, y)) is None


def test_honest_figures():
    """They are the estimate and its interval, or nothing but the reason."""
    interval = (0.1, 0.3)
    few = HonestEstimate(0.2, interval, 0.9, 0.15, n_trials=19, n_rows=60)
    found = honest_figures(few)
    assert (found["honest_error"], found["honest_interval"]) == (0.2, [0.1, 0.3])
    assert found["honest_note"] == "pessimistic, because there are fewer than 20 trials"
    many = HonestEstimate(0.2, interval, 0.9, 0.15, n_trials=20, n_rows=60)
    assert honest_figures(many) == {**found, "honest_note": ""}
    moved = "of the best trial before the gradient steps"
    assert honest_figures(many, is_moved=True)["honest_note"] == moved
    both = f"{moved}; {found['honest_note']}"
    assert honest_figures(few, is_moved=True)["honest_note"] == both
    nothing = {"honest_error": None, "honest_interval": None, "honest_note": "none"}
    assert honest_figures("none") == nothing


def test_places_are_lines_of_a_text_file():
    """Rows are found by their lines, or by their numbers from 1 where there are none."""
    X, y = np.zeros((3, 1)), np.array([0, 1, 0])
    assert places_of(np.array([2, 0]), Samples(X, y, lines=[2, 4, 7])) == [7, 2]
    assert places_of(np.array([2, 0]), Samples(X, y)) == [3, 1]


def test_columns_of_predictions():
    """Probabilities are named by classes, values by pairs of them, and errors need labels."""
    X, y = two_moons(60)
    y = np.where(X[:, 0] > 1, 2, y).astype(int)  # a third class
    model = SpanSVC(RBF(1.0), UniformCost(1.0)).fit(X, y)
    predictor = model.as_predictor()
    columns = prediction_columns(
        predictor, predictor.decision_function(X), with_proba=True, with_values=True
    )
    assert list(columns) == [
        "prediction",
        *(f"probability of {label}" for label in (-1, 1, 2)),
        *(f"value of {b} against {a}" for a, b in ((-1, 1), (-1, 2), (1, 2))),
    ]
    assert columns["prediction"] == model.predict(X).tolist()
    task = PredictionTask(predictor, X, y.tolist())
    assert error_rate(task, columns["prediction"]) == pytest.approx(1 - model.score(X, y))
    assert error_rate(PredictionTask(predictor, X, None), columns["prediction"]) is None
