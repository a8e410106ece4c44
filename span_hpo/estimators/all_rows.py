"""A splitter of scikit-learn for estimators that estimate their own error."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from span_hpo.runtime import IndexArray


class AllRows:
    """One split, in which all rows are both training and test rows.

    Together with `loo_scorer`, it is passed to scikit-learn's searches as the argument `cv`: every
    candidate is fitted once to all rows, and judged by its leave-one-out values. With any other
    scorer, candidates would be judged by their errors on their own training rows.

    Examples
    --------
    >>> from span_hpo import AllRows
    >>> [(train.tolist(), test.tolist()) for train, test in AllRows().split([[5], [6], [7]])]
    [([0, 1, 2], [0, 1, 2])]
    >>> AllRows().get_n_splits()
    1
    """

    def split(
        self, X: Any, y: Any = None, groups: Any = None
    ) -> Iterator[tuple[IndexArray, IndexArray]]:
        """Yield the indices of all rows, as training rows and as test rows.

        Parameters
        ----------
        X
            Rows.
        y, groups
            Not used.
        """
        count = X.shape[0] if hasattr(X, "shape") else len(X)
        yield np.arange(count), np.arange(count)

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return the number of splits, which is one."""
        return 1

    def __repr__(self) -> str:
        return "AllRows()"
