"""Widths at which rows of one class are similar, as a start for a search by gradients.

The alignment of a kernel matrix K with the labels is the cosine between K and the matrix T that is
1 for two rows of one class and 0 for others, after both have been centred:

    A = <K_c, T_c> / (|K_c| |T_c|),    K_c = H K H,    H = I - 1 1' / n

It needs no fit, and it changes with the width of every feature, even where a model that has all
widths equal predicts no better than by chance.

References
----------
Cortes, Mohri and Rostamizadeh, "Algorithms for learning kernels based on centered alignment", 2012.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy import optimize

from span_hpo.runtime import FloatArray, IndexArray
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.spread import Spread
from span_hpo.solver import doubly_centred

_MOST_ROWS = 500  # each step takes time in proportion to the square of their number
_MOST_STEPS = 60


class Alignment(NamedTuple):
    """A kernel on some rows, and the centred classes of these rows.

    Attributes
    ----------
    kernel
        Kernel whose default ranges have been filled in.
    statistic
        Statistic of the rows; see `Kernel.statistic`.
    classes
        Whether each row is in each class, minus the share of the class, shape (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo import RBF
    >>> from span_hpo.search import Alignment
    >>> X, codes = np.array([[0.0], [0.0], [9.0]]), np.array([0, 0, 1])
    >>> alignment = Alignment.of(RBF(gamma=1.0), X, codes)
    >>> round(alignment.at({})[0], 6)  # 1 within the classes, 0 between them
    1.0
    """

    kernel: Any
    statistic: Any
    classes: FloatArray

    @classmethod
    def of(cls, kernel: Any, X: Any, codes: IndexArray) -> "Alignment":
        """Return the alignment of a kernel on up to 500 rows, which are the same in every call."""
        if len(codes) > _MOST_ROWS:
            drawn = np.random.default_rng(0).permutation(len(codes))[:_MOST_ROWS]
            X, codes = X[np.sort(drawn)], codes[np.sort(drawn)]
        members = np.eye(int(codes.max()) + 1)[codes]
        return cls(kernel, kernel.statistic(X), members - members.mean(axis=0))

    def at(self, params: Any) -> tuple[float, dict[str, float]]:
        """Return the alignment, and its derivatives by the real hyperparameters of the kernel."""
        values = self.kernel.values(params)
        K = self.kernel.finite_matrix(self.statistic, **values)
        centred = doubly_centred(K)
        size = float(np.linalg.norm(centred))
        target = self.classes @ self.classes.T  # centred, because its factors are
        scale = float(np.linalg.norm(target))
        if size <= np.finfo(float).eps * len(K) or scale == 0:
            return 0.0, {}  # all rows are equally similar, or there is one class
        aligned = float(np.vdot(centred, target)) / (size * scale)
        weights = (target / scale - aligned / size * centred) / size
        return aligned, dict(self.kernel.gradient(self.statistic, K, weights, **values))


def aligned_point(
    alignment: Alignment, coordinates: Coordinates, spread: Spread, start: FloatArray
) -> FloatArray:
    """Return a point whose alignment, less the penalty, is higher than that of a start.

    Parameters
    ----------
    alignment
        Alignment to increase.
    coordinates, spread
        Coordinates of the search, and the penalty on some of them. Only these are moved.
    start
        Point to begin with, shape (d,).
    """
    places = spread.places

    def misaligned(z: FloatArray) -> tuple[float, FloatArray]:
        point = start.copy()
        point[places] = z
        params = coordinates.params(point)
        aligned, slopes = alignment.at(params)
        penalty, of_penalty = spread.at(point)
        zeros = dict.fromkeys(coordinates.names, 0.0)
        gradient = coordinates.gradient(params, {**zeros, **slopes})
        return penalty - aligned, (of_penalty - gradient)[places]

    sides = optimize.Bounds(coordinates.lower[places], coordinates.upper[places])
    options = {"maxfun": _MOST_STEPS}
    found = optimize.minimize(
        misaligned, start[places], jac=True, method="L-BFGS-B", bounds=sides, options=options
    )
    point = start.copy()
    point[places] = np.clip(found.x, sides.lb, sides.ub)
    return point
