"""Keep a fitted model in a file, as JSON or in LIBSVM's text format, without pickle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from span_hpo.calibration import PlattSigmoid, class_probabilities
from span_hpo.io.atomic import write_text
from span_hpo.io.encoding import Encoding
from span_hpo.io.ensemble import EnsemblePredictor
from span_hpo.io.libsvm_text import damaged_model, model_parts, model_text
from span_hpo.io.model_json import (
    damaged_json,
    model_json,
    not_json,
    read_content,
    version_of,
    written_vectors,
)
from span_hpo.io.numbering import Numbering, is_dense, on_used_columns
from span_hpo.io.parts import check_parts
from span_hpo.io.scaling import Scaling, scaling_of
from span_hpo.io.tables import Table
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.runtime import Array, FloatArray, IndexArray
from span_hpo.solver import pairs_of, voted

_PREDICTED_AT_ONCE = 2**22  # largest number of kernel values or features that are held at a time


@dataclass(frozen=True, eq=False)
class Predictor:
    """A fitted SVM of two or more classes, independent of scikit-learn's classes.

    Attributes
    ----------
    kernel
        Name of the kernel: "rbf", "linear" or "poly".
    kernel_parameters
        Values of ``gamma``, ``coef0`` and ``degree``, as far as the kernel has them.
    labels
        Labels of the classes, shape (k,). A tie of votes goes to the first of them.
    support_vectors
        Support vectors, shape (n, d), class by class; an array, or sparse in compressed rows.
    n_support
        Number of support vectors of each class.
    coefficients
        ``y_i alpha_i`` in the fits with the other classes, shape (k - 1, n), in LIBSVM's order.
    offsets
        Offsets of the fits of all pairs, shape (k (k - 1) / 2,). A positive decision value is a
        vote for the second class of its pair.
    parameters
        Hyperparameters that led to the model, for the record.
    scaling
        Scaling of the features before prediction, or None.
    sigmoids
        Calibration of every pair of classes, for `predict_proba`, or None.
    columns
        Encoding of the table that the model was fitted to, or None.
    threshold
        Decision value from which on the second of two classes is predicted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from span_hpo import Predictor
    >>> X, y = load_iris(return_X_y=True)
    >>> predictor = Predictor.from_svc(SVC(C=2.0, gamma=0.5).fit(X, y))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     predictor.save(Path(folder) / "model.json")
    ...     loaded = Predictor.load(Path(folder) / "model.json")
    >>> loaded.predict(X[::50]).tolist()
    [0, 1, 2]
    """

    kernel: str
    kernel_parameters: dict[str, float]
    labels: Array
    support_vectors: Any
    n_support: Array
    coefficients: FloatArray
    offsets: FloatArray
    parameters: dict[str, Any] = field(default_factory=dict)
    scaling: Scaling | None = None
    sigmoids: tuple[PlattSigmoid, ...] | None = None
    columns: Encoding | None = None
    threshold: float = 0.0

    @classmethod
    def from_svc(
        cls,
        svc: Any,
        *,
        parameters: dict[str, Any] | None = None,
        scaler: Any = None,
        sigmoids: Sequence[PlattSigmoid] | None = None,
        columns: Encoding | None = None,
        threshold: float = 0.0,
        factors: FloatArray | None = None,
    ) -> "Predictor":
        """Return the predictor of a fitted ``SVC``.

        Parameters
        ----------
        svc
            A fitted ``sklearn.svm.SVC`` with kernel "rbf", "linear" or "poly" and a number as its
            `gamma`, such as `SpanObjective.fit_model` returns.
        parameters
            Hyperparameters to keep with the model.
        scaler
            The fitted ``MinMaxScaler``, ``MaxAbsScaler`` or ``StandardScaler`` of the features, if
            there was one.
        sigmoids, columns
            Calibration of every pair of classes, and encoding of a table; `SpanSVC.as_predictor`
            has both.
        threshold
            Decision value from which on the second of two classes is predicted.
        factors
            Factor of each feature after the scaler, shape (d,), on which the model works, as with a
            width for each feature; None if there are none.

        Raises
        ------
        ValueError, TypeError
            If the model or the scaler cannot be kept in a file.
        """
        if svc.kernel not in LIBSVM_KERNELS:
            got = repr(svc.kernel) if isinstance(svc.kernel, str) else "a callable"
            raise ValueError(
                f"`svc` must have one of the kernels {sorted(LIBSVM_KERNELS)}, got {got}."
            )
        if svc.break_ties:
            raise ValueError(
                "`svc` must not have `break_ties`, which model files cannot hold, got True."
            )
        values = {name: getattr(svc, name) for name in LIBSVM_KERNELS[svc.kernel].parameter_names()}
        for name, value in values.items():
            if isinstance(value, str):
                raise ValueError(f"`svc` must have a number as `{name}`, got {value!r}.")
        # scikit-learn flips the sign for two classes, so that positive means the second.
        sign = 1.0 if len(svc.classes_) == 2 else -1.0
        vectors, coefficients = svc.support_vectors_, svc.dual_coef_
        if sparse.issparse(vectors):
            vectors, coefficients = sparse.csr_array(vectors), coefficients.toarray()
        else:
            vectors = np.asarray(vectors, dtype=float)
        return cls(
            kernel=svc.kernel,
            kernel_parameters={name: float(value) for name, value in values.items()},
            labels=np.asarray(svc.classes_),
            support_vectors=vectors,
            n_support=np.asarray(svc.n_support_),
            coefficients=sign * np.asarray(coefficients, dtype=float),
            offsets=sign * np.asarray(svc.intercept_, dtype=float),
            parameters=dict(parameters or {}),
            scaling=_scaling(scaler, factors, vectors.shape[1]),
            sigmoids=None if sigmoids is None else tuple(sigmoids),
            columns=columns,
            threshold=threshold,
        )

    def features(self, X: Any) -> Any:
        """Return the encoded and scaled features, on which the model works.

        Parameters
        ----------
        X
            Features before scaling, shape (l, d), an array or sparse; or, for a model that was
            fitted to a table, a table (such as a DataFrame) with its columns. Missing values are
            filled in if the model was fitted with `impute`.

        Raises
        ------
        ValueError, TypeError
            If these are not the features or the columns of the model.
        """
        return self._scaled(self.encoded(X))

    def encoded(self, X: Any) -> Any:
        """Return the rows of numbers that `X` stands for, before scaling; see `features`."""
        wanted = self.n_features
        rows: Any = X
        is_frame = hasattr(X, "columns") or isinstance(X, Mapping)
        if self.columns is not None and not isinstance(X, Table) and is_frame:
            rows = Table.of(X)
        if isinstance(rows, Table):
            if self.columns is None:
                raise ValueError(
                    f"{rows.source} must hold {wanted} numbered features, because the model was "
                    "not fitted to named columns, got a table."
                )
            rows = self.columns.encoded(rows)
        elif self.columns is not None and self.columns.is_raw(np.shape(rows)):
            rows = self.columns.encoded_numbers(rows.toarray() if sparse.issparse(rows) else rows)
        if len(np.shape(rows)) != 2 or np.shape(rows)[1] != wanted:
            raise ValueError(f"`X` must have shape (rows, {wanted}), got {np.shape(rows)}.")
        return sparse.csr_array(rows) if sparse.issparse(rows) else np.asarray(rows, dtype=float)

    def _scaled(self, rows: Any) -> Any:
        return rows if self.scaling is None else self.scaling.scaled(rows)

    def decision_function(self, X: Any) -> FloatArray:
        """Return decision values, shape (l,) for two classes, else one column for each pair.

        Parameters
        ----------
        X
            Features before scaling, or a table; see `features`.
        """
        rows = self.encoded(X)
        n, d = self.support_vectors.shape
        stays_sparse = self.scaling is None or self.scaling.keeps_zeros
        step = max(1, _PREDICTED_AT_ONCE // (n if stays_sparse else max(n, d)))
        blocks = [
            self._values(self._scaled(rows[first : first + step]))
            for first in range(0, rows.shape[0], step)
        ]
        values = np.concatenate(blocks) if blocks else np.empty((0, len(self.offsets)))
        return values[:, 0] if values.shape[1] == 1 else values

    def _values(self, features: Any) -> FloatArray:
        """Return the decision values of scaled features, one column for each pair of classes."""
        if not np.isfinite(features.data if sparse.issparse(features) else features).all():
            raise ValueError(
                "`X` must hold finite numbers like those of the training rows, got others or much "
                "larger ones, which are not finite after scaling."
            )
        vectors = self.support_vectors
        if sparse.issparse(features) and sparse.issparse(vectors):
            (features, vectors), _ = on_used_columns(features, vectors)
        K = pairwise_kernels(features, vectors, metric=self.kernel, **self.kernel_parameters)
        ends = np.concatenate([[0], np.cumsum(self.n_support)])
        values = np.empty((K.shape[0], len(self.offsets)))
        for column, (first, second) in enumerate(pairs_of(len(self.labels))):
            own, other = slice(*ends[first : first + 2]), slice(*ends[second : second + 2])
            # A class before c has its coefficients of the fit with c in row c - 1, and a class
            # after c in row c.
            values[:, column] = (
                K[:, own] @ self.coefficients[second - 1, own]
                + K[:, other] @ self.coefficients[first, other]
                + self.offsets[column]
            )
        return values

    def predict(self, X: Any) -> Array:
        """Return the label of each row; `features` describes `X`."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the probability of every class, in the order of `labels`, shape (l, k).

        Raises
        ------
        ValueError
            If the model has no calibration.
        """
        return self.probabilities_of(self.decision_function(X))

    def labels_of(self, values: FloatArray) -> Array:
        """Return the labels that decision values elect, by the threshold of two classes."""
        labels: Array = self.labels[self._elected(values, self.threshold)]
        return labels

    def probabilities_of(self, values: FloatArray) -> FloatArray:
        """Return the probabilities of all classes for decision values; see `predict_proba`."""
        if self.sigmoids is None:
            raise ValueError(
                "`predict_proba` needs a calibrated model, such as SpanSVC.as_predictor returns."
            )
        return class_probabilities(self.sigmoids, values, self._elected(values))

    def _elected(self, values: FloatArray, threshold: float = 0.0) -> IndexArray:
        """Return the index of the class that the decision values of each row elect."""
        if values.ndim == 1:
            return (values >= threshold).astype(int)
        return voted(np.full(len(values), -1), values)

    def save(self, path: str | Path) -> None:
        """Write the whole model as JSON."""
        version = version_of(has_threshold=self.threshold != 0.0)
        write_text(path, model_json({"version": version, **self.content()}))

    def content(self) -> dict[str, Any]:
        """Return the whole model as values that JSON can hold."""
        scaling, sigmoids, columns = self.scaling, self.sigmoids, self.columns
        content = {
            "kernel": self.kernel,
            "kernel_parameters": self.kernel_parameters,
            "parameters": self.parameters,
            "labels": self.labels.tolist(),
            "n_support": self.n_support.tolist(),
            "offsets": self.offsets.tolist(),
            "coefficients": self.coefficients.tolist(),
            "support_vectors": written_vectors(self.support_vectors),
            "scaling": None if scaling is None else scaling.content(),
            "sigmoids": None if sigmoids is None else [[s.slope, s.offset] for s in sigmoids],
            "columns": None if columns is None else columns.content(),
        }
        return content | ({"threshold": float(self.threshold)} if self.threshold else {})

    @classmethod
    def of_content(cls, content: dict[str, Any]) -> "Predictor":
        """Return the model with the fields that `read_content` has returned.

        Raises
        ------
        ValueError
            If the fields do not fit together.
        """
        others = dict(content)
        scaling, sigmoids, columns, threshold = (
            others.pop(name) for name in ("scaling", "sigmoids", "columns", "threshold")
        )
        model = cls(
            **others,
            threshold=threshold or 0.0,
            scaling=None if scaling is None else Scaling(**scaling),
            sigmoids=None
            if sigmoids is None
            else tuple(PlattSigmoid(slope, offset) for slope, offset in sigmoids),
            columns=None if columns is None else Encoding.of_content(columns),
        )
        check_parts(model)
        return model

    @classmethod
    def load(cls, path: str | Path) -> "Predictor | EnsemblePredictor":
        """Read a model that `save` has written, in this or an older version of span_hpo.

        A file of an ensemble gives an `EnsemblePredictor`.

        Raises
        ------
        ValueError
            If the file is damaged, does not hold a model, or was written by a newer span_hpo.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise not_json(str(path), error) from error
        content = read_content(text, str(path))
        try:
            if "members" not in content:
                return cls.of_content(content)
            members = tuple(cls.of_content(member) for member in content.pop("members"))
            return EnsemblePredictor.of_members(members, **content)
        except ValueError as error:
            raise damaged_json(str(path), error) from error

    def widened(self, n_features: int) -> "Predictor":
        """Return the model for more features, which are 0 in all of its support vectors."""
        vectors = sparse.csr_array(self.support_vectors, copy=True)
        vectors.resize(vectors.shape[0], n_features)
        keeps_form = is_dense(vectors) and not sparse.issparse(self.support_vectors)
        return replace(self, support_vectors=vectors.toarray() if keeps_form else vectors)

    def spread(self, numbering: Numbering) -> "Predictor":
        """Return the model for all features of a numbering whose columns it was fitted to."""
        scaling = self.scaling
        if scaling is not None:
            scaling = replace(scaling, features=numbering.features)
        return replace(
            self, support_vectors=numbering.spread(self.support_vectors), scaling=scaling
        )

    @property
    def n_features(self) -> int:
        """Number of features after encoding."""
        count: int = self.support_vectors.shape[1]
        return count

    @property
    def libsvm_labels(self) -> IndexArray:
        """Labels of the classes in LIBSVM's format: their own if whole, else 0, 1, ... in order."""
        labels = np.arange(len(self.labels))
        if self.labels.dtype.kind in "iuf" and (np.abs(self.labels.astype(float)) < 2**31).all():
            whole = self.labels.astype(np.int64)
            labels = whole if (whole == self.labels).all() else labels
        return labels

    def save_libsvm(self, path: str | Path) -> None:
        """Write the model in LIBSVM's text format, which holds neither scaling nor parameters.

        Labels are written as in `libsvm_labels`. A threshold becomes part of the offset, so that
        LIBSVM's programs predict by the sign what this model predicts; their decision values are
        lower by the threshold.
        """
        shifted = replace(self, offsets=self.offsets - self.threshold)
        write_text(path, model_text(shifted, self.libsvm_labels))

    @classmethod
    def load_libsvm(cls, path: str | Path, *, n_features: int | None = None) -> "Predictor":
        """Read a C-SVC model in LIBSVM's text format.

        Parameters
        ----------
        path
            Path of the file.
        n_features
            Number of features; by default the highest number of a feature that is used.

        Raises
        ------
        ValueError
            If the file is damaged, or holds a model of another kind.
        """
        try:
            text = Path(path).read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} must be a LIBSVM model, got a binary file.") from error
        model = cls(**model_parts(text, str(path), n_features))
        try:
            check_parts(model)
        except ValueError as error:
            raise damaged_model(str(path), error) from error
        return model


def _scaling(scaler: Any, factors: FloatArray | None, count: int) -> Scaling | None:
    """Return the scaling by a fitted scaler and by factors, each of which may be None."""
    scaling = None if scaler is None else scaling_of(scaler, count)
    if factors is None:
        return scaling
    return Scaling(np.zeros(count), factors) if scaling is None else scaling.times(factors)
