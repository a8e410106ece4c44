import json
import os

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC

from span_hpo import RBF, Linear, Polynomial, Predictor, SpanObjective, UniformCost

KERNELS = [RBF(gamma=0.7), Linear(), Polynomial(gamma=0.5, coef0=1.5, degree=2)]
SETS = {"two": load_breast_cancer, "three": load_iris, "ten": load_digits}


def fitted(kernel, which, count=200):
    """Return features, labels and a fitted model of a set with two, three or ten classes."""
    X, labels = SETS[which](return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:count]
    X, labels = MinMaxScaler().fit_transform(X)[chosen], labels[chosen]
    objective = SpanObjective(X, labels, kernel=kernel, weighting=UniformCost(C=3.0))
    return X, labels, objective.fit_model({})


def signed_values(model, X):
    """Return scikit-learn's decision values of the pairs, positive for the second class."""
    model.set_params(decision_function_shape="ovo")
    values = model.decision_function(X)
    return values if len(model.classes_) == 2 else -values


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


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_libsvm_reads_what_we_write(kernel, which, tmp_path):
    """libsvm-official predicts the same labels, and decision values to 1e-6."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, labels, model = fitted(kernel, which, 100)
    path = tmp_path / "model.txt"
    Predictor.from_svc(model).save_libsvm(path)
    theirs = svmutil.svm_load_model(str(path))
    rows = [{j + 1: value for j, value in enumerate(row) if value} for row in X.tolist()]
    predicted, _, values = svmutil.svm_predict(labels.tolist(), rows, theirs, "-q")
    np.testing.assert_array_equal(predicted, model.predict(X))
    expected = signed_values(model, X).reshape(len(X), -1)
    np.testing.assert_allclose(-np.array(values)[:, : expected.shape[1]], expected, atol=1e-6)


@pytest.mark.parametrize("which", SETS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_libsvm_round_trip(kernel, which, tmp_path):
    """What was written as text is read back to the last bit."""
    X, _, model = fitted(kernel, which)
    predictor = Predictor.from_svc(model)
    predictor.save_libsvm(tmp_path / "model.txt")
    loaded = Predictor.load_libsvm(tmp_path / "model.txt", n_features=X.shape[1])
    np.testing.assert_array_equal(loaded.decision_function(X), predictor.decision_function(X))
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


@pytest.mark.parametrize("which", SETS)
def test_models_of_libsvm_in_any_order_of_classes(which, tmp_path):
    """LIBSVM numbers classes as it meets them; ties are broken in that order."""
    svmutil = pytest.importorskip("libsvm.svmutil")
    X, labels = SETS[which](return_X_y=True)
    X = MinMaxScaler().fit_transform(X)
    order = np.argsort(-labels, kind="stable")[::3]
    X, labels = X[order], labels[order]
    rows = [{j + 1: value for j, value in enumerate(row)} for row in X.tolist()]
    theirs = svmutil.svm_train(labels.tolist(), rows, "-c 0.05 -g 0.5 -q")
    assert theirs.get_labels()[0] == labels.max()
    svmutil.svm_save_model(str(tmp_path / "model.txt"), theirs)
    ours = Predictor.load_libsvm(tmp_path / "model.txt", n_features=X.shape[1])
    rng = np.random.default_rng(0)
    Z = rng.uniform(size=(500, X.shape[1]))  # far from the data votes tie
    rows = [{j + 1: value for j, value in enumerate(row)} for row in Z.tolist()]
    predicted, _, values = svmutil.svm_predict([0] * 500, rows, theirs, "-q")
    np.testing.assert_array_equal(ours.predict(Z), predicted)
    own = -ours.decision_function(Z).reshape(500, -1)
    np.testing.assert_allclose(own, np.array(values)[:, : own.shape[1]], atol=1e-6)


@pytest.mark.parametrize(
    "scaler",
    [
        MinMaxScaler((-1, 1)),
        StandardScaler(),
        StandardScaler(with_mean=False),
        StandardScaler(with_std=False),
    ],
)
def test_scaling_travels_with_the_model(scaler, tmp_path):
    """A model that knows its scaling takes raw features."""
    X, labels = load_iris(return_X_y=True)
    model = SVC(C=2.0, gamma=0.5).fit(scaler.fit_transform(X), labels)
    Predictor.from_svc(model, scaler=scaler).save(tmp_path / "m.json")
    loaded = Predictor.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(scaler.transform(X)))
    np.testing.assert_allclose(
        loaded.decision_function(X), signed_values(model, scaler.transform(X)), atol=1e-9
    )
    for wrong in (X[:, :1], X[0]):
        with pytest.raises(ValueError, match=r"`X` must have shape \(rows, 4\)"):
            loaded.predict(wrong)


def test_scalers_that_cannot_be_kept():
    """Another object, one that clips, or one of other features is refused."""
    X, labels = load_iris(return_X_y=True)
    model = SVC(C=2.0, gamma=0.5).fit(X, labels)
    for scaler, kind, message in (
        (object(), TypeError, "must be a fitted MinMaxScaler, MaxAbsScaler or Stand"),
        (MinMaxScaler(clip=True).fit(X), ValueError, "must not clip"),
        (StandardScaler().fit(X[:, :2]), ValueError, "must scale the 4 features"),
    ):
        with pytest.raises(kind, match=message):
            Predictor.from_svc(model, scaler=scaler)
    with pytest.raises(ValueError, match="must not have `break_ties`"):
        Predictor.from_svc(SVC(gamma=0.5, break_ties=True).fit(X, labels))


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
    """Another kernel, or a width in words, is named."""
    X, labels = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"one of the kernels .*, got 'sigmoid'"):
        Predictor.from_svc(SVC(kernel="sigmoid").fit(X, labels))
    with pytest.raises(ValueError, match="a number as `gamma`, got 'scale'"):
        Predictor.from_svc(SVC().fit(X, labels))


def damaged_json():
    """Yield contents that are not a model, and what is said about them."""
    _, _, model = fitted(RBF(gamma=0.7), "three", 60)
    predictor = Predictor.from_svc(model)
    yield "{", "must be a model in JSON, got a damaged file"
    yield "[1, 2]", "must be a model that Predictor.save has written"
    yield '{"format": "other"}', "must be a model that Predictor.save has written"
    yield '{"format": "span_hpo model", "version": 99}', "must have version 1"
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


def test_damaged_libsvm_files_are_refused(tmp_path):
    """Truncated, foreign and binary files give a clear error, wherever they are cut."""
    _, _, model = fitted(RBF(gamma=0.7), "three", 60)
    path = tmp_path / "model.txt"
    Predictor.from_svc(model).save_libsvm(path)
    text = path.read_text()
    lines = text.splitlines()
    for count in range(len(lines)):
        path.write_text("\n".join(lines[:count]))
        with pytest.raises(ValueError, match="model"):
            Predictor.load_libsvm(path)
    for old, new, message in (
        ("c_svc", "nu_svr", "type c_svc, got 'nu_svr'"),
        ("kernel_type rbf", "kernel_type sigmoid", "one of the kernels"),
        ("gamma 0.7", "gamma x", "could not convert"),
        (":", "?", "model"),
        ("nr_class 3", "nr_class 7", "3 labels of 7 classes"),
        (" 1:", " 0:", "numbered from 1"),
        (" 2:", " 1:", "each once"),
        (" 4:", " 4000000000000:", "features where"),
    ):
        path.write_text(text.replace(old, new))
        with pytest.raises(ValueError, match=message):
            Predictor.load_libsvm(path)
    path.write_text(text)
    with pytest.raises(ValueError, match="4 features where 2 are wanted"):
        Predictor.load_libsvm(path, n_features=2)
    path.write_bytes(b"\xff\xfe\x00binary")
    with pytest.raises(ValueError, match="got a binary file"):
        Predictor.load_libsvm(path)


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


def test_parameters_that_json_does_not_know(tmp_path):
    """What cannot be written is named, and leaves no file."""
    _, _, model = fitted(Linear(), "two", 60)
    predictor = Predictor.from_svc(model, parameters={"kernel": object()})
    with pytest.raises(TypeError, match="must be numbers and text, got object"):
        predictor.save(tmp_path / "model.json")
    assert not list(tmp_path.iterdir())
