"""The derivatives of a loss by kernel values and costs, from which those by hyperparameters follow.

They have a form that takes little memory. With factors h of the rows, ``beta = y alpha``, and a
block Q of support vectors, the derivative in the direction dK of the kernel matrix is

    dL = h' dK beta + sum_{i in SV, j in I} Q_ij dK_ij + sum_{p in B} s_p dK_pp

Because dK is symmetric, each pair of support vectors is needed once only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from span_hpo.kernels import WeightBlock
from span_hpo.runtime import FloatArray, IndexArray, rows_of

_WEIGHTS_AT_ONCE = 100_000  # weights that stay in the processor's cache while they are used
_LEAST_ROWS = 64  # smallest number of rows for which a block of weights is worth its overhead


class NoGradientError(Exception):
    """There is no gradient at this point; the message is a sentence that says why."""


@dataclass(frozen=True, eq=False)
class Derivatives:
    """The derivatives of a loss by kernel values and costs.

    Attributes
    ----------
    by_cost
        Derivative of the loss by the cost of each row, shape (l,).
    factors
        Factor ``h`` of each row, shape (l,).
    beta
        ``y alpha`` of each row, shape (l,).
    inner, bounded
        Indices of n in-bound rows, and of the m bounded rows.
    block
        ``Q``, shape (n + m, n), of these in-bound and bounded rows with these in-bound rows; 0
        above the diagonal.
    own
        Factors ``s`` of the kernel values of the bounded rows with themselves, shape (m,).
    keeps_rank
        Whether the in-bound rows are independent, but for equal ones. Otherwise only the
        derivatives by costs are right, and those of kernels for which rows stay dependent.
    """

    by_cost: FloatArray
    factors: FloatArray
    beta: FloatArray
    inner: IndexArray
    bounded: IndexArray
    block: FloatArray
    own: FloatArray
    keeps_rank: bool

    def blocks(self) -> Iterator[WeightBlock]:
        """Yield the weights of kernel values: rows, columns and a weight for each pair of them.

        First come rows that are no support vectors, each with all support vectors. Then follow the
        support vectors, each with those before it, so that the columns are fewer and fewer.
        """
        others = self.beta != 0
        others[self.inner] = False
        others[self.bounded] = False
        support = np.concatenate([self.inner, self.bounded, rows_of(others)])
        is_other = self.factors != 0
        is_other[support] = False
        rows, beta = rows_of(is_other), self.beta[support]
        at_once = max(_LEAST_ROWS, _WEIGHTS_AT_ONCE // max(1, len(support)))
        for start in range(0, len(rows), at_once):
            part = rows[start : start + at_once]
            yield part, support, self.factors[part, None] * beta
        for start in reversed(range(0, len(support), at_once)):
            end = min(start + at_once, len(support))
            yield support[start:end], support[:end], self._of_support(support, start, end)

    def _of_support(self, support: IndexArray, start: int, end: int) -> FloatArray:
        """Return the weights of some support vectors with themselves and all before them."""
        part, columns = support[start:end], support[:end]
        weights = self.factors[part, None] * self.beta[columns]
        before = columns[:start]
        weights[:, :start] += self.beta[part, None] * self.factors[before]
        of_spans, n = self.block[start:end, :end], len(self.inner)
        weights[: len(of_spans), : of_spans.shape[1]] += of_spans
        bounded = np.arange(max(start, n), min(end, len(self.block)))
        weights[bounded - start, bounded] += self.own[bounded - n]
        return weights
