"""Plain objects of scikit-learn, and the tools that read them."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, make_blobs, make_classification
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    Laplacian,
    Linear,
    Polynomial,
    PowerScore,
    SpanSVC,
    UniformCost,
)
from span_hpo.calibration import PlattSigmoid, class_probabilities
from span_hpo.estimators import as_plain
from tests.problems import two_moons
from tests.relevant import RELEVANT, two_of_twelve

# Warnings of converters and of Python's own libraries; the plain objects themselves raise none.
of_converters = pytest.mark.filterwarnings("ignore")
KERNELS = {"rbf": RBF(gamma=2.0), "linear": Linear(), "poly": Polynomial(gamma=1.0)}


def plain_of(model, **settings):
    """Return the plain form of a fitted estimator."""
    return as_plain(
        model.estimator_,
        model.scaler_,
        model.as_predictor().sigmoids,
        model.classes_,
        **settings,
    )


def rare_classes(count=300, seed=0):
    """Return rows of which one in ten is positive."""
    return make_classification(count, weights=[0.9], flip_y=0.05, random_state=seed)


def parts(pipeline):
    """Yield the estimators that a pipeline consists of, down to the innermost."""
    for _, step in pipeline.steps:
        yield step
        for pair in getattr(step, "calibrated_classifiers_", ()):
            yield pair.estimator
            yield from pair.calibrators


@pytest.mark.parametrize("scale", ["minmax", "standard", None])
@pytest.mark.parametrize("kernel", KERNELS)
def test_labels_and_probabilities_are_those_of_the_model(kernel, scale):
    """Every label is the same, and probabilities differ in the fifth digit at most."""
    X, y = two_moons(200, seed=1)
    new = np.random.default_rng(0).normal(size=(2000, 2))
    model = SpanSVC(KERNELS[kernel], ClassCosts([2.0, 0.5]), scale=scale).fit(X, y)
    plain = plain_of(model)
    np.testing.assert_array_equal(plain.predict(new), model.predict(new))
    np.testing.assert_allclose(plain.predict_proba(new), model.predict_proba(new), atol=3e-5)
    assert [type(part).__module__.split(".")[0] for part in parts(plain)] == ["sklearn"] * len(
        list(parts(plain))
    )


def test_rare_classes_keep_their_labels():
    """Where the sigmoid and the decision value disagree, as in a fifth of the rows, both agree."""
    X, y = rare_classes()
    new, _ = rare_classes(2000, seed=1)
    model = SpanSVC(RBF(gamma=0.02), ClassCosts([1.0, 10.0]), scale="standard").fit(X, y)
    (sigmoid,) = model.as_predictor().sigmoids
    values = model.decision_function(new)
    assert np.mean((sigmoid.probability(values) > 0.5) != (values > 0)) > 0.02
    plain = plain_of(model)
    np.testing.assert_array_equal(plain.predict(new), model.predict(new))
    np.testing.assert_allclose(plain.predict_proba(new), model.predict_proba(new), atol=3e-5)


LARGEST = float(np.finfo(float).max)
SIGMOIDS = [(2.0, 0.3), (2.0, -3.0), (1e-6, 0.2), (1e6, -0.1), (0.0, -2.0), (0.0, 2.0), (1.0, 40.0)]


@pytest.mark.parametrize("cut", [0.0, -0.7, 5.0])
@pytest.mark.parametrize(("slope", "offset"), SIGMOIDS)
def test_any_sigmoid_has_its_knots(slope, offset, cut):
    """Flat, steep and far-off sigmoids keep labels and probabilities, also at nearest knots."""
    svc = SVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    sigmoid = PlattSigmoid(slope, offset)
    classifier = as_plain(svc, None, [sigmoid], svc.classes_, cut=cut).named_steps["classifier"]
    (pair,) = classifier.calibrated_classifiers_
    (calibrator,) = pair.calibrators
    rng = np.random.default_rng(0)
    scale = 1 / slope if slope else 1.0
    near = cut + np.concatenate([rng.normal(size=500), 1e-4 * rng.normal(size=100)])
    values = np.concatenate([near, scale * 10 * rng.normal(size=500), np.geomspace(1e-4, 1e3, 99)])
    values = values[np.abs(values - cut) > 1e-5 * max(1.0, abs(cut))]
    predicted = (values > cut).astype(int)
    wanted = class_probabilities([sigmoid], values, predicted)[:, 1]
    found = calibrator.predict(values)
    np.testing.assert_allclose(found, wanted, atol=3e-5)
    np.testing.assert_array_equal(found > 0.5, predicted)
    # As skl2onnx reads it: the nearest knot, in single precision.
    knots = calibrator.X_thresholds_.astype(np.float32)
    single = np.clip(values.astype(np.float32), knots[0], knots[-1])
    nearest = calibrator.y_thresholds_[np.abs(single[:, None] - knots).argmin(axis=1)]
    np.testing.assert_allclose(nearest, wanted, atol=9e-5)
    np.testing.assert_array_equal(nearest > 0.5, predicted)


@pytest.mark.parametrize("cut", [LARGEST, -LARGEST, 1e40, -1e40])
@pytest.mark.parametrize(("slope", "offset"), [*SIGMOIDS, (1e-300, 0.2)])
def test_a_cut_beyond_all_values_predicts_one_class(slope, offset, cut):
    """Every row has the class that the largest and the smallest threshold ask for."""
    svc = SVC(gamma=1.0).fit([[0.0], [1.0]], [0, 1])
    plain = as_plain(svc, None, [PlattSigmoid(slope, offset)], svc.classes_, cut=cut)
    new = np.linspace(-3, 3, 100)[:, None]
    np.testing.assert_array_equal(plain.predict(new), np.full(100, int(cut < 0)))
    assert np.isfinite(plain.predict_proba(new)).all()


@of_converters
def test_onnx_with_a_threshold_beyond_all_values():
    """Where decision values tell nothing and costs decide, one class is predicted everywhere."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(80, 2)), 6).astype(np.float32).astype(float)
    y = (X[:, 0] + rng.normal(size=80) > 1).astype(int)
    model = SpanSVC(RBF(gamma=100.0), UniformCost(1e-3), miss_cost=9).fit(X, y)
    assert abs(model.threshold_) > 1e300
    np.testing.assert_array_equal(model.as_sklearn().predict(X), model.predict(X))
    np.testing.assert_array_equal(answers_of_onnx(model.as_sklearn(), X)[0], model.predict(X))


