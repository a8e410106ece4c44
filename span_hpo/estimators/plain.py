"""Turn a fitted model into plain objects of scikit-learn, which other tools can read."""

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from span_hpo.calibration import PlattSigmoid
from span_hpo.io import Encoding
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.runtime import Array, FloatArray

_STEP = 1e-4  # step of the probability between two knots
_LEAST_TAIL = 1e-9  # smallest probability of a knot
_TAIL_KNOTS = 100  # number of knots between the smallest probability and the first step
_MARGIN = 1e-5  # least distance of a probability from 1/2, beyond the rounding of single precision
_GAP = 1e-6  # largest distance of the knots at the cut from it, in units of the margin
_GAP_STEPS = 1e-3  # the same in units of the least distance of knots
_GAP_ROUNDINGS = 8  # least distance of the knots at the cut, in roundings of single precision
_FOLDS = 2  # least number of folds of a calibrated classifier
_GROWTH = 4.0  # growth of the distances of further knots around the cut
_FARTHEST = 1e30  # largest knot: beyond all decision values, and far from overflow


def as_plain(
    svc: SVC,
    scaler: Any,
    sigmoids: Sequence[PlattSigmoid],
    classes: Array,
    *,
    cut: float = 0.0,
    encoding: Encoding | None = None,
    feature_names: Array | None = None,
    factors: FloatArray | None = None,
) -> Pipeline:
    """Return a fitted model as a pipeline of scikit-learn's own classes.

    The steps are the scaler, if there is one, for a kernel with a width for each feature a
    ``StandardScaler`` that multiplies features by the roots of their widths, and the classifier.
    For two classes, the classifier
    is a ``CalibratedClassifierCV`` of the fitted ``SVC``. Its calibrator is an
    ``IsotonicRegression`` whose knots lie on Platt's sigmoid, with steps of 1e-4, but which stays
    on the side of 1/2 that the predicted class asks for. Thus its labels, which are the more
    probable classes, are those of the decision values, and its probabilities differ by less than
    1e-4 from those that `class_probabilities` returns for the predicted classes, also where a
    converter takes the nearest knot instead of the line between two, as skl2onnx does. With a
    `cut` other than 0, the predicted classes are those of the cut: rows between the decision value
    of probability 1/2 and the cut have a probability close to 1/2, whatever the sigmoid says. For
    more classes, the classifier is the ``SVC`` itself, with the same labels and without
    probabilities.

    Parameters
    ----------
    svc
        Fitted ``SVC`` with kernel "rbf", "linear" or "poly", or a subclass with the costs of its
        rows, which the result does not hold.
    scaler
        Fitted scaler, or None.
    sigmoids
        Sigmoid of every pair of classes, of which two classes have one.
    classes
        Labels of the classes: text, whole numbers, or True and False.
    cut
        Decision value from which on the second of two classes is predicted.
    encoding
        Encoding of the columns that the model was fitted to, which must be None.
    feature_names
        Names of the features, if the model was fitted to a DataFrame.
    factors
        Factor of each scaled feature, shape (d,), on which the model works, or None for 1.

    Returns
    -------
    Fitted pipeline. Its parts are not meant to be fitted again: a clone has neither the costs of
    the rows nor the calibration.

    Raises
    ------
    ValueError
        If the kernel, the labels or the columns are others.

    Notes
    -----
    Other objects were tried, and do not do. A sigmoid as the calibrator predicts the second class
    where its probability exceeds 1/2, which is not where the decision value is positive: one row in
    five has another label if classes are rare and balanced by costs. The sigmoid of the ``SVC``
    (``probA_``) is deprecated. For several classes, ``CalibratedClassifierCV`` judges each class
    against the rest, and elects others than the votes of the pairs. No public class couples pairs.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.calibration import PlattSigmoid
    >>> from span_hpo.estimators import as_plain
    >>> objective = SpanObjective([[0.0], [1.0], [3.0], [4.0]], ["a", "a", "b", "b"])
    >>> svc = objective.fit_model(objective.defaults()[0])
    >>> model = as_plain(svc, None, [PlattSigmoid(slope=2.0, offset=0.1)], svc.classes_)
    >>> model.predict([[0.5], [3.5]]).tolist()
    ['a', 'b']
    """
    if encoding is not None:
        raise ValueError(
            "A plain model needs features that are numbers, got columns of text, categories or "
            "missing values. Encode them before the fit, for instance with a ColumnTransformer."
        )
    if svc.kernel not in LIBSVM_KERNELS:
        got = repr(svc.kernel) if isinstance(svc.kernel, str) else "a callable"
        raise ValueError(
            f"A plain model needs one of the kernels {sorted(LIBSVM_KERNELS)}, which other tools "
            f"know, got {got}."
        )
    labels = _as_labels(classes)
    plain = _plain_svc(svc, labels)
    classifier = plain if len(labels) > 2 else _calibrated(plain, sigmoids[0], cut)
    steps = [] if scaler is None else [("scaler", copy.copy(scaler))]
    if factors is not None:
        steps.append(("widths", _multiplier(factors)))
    if feature_names is not None:
        first = steps[0][1] if steps else plain
        first.feature_names_in_ = feature_names
    return Pipeline([*steps, ("classifier", classifier)])


