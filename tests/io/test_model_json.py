import copy
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.sparse import csr_array
from sklearn.preprocessing import MinMaxScaler

from span_hpo import RBF, Linear, Predictor, SpanSVC, UniformCost
from span_hpo.calibration import PlattSigmoid
from span_hpo.io import Encoding
from span_hpo.io.encoding import EncodedColumn
from span_hpo.io.model_json import VERSION, plain_number, read_vectors, written_vectors
from tests.io.models import fitted
from tests.problems import two_moons


def test_parameters_that_json_does_not_know(tmp_path):
    """What cannot be written is named, and leaves no file."""
    _, _, model = fitted(Linear(), "two", 60)
    predictor = Predictor.from_svc(model, parameters={"kernel": object()})
    with pytest.raises(TypeError, match="must be numbers or text, got object"):
        predictor.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())


def numbers(rng):
    """Return numbers of every size, with zeros among them."""
    return (
        rng.normal(size=(7, 5))
        * 10.0 ** rng.integers(-300, 300, (7, 5))
        * (rng.random((7, 5)) < 0.5)
    )


@pytest.mark.parametrize("seed", range(10))
def test_vectors_survive_a_file(seed):
    """Dense and sparse support vectors come back from JSON in their form, to the last bit."""
    vectors = numbers(np.random.default_rng(seed))
    dense = read_vectors(json.loads(json.dumps(written_vectors(vectors))))
    assert isinstance(dense, np.ndarray)
    np.testing.assert_array_equal(dense, vectors)
    written = json.loads(json.dumps(written_vectors(sparse.csr_array(vectors))))
    assert len(written["values"]) == np.count_nonzero(vectors)
    found = read_vectors(written)
    assert found.format == "csr"
    np.testing.assert_array_equal(found.toarray(), vectors)


@pytest.mark.parametrize(
    "damage",
    [
        {"features": [0, 9]},
        {"features": [0, -1]},
        {"starts": [0, 1]},
        {"starts": [0, 5, 2]},
        {"values": [1.0]},
        {"values": ["a", "b"]},
        {"shape": [2]},
        {"shape": [1, 3]},
    ],
)
def test_damaged_sparse_vectors_are_refused(damage):
    """Parts that do not fit together raise instead of giving other vectors."""
    whole = {"shape": [2, 3], "starts": [0, 1, 2], "features": [0, 2], "values": [1.0, 2.0]}
    np.testing.assert_array_equal(read_vectors(whole).toarray(), [[1, 0, 0], [0, 0, 2]])
    with pytest.raises(ValueError):  # noqa: PT011  what SciPy and NumPy say
        read_vectors({**whole, **damage})


def test_numbers_of_numpy_become_plain():
    """JSON is given plain numbers, booleans and texts for those of NumPy, and nothing else."""
    for value, plain in ((np.float32(0.5), 0.5), (np.int8(3), 3), (np.bool_(True), True)):
        found = plain_number(value)
        assert (found, type(found)) == (plain, type(plain))
    assert json.loads(json.dumps({"C": np.int64(2)}, default=plain_number)) == {"C": 2}
    with pytest.raises(TypeError, match="must be numbers or text, got ndarray"):
        plain_number(np.ones(2))


WRONG = [
    *(None, True, -1, 0.5, 10**30, 10**400, "", "x", [], {}, [[]], [None], [True], ["x"]),
    *([10**400], [[10**400]], [-1], [2**64], {"a": 10**400}, [1, [2]], {"shape": [2, 2]}),
]


def saved(tmp_path, which="three"):
    """Return a path, and what the file of a model with all fields holds."""
    X, _, model = fitted(RBF(gamma=0.7), which, 15)
    sigmoids = [PlattSigmoid(1.0, 0.0)] * (3 if which == "three" else 1)
    predictor = Predictor.from_svc(model, scaler=MinMaxScaler().fit(X), sigmoids=sigmoids)
    names = [f"x{j}" for j in range(1, X.shape[1] - 1)]
    flagged = EncodedColumn("x0", fill=0.5, has_flag=True)  # two features
    columns = Encoding("label", (flagged, *map(EncodedColumn, names)))
    path = tmp_path / "model.json"
    replace(predictor, columns=columns).save(path)
    Predictor.load(path)
    return path, json.loads(path.read_text())


def fields(content):
    """Yield the way to every named field, and to the first entry of every list."""
    for key in content if isinstance(content, dict) else range(min(1, len(content))):
        yield [key]
        if isinstance(content[key], dict | list):
            yield from ([key, *rest] for rest in fields(content[key]))


def test_every_field_is_checked(tmp_path):
    """No wrong value of any field raises anything but a ValueError that names the file."""
    path, content = saved(tmp_path)
    refused = 0
    for way in fields(content):
        for value in WRONG:
            changed = copy.deepcopy(content)
            owner = changed
            for key in way[:-1]:
                owner = owner[key]
            owner[way[-1]] = value
            path.write_text(json.dumps(changed))
            try:
                Predictor.load(path)
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017  most values are refused, not all
                refused += 1
    assert refused > 0.8 * len(WRONG) * len(list(fields(content)))