@pytest.mark.parametrize("threshold", [0.1, 0.8])
def test_a_threshold_bounds_probabilities_at_one_half(threshold):
    """Probabilities are those of the model, but close to 1/2 where they contradict the label."""
    X, y = rare_classes()
    new, _ = rare_classes(2000, seed=1)
    model = SpanSVC(RBF(gamma=0.02), UniformCost(1.0), threshold=threshold, scale="standard")
    model.fit(X, y)
    plain, predicted = model.as_sklearn(), model.predict(new)
    np.testing.assert_array_equal(plain.predict(new), predicted)
    (sigmoid,) = model.as_predictor().sigmoids
    natural = sigmoid.probability(model.decision_function(new))
    against = (natural > 0.5) != predicted
    assert against.any()
    found = plain.predict_proba(new)[:, 1]
    np.testing.assert_allclose(found, np.where(against, 0.5, natural), atol=3e-5)


def test_costs_of_rows_become_a_plain_svc():
    """A model with a cost for each row is an `SVC` with the same values, and nothing else."""
    X, y = two_moons(120)
    scores = np.random.default_rng(0).random(120)
    model = SpanSVC(RBF(gamma=1.0), PowerScore(C=1.0, tau=1.0)).fit(X, y, scores=scores)
    assert type(model.estimator_) is not SVC
    plain = plain_of(model)
    (svc,) = [part for part in parts(plain) if isinstance(part, SVC)]
    assert type(svc) is SVC
    assert not hasattr(svc, "costs_")
    assert hasattr(model.estimator_, "costs_")  # the model itself is as it was
    scaled = model.scaler_.transform(X)
    np.testing.assert_array_equal(
        svc.decision_function(scaled), model.estimator_.decision_function(scaled)
    )


@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_several_classes_keep_their_labels(n_classes):
    """The classifier is an `SVC` with LIBSVM's votes, also where they are equal."""
    X, y = make_blobs(40 * n_classes, centers=n_classes, cluster_std=6, random_state=n_classes)
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.0)).fit(X, y)
    plain, new = plain_of(model), 2 * X
    np.testing.assert_array_equal(plain.predict(new), model.predict(new))
    assert not hasattr(plain, "predict_proba")
    assert type(plain.named_steps["classifier"]) is SVC


def test_sparse_rows_stay_sparse():
    """A model of sparse features takes sparse rows."""
    X, y = two_moons(100)
    sparse = csr_array(np.where(np.abs(X) < 0.3, 0.0, X))
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(sparse, y)
    plain = plain_of(model)
    np.testing.assert_array_equal(plain.predict(sparse), model.predict(sparse))
    np.testing.assert_allclose(plain.predict_proba(sparse), model.predict_proba(sparse), atol=3e-5)