def _multiplier(factors: FloatArray) -> StandardScaler:
    """Return a scaler that multiplies features; it divides by infinity where a factor is 0."""
    multiplier = StandardScaler(with_mean=False)
    multiplier.fit(np.zeros((2, len(factors))))  # makes a complete object
    with np.errstate(divide="ignore"):
        multiplier.scale_ = 1 / factors
    multiplier.var_ = multiplier.scale_**2
    return multiplier


def _as_labels(classes: Array) -> Array:
    """Return labels in a type that converters know, or raise."""
    labels = np.asarray(classes)
    if labels.dtype.kind == "u":
        return labels.astype(np.int64)
    is_text = all(isinstance(label, str) for label in labels.tolist())
    is_whole = labels.dtype.kind in "if" and bool((labels == np.floor(labels)).all())
    if not (is_text or is_whole or labels.dtype.kind == "b"):
        raise ValueError(
            "A plain model needs labels that are text, whole numbers, or True and False, got "
            f"{labels.tolist()}."
        )
    return labels


def _plain_svc(svc: SVC, labels: Array) -> SVC:
    """Return an ``SVC`` with the parameters and the fitted state of one or of a subclass."""
    plain = SVC(**svc.get_params(deep=False))
    own = {"costs_", "feature_names_in_"}  # of the training rows, and of unscaled features
    vars(plain).update({name: value for name, value in vars(svc).items() if name not in own})
    plain.classes_ = labels
    return plain


def _calibrated(svc: SVC, sigmoid: PlattSigmoid, cut: float) -> CalibratedClassifierCV:
    """Return a classifier whose probabilities are those of a sigmoid."""
    # A fit to a row of each class makes a complete object, whose calibrator is then replaced.
    rows = [0, svc.n_support_[0]] * _FOLDS
    calibrated = CalibratedClassifierCV(FrozenEstimator(svc), method="isotonic", cv=_FOLDS)
    calibrated.fit(svc.support_vectors_[rows], np.tile(svc.classes_, _FOLDS))
    (pair,) = calibrated.calibrated_classifiers_
    pair.calibrators = [_calibrator(sigmoid, cut)]
    calibrated.estimator = pair.estimator = svc  # skl2onnx knows no FrozenEstimator
    return calibrated


def _calibrator(sigmoid: PlattSigmoid, cut: float) -> IsotonicRegression:
    """Return the calibrator of decision values, which exceeds 1/2 from the cut on."""
    # A threshold beyond all decision values is the largest number, around which no knots can lie.
    cut = float(np.clip(cut, -_FARTHEST, _FARTHEST))
    knots = _knots(sigmoid, cut)
    # Everything grows from knot to knot, because knots inside a constant piece would be dropped.
    rank = np.linspace(0.0, 1.0, len(knots))
    probability = (1 - _LEAST_TAIL) * sigmoid.probability(knots) + _LEAST_TAIL * rank
    above = knots > cut
    probability[above] = np.maximum(probability[above], 0.5 + _MARGIN * (1 + rank[above]))
    probability[~above] = np.minimum(probability[~above], 0.5 - _MARGIN * (2 - rank[~above]))
    return IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(knots, probability)


def _knots(sigmoid: PlattSigmoid, cut: float) -> FloatArray:
    """Return the decision values at which the sigmoid is read.

    The nearest ones to the cut stand close to it. Others at growing distances follow, so that the
    nearest knot of any value is on its own side of the cut, also in single precision.
    """
    knots, gap = np.array([cut - 1.0, cut + 1.0]), _GAP
    if sigmoid.slope > 0:
        tail = np.geomspace(_LEAST_TAIL, _STEP, _TAIL_KNOTS, endpoint=False)
        probability = np.concatenate([tail, np.arange(_STEP, 1 - _STEP / 2, _STEP), 1 - tail[::-1]])
        knots = (logit(probability) - sigmoid.offset) / sigmoid.slope
        gap = min(gap, _GAP_STEPS * 4 * _STEP / sigmoid.slope)  # the sigmoid rises by slope / 4
    gap = max(gap, _GAP_ROUNDINGS * float(np.spacing(np.float32(abs(cut)))))
    distance = np.abs(knots - cut)
    count = 1 + int(np.ceil(np.log(max(distance.max() / gap, 1.0)) / np.log(_GROWTH)))
    around = gap * _GROWTH ** np.arange(count)
    return np.unique(np.concatenate([knots[distance > gap], cut - around, cut + around]))
