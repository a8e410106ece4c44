"""Files of ensembles."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from span_hpo import EnsemblePredictor, Predictor, SpanSVC
from tests.problems import two_moons
from tests.relevant import thinned, two_of_twelve


def fitted(classes=2, count=90, **settings):
    """Return features and an ensemble that was fitted to them."""
    X, y = two_moons(count, noise=0.4)
    if classes > 2:
        y = np.arange(count) % classes
        X = X + y[:, None]
    return X, SpanSVC(n_trials=12, ensemble=True, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("classes", [2, 3])
def test_round_trip(classes, tmp_path):
    """A file gives the predictions and probabilities of the estimator."""
    X, model = fitted(classes, threshold=0.3 if classes == 2 else None)
    model.as_predictor().save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    assert isinstance(loaded, EnsemblePredictor)
    new = X + 0.1
    np.testing.assert_array_equal(loaded.predict(new), model.predict(new))
    np.testing.assert_allclose(loaded.predict_proba(new), model.predict_proba(new), atol=1e-9)
    values = loaded.decision_function(new)
    np.testing.assert_allclose(values, model.decision_function(new), atol=1e-6)
    np.testing.assert_allclose(loaded.probabilities_of(values), loaded.predict_proba(new))
    content = json.loads((tmp_path / "model.json").read_text())
    assert content["version"] == 2
    assert len(content["members"]) == len(content["weights"]) == len(model.members_)
    assert not {"labels", "scaling", "columns"} & set(content["members"][0])


def test_tables_and_sparse_rows(tmp_path):
    """Columns of text are encoded once for all members, and sparse members stay sparse."""
    X, y = two_moons(90, noise=0.4)
    frame = pd.DataFrame({"x": X[:, 0], "z": X[:, 1], "town": np.where(X[:, 0] > 0.5, "a", "b")})
    model = SpanSVC(n_trials=8, ensemble=True, random_state=0).fit(frame, y)
    model.as_predictor().save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    rows = sparse.csr_array(np.maximum(X, 0))
    thin = SpanSVC(n_trials=8, ensemble=True, random_state=0).fit(rows, y)
    thin.as_predictor().save(tmp_path / "thin.json")
    again = Predictor.load(tmp_path / "thin.json")
    assert all(sparse.issparse(member.support_vectors) for member in again.members)
    np.testing.assert_array_equal(again.predict(rows), thin.predict(rows))


DAMAGES = [
    ({"weights": [1.0]}, "a positive number for each member"),
    ({"weights": [0.5, 0.4]}, "must add up to 1"),
    ({"weights": [1.5, -0.5]}, "a positive number for each member"),
    ({"weights": None}, "`weights` must be a list"),
    ({"members": []}, "`members` must have at least 1 entries"),
    ({"members": [1, 2]}, r"`members\[0\]` must be an object"),
    ({"labels": [1, 1]}, r"`members\[0\]\.labels` must be two or more different labels"),
    ({"labels": [1, 2, 3]}, "must hold a whole model"),
    ({"threshold": "high"}, "`threshold` must be finite numbers"),
    ({"version": 4}, "needs a newer span_hpo"),
]


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("ensemble") / "model.json"
    predictor = fitted()[1].as_predictor()
    two = EnsemblePredictor.of_members(predictor.members[:1] * 2, np.array([0.5, 0.5]), 0.0)
    two.save(path)
    return json.loads(path.read_text())


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_damaged_files_are_refused(damage, message, content, tmp_path):
    """The error names the file and the field."""
    (tmp_path / "model.json").write_text(json.dumps({**content, **damage}))
    with pytest.raises(ValueError, match=message):
        Predictor.load(tmp_path / "model.json")


def test_members_must_be_calibrated_and_alike(content, tmp_path):
    """A member without sigmoids, or with other features, is named."""
    path = tmp_path / "model.json"
    first, second = content["members"]
    path.write_text(json.dumps({**content, "members": [first, {**second, "sigmoids": None}]}))
    with pytest.raises(ValueError, match=r"`members\[1\]\.sigmoids` is missing"):
        Predictor.load(path)
    narrow = {**second, "support_vectors": [row[:1] for row in second["support_vectors"]]}
    path.write_text(json.dumps({**content, "members": [first, narrow], "scaling": None}))
    with pytest.raises(ValueError, match=r"`members\[1\]` must have the features of the first"):
        Predictor.load(path)


def test_a_threshold_needs_two_classes(tmp_path):
    """A file of three classes cannot ask for one."""
    _, model = fitted(3)
    model.as_predictor().save(tmp_path / "model.json")
    three = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**three, "threshold": 0.5}))
    with pytest.raises(ValueError, match="`threshold` must be"):
        Predictor.load(tmp_path / "model.json")


@pytest.mark.parametrize("is_sparse", [False, True])
def test_members_with_scalings_of_their_own(is_sparse, tmp_path):
    """Members with a width for each feature have different factors, which the file keeps."""
    X, y = two_of_twelve(90, noise=0.3)
    rows = thinned(X, 0.2) if is_sparse else X
    model = SpanSVC(
        "ard", sampler="random", n_trials=12, ensemble=True, random_state=0, scale=None
    ).fit(rows, y)
    assert len(model.members_) > 1
    model.as_predictor().save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_allclose(loaded.predict_proba(rows), model.predict_proba(rows), atol=1e-9)
    factors = [member.scaling.factor for member in loaded.members]
    assert not np.allclose(factors[0], factors[1])
    content = json.loads((tmp_path / "model.json").read_text())
    assert (content["version"], "scaling" in content) == (3, False)