@pytest.mark.parametrize("scale", ["minmax", None])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_names_of_features_are_known(scale, n_classes):
    """A DataFrame with the columns of the fit raises no warning, and one with others an error."""
    X, y = make_blobs(90, centers=n_classes, random_state=0)
    frame = pd.DataFrame(X, columns=["width", "height"])
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0), scale=scale).fit(frame, y)
    plain = plain_of(model, feature_names=model.feature_names_in_)
    np.testing.assert_array_equal(plain.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="feature names should match"):
        plain.predict(frame.rename(columns={"width": "depth"}))
    assert not hasattr(model.scaler_, "feature_names_in_")


LABELS = {
    "text": ["no", "yes"],
    "objects": np.array(["no", "yes"], dtype=object),
    "signs": [-1, 1],
    "whole": [-1.0, 1.0],
    "truth": [False, True],
    "bytes": np.array([3, 250], dtype=np.uint8),
}


@pytest.mark.parametrize("kind", LABELS)
def test_labels_have_their_types(kind):
    """Text, whole numbers and truth values are predicted as they are."""
    X, codes = two_moons(60)
    y = np.asarray(LABELS[kind])[(codes > 0).astype(int)]
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    found = plain_of(model).predict(X)
    np.testing.assert_array_equal(found, model.predict(X))


def refused(**settings):
    X, y = two_moons(40)
    given = {"svc": SVC(gamma=1.0).fit(X, y), "scaler": None, "classes": np.array([-1, 1])}
    return as_plain(**{**given, "sigmoids": [PlattSigmoid(1.0, 0.0)], **settings})


def test_what_other_tools_do_not_know_is_refused():
    """Kernels of functions and matrices, fractions as labels and columns of text: one sentence."""
    X, y = two_moons(40)
    for kernel in (Laplacian(gamma=1.0), lambda a, b: a @ b.T):
        model = SpanSVC(kernel, UniformCost(1.0)).fit(X, y)
        with pytest.raises(ValueError, match=r"one of the kernels \['linear', 'poly', 'rbf'\]"):
            refused(svc=model.estimator_)
    with pytest.raises(ValueError, match=r"kernels .* got 'precomputed'"):
        refused(svc=SVC(kernel="precomputed").fit(X @ X.T, y))
    for labels in ([0.5, 1.5], np.array(["2026-01-01", "2026-01-02"], dtype="datetime64[D]")):
        with pytest.raises(ValueError, match="labels that are text, whole numbers, or True and"):
            refused(classes=np.asarray(labels))
    frame = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "u", "v")})
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(frame, y)
    with pytest.raises(ValueError, match="needs features that are numbers, got columns of text"):
        plain_of(model, encoding=model.encoding_)


def answers_of_onnx(pipeline, X):
    """Return what the ONNX runtime says, without any converter of ours."""
    to_onnx = pytest.importorskip("skl2onnx").to_onnx
    runtime = pytest.importorskip("onnxruntime")
    options = {"zipmap": False} if hasattr(pipeline, "predict_proba") else None
    model = to_onnx(pipeline, X[:1].astype(np.float32), options=options)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    return session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})


@of_converters
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_onnx_gives_the_same_answers(kernel, scale):
    """The ONNX runtime has the same labels, and probabilities within 1e-4."""
    X, y = two_moons(200, seed=1)
    new = np.random.default_rng(0).normal(size=(2000, 2)).astype(np.float32).astype(float)
    model = SpanSVC(KERNELS[kernel], ClassCosts([2.0, 0.5]), scale=scale).fit(X, y)
    labels, probabilities = answers_of_onnx(plain_of(model), new)
    np.testing.assert_array_equal(labels, model.predict(new))
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=1e-4)


@of_converters
@pytest.mark.parametrize("cost", [1.0, 1000.0])
def test_onnx_on_real_data(cost):
    """On 30 features of real rows, also with a large cost."""
    X, y = load_breast_cancer(return_X_y=True)
    y = np.array(["malignant", "benign"])[y]
    model = SpanSVC(RBF(gamma=0.1), UniformCost(cost)).fit(X[::2], y[::2])
    new = X[1::2].astype(np.float32).astype(float)
    labels, probabilities = answers_of_onnx(plain_of(model), new)
    np.testing.assert_array_equal(labels, model.predict(new))
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=1e-4)


@of_converters
def test_onnx_with_rare_classes_and_costs_of_rows():
    """Labels that the sigmoid alone would change, and costs that only the fit knows."""
    X, y = rare_classes()
    new = rare_classes(2000, seed=1)[0].astype(np.float32).astype(float)
    weight = np.random.default_rng(0).uniform(0.1, 2.0, len(y))
    model = SpanSVC(RBF(gamma=0.02), ClassCosts([1.0, 10.0]), scale="standard").fit(X, y, weight)
    labels, probabilities = answers_of_onnx(plain_of(model), new)
    np.testing.assert_array_equal(labels, model.predict(new))
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=1e-4)


