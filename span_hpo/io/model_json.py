"""Convert the parts of a model to values that JSON can hold, and back."""

from typing import Any

import numpy as np
from scipy import sparse


def written_vectors(vectors: Any) -> Any:
    """Return support vectors for JSON: as rows, or as the parts of a sparse matrix."""
    if not sparse.issparse(vectors):
        return vectors.tolist()
    return {
        "shape": list(vectors.shape),
        "starts": vectors.indptr.tolist(),
        "features": vectors.indices.tolist(),
        "values": vectors.data.tolist(),
    }


def read_vectors(content: Any) -> Any:
    """Return the support vectors that `written_vectors` has written, or raise a ValueError."""
    if not isinstance(content, dict):
        return np.array(content, dtype=float)
    vectors = sparse.csr_array(
        (
            np.array(content["values"], dtype=float),
            np.array(content["features"], dtype=int),
            np.array(content["starts"], dtype=int),
        ),
        shape=tuple(content["shape"]),
    )
    vectors.check_format(full_check=True)
    return vectors


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as a plain one, which JSON can hold."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"`parameters` and labels must be numbers or text, got {type(value).__name__}.")
