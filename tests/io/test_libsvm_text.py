import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file
from sklearn.preprocessing import MinMaxScaler

from span_hpo import RBF, Predictor
from span_hpo.io.libsvm_text import read_libsvm
from tests.io.models import KERNELS, SETS, fitted, signed_values

SMALL = 2_000_000  # bytes; a column for each feature would take gigabytes


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
        ("nr_class 3", "nr_class 7", "3 labels for 7 classes"),
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


@pytest.mark.parametrize("share", [0.05, 1.0])
def test_libsvm_files(share, tmp_path):
    """What scikit-learn writes is read back, sparse if most of it is 0."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 20)) * (rng.random((30, 20)) < share)
    X[0, -1] = 1.0
    y = rng.choice([-1, 1], 30)
    file = tmp_path / "rows"
    dump_svmlight_file(X, y, str(file), zero_based=False, comment="a comment")
    found, labels = read_libsvm(file)
    assert hasattr(found, "toarray") == (share < 0.2)
    np.testing.assert_allclose(found.toarray() if share < 0.2 else found, X)
    assert labels.tolist() == y.tolist()
    same, _ = read_libsvm(file, 7)
    wide, _ = read_libsvm(file, 25)
    assert (same.shape[1], wide.shape[1]) == (20, 25)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty file"),
        ("1 1:2\n-1 1:x\n", "line 2 of .* got '-1 1:x'"),
        ("1 1:2\n\n-1 0:1\n", "line 3 of .* numbered from 1, got '-1 0:1'"),
        ("1 1:2\n-1 1:inf\n", "line 2 of .*"),
        ("1 1:2\nnan 1:1\n", "line 2 of .*"),
        ("1 1:2\n1 1\n", "line 2 of .*"),
        ("1 1:2\n1 3:1 2:1\n", "line 2 of .* in increasing order"),
        ("1 1:2\n1 3:1 3:1\n", "line 2 of .* in increasing order"),
        ("1 1:2\n1 99999999999999999999:1\n", "must .* numbered from 1"),
        ("1 1:2\n1 100000000:1\n", "from 1 to at most 10000000, got 100000000"),
        ("1\n-1\n", "must have a feature"),
        ("a,b\n1,2\n", "line 1 of .*"),
    ],
)
def test_bad_libsvm_files_are_named(text, message, tmp_path):
    """Messages tell the line."""
    file = tmp_path / "rows"
    file.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_libsvm(file)


@pytest.mark.parametrize("last", [7, 499_999_999])
def test_features_that_no_vector_uses_cost_nothing(last, tmp_path):
    """A small model with a large number of a feature is small, and predicts by its formula."""
    path = tmp_path / "model.txt"
    path.write_text(
        "svm_type c_svc\nkernel_type rbf\ngamma 0.5\nnr_class 2\ntotal_sv 2\nrho 0.25\n"
        f"label 1 -1\nnr_sv 1 1\nSV\n1 1:1\n-1 {last}:1\n"
    )
    tracemalloc.start()
    model = Predictor.load_libsvm(path)
    rows = sparse.csr_array(([2.0, 1.0], ([0, 1], [2, last - 1])), shape=(3, last))
    values = model.decision_function(rows)
    model.save_libsvm(tmp_path / "again.txt")
    model.save(tmp_path / "again.json")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Squared distances to the two vectors, e_1 and e_last, are 5 and 5, 2 and 0, 1 and 1.
    expected = [0.25, 0.25 - np.exp(-1.0) + 1, 0.25]
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert peak < SMALL
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 2000
    loaded = Predictor.load(tmp_path / "again.json")
    np.testing.assert_array_equal(loaded.decision_function(rows), values)


@pytest.mark.parametrize("label", ["label 1", "label", "label 1 99999999999", "label 1 1"])
def test_labels_of_a_model_are_two_or_more_numbers(label, tmp_path):
    """One label, none, one beyond LIBSVM's numbers or one twice is refused."""
    path = tmp_path / "model.txt"
    count = len(label.split()) - 1
    path.write_text(
        f"svm_type c_svc\nkernel_type linear\nnr_class {count}\ntotal_sv 2\nrho 0\n"
        f"{label}\nnr_sv 1 1\nSV\n1 1:1\n-1 1:2\n"
    )
    with pytest.raises(ValueError, match="must be a whole LIBSVM model, got a damaged one"):
        Predictor.load_libsvm(path)


def test_counts_that_overflow_are_refused(tmp_path):
    """Numbers of support vectors whose sum wraps around 64 bits to the right one are wrong."""
    path = tmp_path / "model.txt"
    path.write_text(
        "svm_type c_svc\nkernel_type linear\nnr_class 2\ntotal_sv 2\nrho 0\nlabel 1 -1\n"
        f"nr_sv {2**63} {2**63 + 2}\nSV\n1 1:1\n-1 1:2\n"
    )
    with pytest.raises(ValueError, match="numbers above 2147483647"):
        Predictor.load_libsvm(path)


def test_the_fault_of_a_long_line_is_found(tmp_path):
    """A wrong word at the beginning of a long line is shown, without copies of the whole line."""
    file = tmp_path / "rows"
    file.write_text("1 1:1\n1 x" + " 1" * 5_000_000)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 2 of .* got '1 x 1 1"):
        read_libsvm(file)
    assert tracemalloc.get_traced_memory()[1] < 5 * file.stat().st_size
    tracemalloc.stop()


def test_long_lines_are_read(tmp_path):
    """A line of many features, before and after others, is read like a short one."""
    file = tmp_path / "rows"
    long = " ".join(f"{j}:0.5" for j in range(1, 200_001))
    file.write_text(f"1 1:1\n-1 {long}\n1 2:1\n1 {long} # a comment")
    X, y = read_libsvm(file)
    assert (X.shape, X.sum(), y.tolist()) == ((4, 200_000), 200_002.0, [1, -1, 1, 1])