@of_converters
@pytest.mark.parametrize("kind", LABELS)
def test_onnx_knows_the_labels(kind):
    """Labels of every type come back, numbers as whole ones."""
    X, codes = two_moons(60)
    X = X.astype(np.float32).astype(float)
    y = np.asarray(LABELS[kind])[(codes > 0).astype(int)]
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    np.testing.assert_array_equal(answers_of_onnx(plain_of(model), X)[0], model.predict(X))


@of_converters
@pytest.mark.parametrize("n_classes", [3, 4, 7])
def test_onnx_votes_as_libsvm_does(n_classes):
    """Labels of several classes are the same, also where votes are equal."""
    X, y = make_blobs(40 * n_classes, centers=n_classes, cluster_std=6, random_state=n_classes)
    model = SpanSVC(RBF(gamma=2.0), UniformCost(1.0)).fit(X, y)
    new = (2 * X).astype(np.float32).astype(float)
    np.testing.assert_array_equal(answers_of_onnx(plain_of(model), new)[0], model.predict(new))


@of_converters
@pytest.mark.parametrize("n_classes", [2, 3])
def test_skops_reads_what_it_has_written(n_classes):
    """No type but scikit-learn's own pair of classifier and calibrator is to be trusted."""
    skops = pytest.importorskip("skops.io")
    X, y = make_blobs(90, centers=n_classes, cluster_std=3, random_state=0)
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, y)
    written = skops.dumps(plain_of(model))
    unknown = skops.get_untrusted_types(data=written)
    assert set(unknown) <= {"sklearn.calibration._CalibratedClassifier"}
    read = skops.loads(written, trusted=unknown)
    np.testing.assert_array_equal(read.predict(X), model.predict(X))
    if n_classes == 2:
        np.testing.assert_allclose(read.predict_proba(X), model.predict_proba(X), atol=3e-5)


@of_converters
def test_mlflow_keeps_the_model(tmp_path, monkeypatch):
    """A saved model is loaded as scikit-learn's, and serves rows with names."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.chdir(tmp_path)
    mlflow = pytest.importorskip("mlflow.sklearn")
    from mlflow import pyfunc

    X, y = two_moons(80)
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(frame, y)
    mlflow.save_model(
        plain_of(model, feature_names=model.feature_names_in_),
        str(tmp_path / "model"),
        serialization_format="skops",
        skops_trusted_types=["sklearn.calibration._CalibratedClassifier"],
        pip_requirements=["scikit-learn"],
        input_example=frame.head(2),
    )
    read = mlflow.load_model(str(tmp_path / "model"))
    assert isinstance(read.named_steps["scaler"], MinMaxScaler)
    assert isinstance(read.named_steps["classifier"], CalibratedClassifierCV)
    np.testing.assert_array_equal(read.predict(frame), model.predict(frame))
    served = pyfunc.load_model(str(tmp_path / "model")).predict(frame)
    np.testing.assert_array_equal(served, model.predict(frame))


GAMMA = np.where(np.isin(np.arange(12), RELEVANT), 3.0, np.linspace(0, 0.1, 12))


@pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")
@pytest.mark.parametrize("scale", ["minmax", "standard", None])
def test_widths_of_features_become_a_scaler(scale):
    """A pipeline with a step of factors has the answers, also of features with width 0."""
    X, y = two_of_twelve(150)
    new = two_of_twelve(500, seed=1)[0]
    frame = pd.DataFrame(X, columns=list("abcdefghijkl"))
    model = SpanSVC(ARD(gamma=GAMMA), UniformCost(3.0), scale=scale).fit(frame, y)
    plain = model.as_sklearn()
    assert list(plain.named_steps)[-2:] == ["widths", "classifier"]
    named = pd.DataFrame(new, columns=frame.columns)
    np.testing.assert_array_equal(plain.predict(named), model.predict(named))
    np.testing.assert_allclose(plain.predict_proba(named), model.predict_proba(named), atol=3e-5)
    assert list(plain.feature_names_in_) == list(frame.columns)
    assert all(type(part).__module__.startswith("sklearn") for part in parts(plain))


@of_converters
@pytest.mark.parametrize("scale", ["minmax", None])
def test_onnx_knows_widths_of_features(scale):
    """The ONNX runtime has the same labels, and probabilities within 1e-4."""
    X, y = two_of_twelve(150)
    new = two_of_twelve(500, seed=1)[0].astype(np.float32).astype(float)
    model = SpanSVC(ARD(gamma=GAMMA), UniformCost(3.0), scale=scale).fit(X, y)
    labels, probabilities = answers_of_onnx(model.as_sklearn(), new)
    np.testing.assert_array_equal(labels, model.predict(new))
    np.testing.assert_allclose(probabilities, model.predict_proba(new), atol=1e-4)
