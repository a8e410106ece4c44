"""Features with large numbers: only those that are used get a column."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.runtime import IndexArray

LARGEST_NUMBER = 2**31 - 1  # largest number of a feature in LIBSVM's programs, which use an int
_DENSE_SHARE = 0.25  # share of nonzero entries from which features are kept as a dense array


@dataclass(frozen=True, eq=False)
class Numbering:
    """Which of many numbered features have a column; the others are 0 in all rows.

    Attributes
    ----------
    features
        Features that have a column, in increasing order and counted from 0, shape (m,).
    count
        Number of all features.
    """

    features: IndexArray
    count: int

    def spread(self, X: Any) -> Any:
        """Return m columns as sparse rows of all features."""
        rows = sparse.csr_array(X)
        parts = (rows.data, self.features[rows.indices], rows.indptr)
        return sparse.csr_array(parts, shape=(rows.shape[0], self.count))


def on_used_columns(*matrices: Any) -> tuple[list[Any], IndexArray]:
    """Return sparse rows of equal width without the columns that are empty in all of them.

    The first column is kept if all of them are empty.

    Products of sparse rows need memory for each column, whether it is used or not.

    Returns
    -------
    The narrower matrices, and the columns that they have kept, in increasing order.
    """
    rows = [sparse.csr_array(matrix) for matrix in matrices]
    used = np.unique(np.concatenate([part.indices for part in rows]))
    used = used if len(used) else np.arange(min(1, rows[0].shape[1]))
    return [
        sparse.csr_array(
            (part.data, np.searchsorted(used, part.indices), part.indptr),
            shape=(part.shape[0], len(used)),
        )
        for part in rows
    ], used


def is_dense(X: Any) -> bool:
    """Return whether enough entries of a sparse matrix are stored to keep it as an array."""
    return bool(X.nnz >= _DENSE_SHARE * X.shape[0] * X.shape[1])
