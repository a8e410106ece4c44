import json
import sys

import numpy as np
import pandas as pd
import pytest

from span_hpo import Predictor, SpanSVC
from tests.cli.program import NOT_FEATURES, moons_table, run
from tests.processes import ended


def test_a_model_predicts_the_same_everywhere(tmp_path):
    """Tuned from a CSV file: `span-hpo predict`, Python and libsvm-official agree."""
    printed = run(
        *("tune", "rows.csv", "--target", "label", "--trials", 12, "--seed", 0, "--json"),
        *NOT_FEATURES,
        folder=tmp_path,
    )
    result = json.loads(printed)
    assert (result["rows"], result["features"], result["trials"]) == (120, 5, 12)
    new = moons_table(150).drop(columns="label")
    new["z"] += 0.5
    new.to_csv("new.csv", index=False)
    run(
        *("predict", "model.json", "new.csv", "--out", "out.csv", "--proba", "--values"),
        *("--features", "new.libsvm"),
        folder=tmp_path,
    )
    found = pd.read_csv("out.csv")

    predictor = Predictor.load("model.json")
    assert predictor.predict(new).tolist() == found["prediction"].tolist()
    np.testing.assert_allclose(
        predictor.predict_proba(new), found[["probability of bad", "probability of good"]]
    )
    values = found["value of good against bad"]
    np.testing.assert_allclose(predictor.decision_function(new), values)

    # The same search in Python.
    frame = moons_table()
    encoded = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    model = SpanSVC(n_trials=12, random_state=0).fit(encoded, frame["label"])
    assert model.best_params_ == result["best_params"]
    assert model.best_loss_ == result["best_loss"]
    encoded_new = pd.get_dummies(new[["x", "z", "town"]], columns=["town"], dtype=float)
    np.testing.assert_allclose(model.decision_function(encoded_new), values, atol=1e-9)
    np.testing.assert_allclose(
        model.predict_proba(encoded_new), predictor.predict_proba(new), atol=1e-9
    )

    svmutil = pytest.importorskip("libsvm.svmutil")
    y, x = svmutil.svm_read_problem("new.libsvm")
    theirs = svmutil.svm_load_model("model.libsvm")
    labels, _, decisions = svmutil.svm_predict(y, x, theirs, "-q")
    assert [["bad", "good"][int(label)] for label in labels] == found["prediction"].tolist()
    np.testing.assert_allclose(np.abs(np.ravel(decisions)), np.abs(values), atol=1e-9)


@pytest.mark.parametrize("is_fixed", [True, False])
def test_optuna_is_needed_for_a_search_only(is_fixed, tmp_path):
    """If all hyperparameters are given, there is one fit and nothing to install."""
    moons_table().to_csv(tmp_path / "rows.csv", index=False)
    code = (
        "import sys; sys.modules['optuna'] = None; sys.argv[0] = 'span-hpo'; "
        "from span_hpo.cli import main; main()"
    )
    fixed = ["--gamma", "1", "--C", "2"] if is_fixed else ["--gamma", "1"]
    command = ["tune", "rows.csv", "--target", "label", *NOT_FEATURES, *fixed]
    found = ended([sys.executable, "-c", code, *command], tmp_path)
    assert found.returncode == (0 if is_fixed else 2)
    if is_fixed:
        assert "nothing was searched" in found.stdout
        assert (tmp_path / "model.json").exists()
    else:
        assert "pip install 'span-hpo[optuna]'" in found.stderr
        assert not (tmp_path / "model.json").exists()
