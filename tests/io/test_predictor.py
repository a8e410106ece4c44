import json
import os
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler
from sklearn.svm import SVC

from span_hpo import RBF, Linear, Predictor
from span_hpo.io import IMPUTE, Table, learned_encoding
from tests.io.models import KERNELS, SETS, fitted, signed_values


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_json_round_trip(kernel, which, tmp_path):
    """A model that was saved and loaded predicts as before, to the last bit."""
    X, _, model = fitted(kernel, which)
    predictor = Predictor.from_svc(model, parameters={"C": np.float64(3.0), "note": "x"})
    predictor.save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    np.testing.assert_array_equal(loaded.decision_function(X), predictor.decision_function(X))
    np.testing.assert_allclose(loaded.decision_function(X), signed_values(model, X), atol=1e-9)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.parameters == {"C": 3.0, "note": "x"}
    assert json.loads((tmp_path / "model.json").read_text())["kernel"] == predictor.kernel


def test_labels_of_every_kind(tmp_path):
    """Strings and floats come back; LIBSVM's format holds their numbers."""
    X, labels = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])
    for own in (names[labels], labels + 0.5):
        model = SVC(gamma=0.5).fit(X, own if own.dtype.kind == "U" else labels)
        model.classes_ = np.unique(own)
        predictor = Predictor.from_svc(model)
        predictor.save(tmp_path / "m.json")
        np.testing.assert_array_equal(
            Predictor.load(tmp_path / "m.json").predict(X), predictor.predict(X)
        )
        predictor.save_libsvm(tmp_path / "m.txt")
        numbers = Predictor.load_libsvm(tmp_path / "m.txt").predict(X)
        np.testing.assert_array_equal(np.unique(own)[numbers], predictor.predict(X))
    model.classes_ = np.array([1, 2, 2**40])  # more than LIBSVM's 32 bits
    Predictor.from_svc(model).save_libsvm(tmp_path / "m.txt")
    assert "label 0 1 2" in (tmp_path / "m.txt").read_text()


def test_sparse_model():
    """A model that was fitted on sparse features predicts for them."""
    X, labels = load_iris(return_X_y=True)
    model = SVC(gamma=0.5).fit(sparse.csr_matrix(X), labels)
    predictor = Predictor.from_svc(model)
    np.testing.assert_array_equal(predictor.predict(sparse.csr_matrix(X)), model.predict(X))


def test_models_that_cannot_be_exported():
    """Another kernel, a width in words, or a rule that breaks ties is named."""
    X, labels = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"one of the kernels .*, got 'sigmoid'"):
        Predictor.from_svc(SVC(kernel="sigmoid").fit(X, labels))
    with pytest.raises(ValueError, match="a number as `gamma`, got 'scale'"):
        Predictor.from_svc(SVC().fit(X, labels))
    with pytest.raises(ValueError, match="must not have `break_ties`"):
        Predictor.from_svc(SVC(gamma=0.5, break_ties=True).fit(X, labels))


def damaged_json():
    """Yield contents that are not a model, and what is said about them."""
    _, _, model = fitted(RBF(gamma=0.7), "three", 60)
    predictor = Predictor.from_svc(model)
    yield "{", "must be a model in JSON, got a damaged file"
    yield "[1, 2]", "must be a model that Predictor.save has written"
    yield '{"format": "other"}', "must be a model that Predictor.save has written"
    yield '{"format": "span_hpo model", "version": 99}', "needs a newer span_hpo"
    yield '{"format": "span_hpo model", "version": 1}', "must hold a whole model"
    for name, value in (
        ("kernel", "gauss"),
        ("offsets", [1.0]),
        ("n_support", [1, 2, 3]),
        ("coefficients", [[1.0]]),
        ("support_vectors", [["a"]]),
        ("kernel_parameters", {}),
        ("labels", None),
        ("labels", [1, 1, 2]),
        ("kernel", ["rbf"]),
        ("n_support", 3),
        ("scaling", {}),
        ("scaling", {"shift": [1.0], "factor": [1.0]}),
    ):
        yield (predictor, name, value), "must hold a whole model"