NEWER = (
    r"^\S+ needs a newer span_hpo, which has written it: `version` must be at most "
    rf"{VERSION}, got {VERSION + 1}\.$"
)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '"version": 1',
            '"version": 1e999',
            "a whole number of at least 1, got inf",
        ),
        (
            '"version": 1',
            '"version": true',
            "a whole number of at least 1, got True",
        ),
        ('"version": 1', '"version": 0', "must say which version of the format it has"),
        ('"version": 1', '"version": "1"', "must say which version of the format it has"),
        ('"version": 1', f'"version": {VERSION + 1}', NEWER),
        ('"version": 1', '"version": ' + "9" * 400, "needs a newer span_hpo"),
        ('"gamma": 0.7', '"gamma": NaN', "NaN is no number of JSON"),
        ('"gamma": 0.7', '"gamma": Infinity', "Infinity is no number"),
        ('"gamma": 0.7', '"gamma": 1e999', "`kernel_parameters.gamma` must be finite"),
        ('"gamma": 0.7', '"gamma": 1' + "0" * 400, "`kernel_parameters.gamma` must be finite"),
        ('"gamma": 0.7', '"gamma": 1' + "0" * 5000, "Exceeds the limit"),
        ('"gamma": 0.7', '"gamma": 0.7, "gamma": 0.8', "a name occurs twice"),
        ('"labels": [0', '"labels": [9223372036854775808', "`labels` must be whole numbers"),
        ('"n_support": [', '"n_support": [1e999, ', "`n_support` must be a list of whole"),
        ('"target": "label"', '"target": "\\ud800"', "can't encode"),
        ('"fill": 0.5', '"fill": 1e999', r"`columns.features\[0\].fill` must be finite"),
        ('"fill": 0.5', '"fill": "u"', "`fill` of column 'x0' must be a number, got 'u'"),
        ('"fill": 0.5, ', "", "`fill` of column 'x0' must be given, because it has a flag"),
        ('"flag": true', '"flag": 2', r"`columns.features\[0\].flag` must be one of"),
        ('"parameters": {}', '"parameters": ' + "[" * 100_000, "recursion|Stack overflow"),
    ],
)
def test_numbers_and_names_that_json_can_hold_but_models_cannot(old, new, message, tmp_path):
    """Numbers beyond a float or 64 bits, NaN, repeated names and half characters are refused."""
    path, _ = saved(tmp_path)
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(ValueError, match=message):
        Predictor.load(path)


def test_wide_sparse_vectors_take_no_memory(tmp_path):
    """Vectors with 600 million columns are as small as their entries, and predict the same."""
    path, _ = saved(tmp_path, "two")
    whole = json.loads(path.read_text()) | {"scaling": None, "columns": None}
    n = len(whole["support_vectors"])
    narrow = {"starts": list(range(n + 1)), "values": [1.0] * n}
    found = []
    for d in (n, 600_000_000):
        features = [*range(n - 1), d - 1]
        vectors = {"shape": [n, d], "features": features, **narrow}
        path.write_text(json.dumps(whole | {"support_vectors": vectors}))
        tracemalloc.start()
        rows = sparse.csr_array(([2.0, 1.0], ([0, 1], [1, d - 1])), shape=(3, d))
        found.append(Predictor.load(path).decision_function(rows))
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()
    np.testing.assert_array_equal(*found)


def test_scaling_of_some_features_must_fit(tmp_path):
    """Features that are scaled are increasing, not more than there are, and have no shifts."""
    path, content = saved(tmp_path, "two")
    d = len(content["scaling"]["shift"])
    for scaling in (
        {"shift": [0.0, 0.0], "factor": [1.0, 1.0], "features": [1, 1]},
        {"shift": [0.0, 0.0], "factor": [1.0, 1.0], "features": [1, d]},
        {"shift": [0.0, 1.0], "factor": [1.0, 1.0], "features": [1, 2]},
        {"shift": [0.0], "factor": [1.0, 1.0], "features": [1, 2]},
    ):
        path.write_text(json.dumps(content | {"scaling": scaling}))
        with pytest.raises(ValueError, match="`scaling"):
            Predictor.load(path)
    scaling = {"shift": [0.0, 0.0], "factor": [1.0, 2.0], "features": [1, 2]}
    path.write_text(json.dumps(content | {"scaling": scaling}))
    assert Predictor.load(path).scaling.features.tolist() == [1, 2]


OLD = Path(__file__).with_name("written_by_0_1")


def rows_of_0_1():
    """Return the rows to which the models of the files were fitted."""
    X, y = two_moons(30, seed=1)
    table = {"x": X[:, 0].round(2), "z": X[:, 1].round(2), "town": ["a", "b", "c"] * 10}
    table["x"][4] = np.nan
    labels = np.where(y > 0, "good", "bad")
    counts = csr_array(np.maximum(X.round(2), 0))
    return pd.DataFrame(table), labels, counts, np.where(X[:, 0] > 1, 2, (y > 0).astype(int))


def test_files_of_0_1_still_load():
    """Models that version 0.1 has written predict what the same fit predicts today."""
    table, labels, counts, three = rows_of_0_1()
    fixed = {"kernel": RBF(gamma=2.0), "weighting": UniformCost(1.5)}
    of_table = SpanSVC(**fixed, impute="indicator", scale="standard").fit(table, labels)
    of_counts = SpanSVC(**fixed).fit(counts, three)
    for name, model, rows in (("table", of_table, table), ("sparse", of_counts, counts)):
        old = Predictor.load(OLD / f"{name}.json")
        assert old.labels.tolist() == model.classes_.tolist()
        np.testing.assert_array_equal(old.predict(rows), model.predict(rows))
        probabilities = model.predict_proba(rows)
        np.testing.assert_allclose(old.predict_proba(rows), probabilities, atol=1e-4)


def test_files_of_0_1_are_written_again_as_they_are(tmp_path):
    """Loading and saving an old file loses nothing that it holds."""
    for path in sorted(OLD.glob("*.json")):
        old = json.loads(path.read_text())
        assert old["version"] == 1
        Predictor.load(path).save(tmp_path / path.name)
        again = json.loads((tmp_path / path.name).read_text())
        assert {name: again[name] for name in old if name != "version"} == {
            name: value for name, value in old.items() if name != "version"
        }
