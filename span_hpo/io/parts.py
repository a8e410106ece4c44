"""Check that the parts of a model fit together."""

from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io.scaling import Scaling
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.solver import n_pairs_of


def check_parts(model: Any) -> None:
    """Raise a ValueError if the parts of a `Predictor` do not fit together."""
    k = len(model.labels)
    n, d = model.support_vectors.shape
    counts = model.n_support.tolist()
    kernel = LIBSVM_KERNELS[model.kernel]
    parts = {
        "kernel_parameters": (sorted(model.kernel_parameters), sorted(kernel.parameter_names())),
        "labels": (len(set(model.labels.tolist())), k),
        "n_support": ((len(counts), sum(counts), min(counts, default=0) > 0), (k, n, True)),
        "coefficients": (model.coefficients.shape, (k - 1, n)),
        "offsets": (model.offsets.shape, (n_pairs_of(k),)),
    }
    if model.scaling is not None:
        parts["scaling"] = _shape_of_scaling(model.scaling, d)
    if k > 2:
        parts["threshold"] = model.threshold, 0.0
    if model.sigmoids is not None:
        parts["sigmoids"] = len(model.sigmoids), n_pairs_of(k)
    if model.columns is not None:
        parts["columns"] = len(model.columns.feature_names), d
    for name, (got, want) in parts.items():
        if got != want:
            raise ValueError(f"`{name}` must be {want}, got {got}")
    vectors = model.support_vectors
    numbers = [vectors.data if sparse.issparse(vectors) else vectors]
    numbers += [model.coefficients, model.offsets, list(model.kernel_parameters.values())]
    if not all(np.isfinite(part).all() for part in numbers):
        raise ValueError("all numbers must be finite")


def _shape_of_scaling(scaling: Scaling, d: int) -> tuple[Any, Any]:
    """Return the shape of a scaling and the shape that it must have for d features."""
    got, count = (len(scaling.shift), len(scaling.factor)), d
    if scaling.features is not None:
        features = scaling.features
        count = len(features)
        if not ((np.diff(features) > 0).all() and features.max(initial=-1) < d):
            raise ValueError(f"`scaling.features` must be increasing numbers from 0 to {d - 1}")
        if not scaling.keeps_zeros:
            raise ValueError("`scaling.shift` must be 0 if not all features are scaled")
    return got, (count, count)
