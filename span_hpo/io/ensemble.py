"""Keep an ensemble of fitted models in a file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from span_hpo.calibration import calibrated
from span_hpo.io.atomic import write_text
from span_hpo.io.encoding import Encoding
from span_hpo.io.model_json import SHARED, model_json, version_of
from span_hpo.io.numbering import Numbering
from span_hpo.runtime import Array, FloatArray
from span_hpo.selection import decision_values, mean_probabilities

_SUM = 1e-9  # largest distance of the sum of the weights from 1


@dataclass(frozen=True, eq=False)
class EnsemblePredictor:
    """Several models of the same classes and features, whose probabilities are averaged.

    Attributes
    ----------
    members
        A `Predictor` with calibration for each member; they have the same labels and columns and,
        unless their kernel has a width for each feature, the same scaling.
    weights
        Weight of each member, shape (members,); they add up to 1.
    threshold
        Log-odds from which on the second of two classes is predicted.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import Predictor, SpanSVC
    >>> X, y = make_moons(60, noise=0.3, random_state=0)
    >>> model = SpanSVC(n_trials=10, ensemble=True, random_state=0).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.as_predictor().save(Path(folder) / "model.json")
    ...     loaded = Predictor.load(Path(folder) / "model.json")
    >>> (loaded.predict(X) == model.predict(X)).all()
    np.True_
    """

    members: tuple[Any, ...]
    weights: FloatArray
    threshold: float = 0.0

    @classmethod
    def of_members(
        cls, members: Sequence[Any], weights: FloatArray, threshold: float
    ) -> "EnsemblePredictor":
        """Return the ensemble of some members.

        Raises
        ------
        ValueError
            If the members and weights do not fit together.
        """
        weights = np.asarray(weights, dtype=float)
        if len(weights) != len(members) or not (weights > 0).all():
            raise ValueError("`weights` must be a positive number for each member")
        if abs(weights.sum() - 1) > _SUM:
            raise ValueError(f"`weights` must add up to 1, got {weights.sum()}")
        for number, member in enumerate(members):
            if member.sigmoids is None:
                raise ValueError(f"`members[{number}].sigmoids` is missing")
            if member.n_features != members[0].n_features:
                raise ValueError(f"`members[{number}]` must have the features of the first one")
        if threshold and len(members[0].labels) > 2:
            raise ValueError(f"`threshold` must be 0.0, got {threshold}")
        return cls(tuple(members), weights, threshold)

    @property
    def labels(self) -> Array:
        """Labels of the classes, shape (k,)."""
        labels: Array = self.members[0].labels
        return labels

    @property
    def columns(self) -> Encoding | None:
        """Encoding of the table that the model was fitted to, or None."""
        columns: Encoding | None = self.members[0].columns
        return columns

    @property
    def n_features(self) -> int:
        """Number of features after encoding."""
        count: int = self.members[0].n_features
        return count

    def predict(self, X: Any) -> Array:
        """Return the label of each row; `Predictor.features` describes `X`."""
        return self.labels_of(self.decision_function(X))

    def predict_proba(self, X: Any) -> FloatArray:
        """Return the mean probability of every class, in the order of `labels`, shape (l, k)."""
        rows = self.members[0].encoded(X)
        found = [calibrated(one.sigmoids, one.decision_function(rows)) for one in self.members]
        return mean_probabilities(np.stack(found), self.weights)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the log-odds of the second of two classes, or the logarithms of probabilities."""
        return decision_values(self.predict_proba(X))

    def labels_of(self, values: FloatArray) -> Array:
        """Return the labels that decision values elect, by the threshold of two classes."""
        is_second = values.ndim == 1
        codes = (values >= self.threshold).astype(int) if is_second else values.argmax(axis=1)
        labels: Array = self.labels[codes]
        return labels

    def probabilities_of(self, values: FloatArray) -> FloatArray:
        """Return the probabilities of all classes for decision values."""
        if values.ndim == 1:
            return np.column_stack([expit(-values), expit(values)])
        probabilities: FloatArray = np.exp(values)
        return probabilities

    def spread(self, numbering: Numbering) -> "EnsemblePredictor":
        """Return the model for all features of a numbering whose columns it was fitted to."""
        return replace(self, members=tuple(one.spread(numbering) for one in self.members))

    def save(self, path: str | Path) -> None:
        """Write the whole ensemble as JSON; `Predictor.load` reads it."""
        contents = [member.content() for member in self.members]
        own = any(content["scaling"] != contents[0]["scaling"] for content in contents)
        shared = {name: contents[0][name] for name in SHARED if not (own and name == "scaling")}
        others = [
            {name: value for name, value in content.items() if name not in shared}
            for content in contents
        ]
        whole = {
            "version": version_of(is_ensemble=True, has_own_scalings=own),
            **shared,
            "weights": self.weights.tolist(),
            "threshold": float(self.threshold),
            "members": others,
        }
        write_text(path, model_json(whole))