@pytest.mark.parametrize("case", range(17))
def test_damaged_json_is_refused(case, tmp_path):
    """Nothing but a whole model is loaded, and the error says what is wrong."""
    content, message = list(damaged_json())[case]
    path = tmp_path / "model.json"
    if isinstance(content, tuple):
        predictor, name, value = content
        predictor.save(path)
        whole = json.loads(path.read_text())
        content = json.dumps({**whole, name: value})
    path.write_text(content)
    with pytest.raises(ValueError, match=message):
        Predictor.load(path)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    """A model is written beside the old one and takes its place at the end."""
    _, _, model = fitted(Linear(), "two", 60)
    predictor = Predictor.from_svc(model)
    path = tmp_path / "model.json"
    predictor.save(path)
    before = path.read_bytes()

    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        predictor.save(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    monkeypatch.undo()
    link = tmp_path / "link.json"
    link.symlink_to(path)
    predictor.save(link)
    assert link.is_symlink()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(FileExistsError, match="not a file"):
        predictor.save(tmp_path / "pipe")


def test_rows_that_overflow_when_scaled_are_refused():
    """The error says what is wanted, before a kernel is computed."""
    X, labels = load_iris(return_X_y=True)
    scaler = MaxAbsScaler().fit(X * 1e-10)
    predictor = Predictor.from_svc(SVC(gamma=0.5).fit(X, labels), scaler=scaler)
    for rows in (np.full((1, 4), 1e300), sparse.csr_array(np.full((1, 4), 1e300))):
        with pytest.raises(ValueError, match="must hold finite numbers like those of the training"):
            predictor.predict(rows)


def test_many_rows_are_predicted_in_blocks():
    """Sparse rows that a scaling makes dense are never dense all at once."""
    rng = np.random.default_rng(0)
    X = rng.random((40, 2000))
    scaler = MinMaxScaler().fit(X)
    model = SVC(kernel="linear").fit(scaler.transform(X), np.arange(40) % 2)
    predictor = Predictor.from_svc(model, scaler=scaler)
    rows = sparse.random_array((20_000, 2000), density=1e-4, rng=rng, format="csr")
    tracemalloc.start()
    values = predictor.decision_function(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.5 * 8 * 20_000 * 2000
    few = rows[:50].toarray()
    np.testing.assert_allclose(values[:50], predictor.decision_function(few), atol=1e-9)


def test_rows_and_vectors_without_entries(tmp_path):
    """The kernel of empty rows is that of zeros: 1 for rbf, so that the coefficients add up."""
    path = tmp_path / "model"
    path.write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\n"
        "label 1 -1\nnr_sv 1 1\nSV\n1\n-0.5\n"
    )
    model = Predictor.load_libsvm(path).widened(1000)
    np.testing.assert_allclose(model.decision_function(sparse.csr_array((3, 1000))), 0.25 - 0.5)


def test_missing_values_are_filled_in_by_a_file(tmp_path):
    """A model that was fitted with `impute` predicts rows with missing values after loading."""
    rng = np.random.default_rng(0)
    X, labels = load_iris(return_X_y=True)
    X[rng.random(X.shape) < 0.1] = np.nan
    for impute in IMPUTE:
        names = [f"x{j}" for j in range(4)]
        table = Table.of(dict(zip(names, X.T, strict=True)))
        columns = learned_encoding(table, names, impute=impute)
        model = SVC(gamma=0.5).fit(columns.encoded(table), labels)
        Predictor.from_svc(model, columns=columns).save(tmp_path / "model.json")
        loaded = Predictor.load(tmp_path / "model.json")
        assert loaded.columns == columns
        want = model.predict(columns.encoded(table))
        for rows in (
            X,
            sparse.csr_array(X),
            pd.DataFrame(X, columns=names),
            columns.encoded(table),
        ):
            np.testing.assert_array_equal(loaded.predict(rows), want)


def test_missing_values_need_a_filling():
    """A model without `impute` refuses rows with missing values and says how to get one."""
    X, labels = load_iris(return_X_y=True)
    names = [f"x{j}" for j in range(4)]
    columns = learned_encoding(Table.of(dict(zip(names, X.T, strict=True))), names)
    predictor = Predictor.from_svc(SVC(gamma=0.5).fit(X, labels), columns=columns)
    X[3, 1] = np.nan
    message = r"none in 'x1' \(1 of 150 rows, .* row 4\)\. Fill them in, or fit with `impute`"
    for rows in (X, pd.DataFrame(X, columns=names)):
        with pytest.raises(ValueError, match=message):
            predictor.predict(rows)


def test_a_threshold_is_kept_in_both_formats(tmp_path):
    """Files of models without threshold stay as they were; others need a newer format."""
    X, _, model = fitted(RBF(gamma=0.7), "two", 100)
    plain = Predictor.from_svc(model)
    values = plain.decision_function(X)
    threshold = float(np.median(values))
    moved = Predictor.from_svc(model, threshold=threshold)
    expected = plain.labels[(values >= threshold).astype(int)]
    plain.save(tmp_path / "plain.json")
    moved.save(tmp_path / "moved.json")
    contents = [json.loads((tmp_path / f"{name}.json").read_text()) for name in ("plain", "moved")]
    assert [content["version"] for content in contents] == [1, 2]
    assert "threshold" not in contents[0]
    moved.save_libsvm(tmp_path / "moved.libsvm")
    loaded = Predictor.load(tmp_path / "moved.json")
    text = Predictor.load_libsvm(tmp_path / "moved.libsvm", n_features=X.shape[1])
    away = np.abs(values - threshold) > 1e-9  # one row may be the threshold itself
    for one in (moved, loaded, text):
        np.testing.assert_array_equal(one.predict(X)[away], expected[away])
    np.testing.assert_array_equal(loaded.decision_function(X), values)
    assert (moved.predict(X) != plain.predict(X)).any()


def test_a_threshold_for_several_classes_is_refused(tmp_path):
    """A file cannot ask for what has no meaning."""
    Predictor.from_svc(fitted(RBF(gamma=0.7), "three", 60)[2]).save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text(json.dumps({**content, "threshold": 0.5}))
    with pytest.raises(ValueError, match=r"`threshold` must be 0\.0, got 0\.5"):
        Predictor.load(tmp_path / "model.json")


@pytest.mark.parametrize("scaler", [None, MinMaxScaler()])
def test_factors_of_features(scaler, tmp_path):
    """A model of rescaled features takes the features as they are, with any scaling before."""
    X, y = load_iris(return_X_y=True)
    factors = np.array([0.1, 2.0, 0.0, 1.0])
    scaled = X if scaler is None else scaler.fit_transform(X)
    model = SVC(gamma=1.0).fit(scaled * factors, y)
    predictor = Predictor.from_svc(model, scaler=scaler, factors=factors)
    predictor.save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    expected = signed_values(model, scaled * factors)
    np.testing.assert_allclose(loaded.decision_function(X), expected, atol=1e-9)
    np.testing.assert_allclose(loaded.features(X), scaled * factors, atol=1e-12)
    assert json.loads((tmp_path / "model.json").read_text())["version"] == 1


def test_a_callable_kernel_is_refused_in_few_words():
    """The message does not print a function with all of its widths."""
    X, y = load_iris(return_X_y=True)
    model = SVC(kernel=lambda A, B: A @ B.T).fit(X, y)
    with pytest.raises(ValueError, match=r"\['linear', 'poly', 'rbf'\], got a callable\.$"):
        Predictor.from_svc(model)
