"""Factor the Gram matrix of the in-bound support vectors about their centroid, once per fit.

A span is a distance from an affine hull, which does not depend on the origin of the feature space.
If the origin is the centroid of the in-bound rows I, the hull becomes a linear subspace, and the
border of the system ``M = [[K_II, 1], [1', 0]]`` disappears.

======  =================================================================  ==========
symbol  meaning                                                            shape
======  =================================================================  ==========
K_II    kernel matrix of the in-bound rows                                 (n, n)
r, k    row means of K_II and their mean                                   (n,), ()
G_ij    ``K_ij - r_i - r_j + k``, the Gram matrix about the centroid       (n, n)
scale   mean diagonal of G: the mean squared distance from the centroid    ()
H       ``G + scale 11' + jitter I``; ``H 1 = (n scale + jitter) 1``         (n, n)
L       Cholesky factor, ``H = L L'``                                      (n, n)
======  =================================================================  ==========

``H`` is non-singular exactly when ``M`` is, even if ``K_II`` alone is singular, as it is for a
linear kernel with ``d + 1`` in-bound rows.
"""

import functools
import math
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack

from span_hpo.errors import SolverError
from span_hpo.kernels import ALL, KernelBlocks, is_held
from span_hpo.runtime import FloatArray, IndexArray
from span_hpo.solver.lapack import cholesky, inverse_of_triangular, solve_triangular
from span_hpo.solver.rounding import INDEFINITE, dot_rounding

_FIRST_JITTER = 1e-14  # least jitter, relative to the mean squared distance from the centroid
_JITTER_GROWTH = 10.0  # factor by which the jitter grows until the matrix can be factored
_EPSILON = float(np.finfo(float).eps)
_PIVOT_NOISE = 10 * _EPSILON  # relative to K_ii: a smaller pivot may be zero but for rounding
_CLEARLY_NEGATIVE = 1e-9  # least eigenvalue, relative to the largest, of an indefinite kernel
_ROUNDED_DOWN = 0.99  # allows for the rounding of the inverse of a well-conditioned factor
_DEPENDENT = 1e-13  # relative to K_ii: a row with a smaller pivot lies in the hull of the others


def doubly_centred(K: FloatArray) -> FloatArray:
    """Return the kernel matrix with the origin of the rows at their mean, shape (n, n)."""
    means = K.mean(axis=0)
    centred: FloatArray = K - means - means[:, None] + means.mean()
    return centred


@dataclass(frozen=True)
class CentredGram:
    """Cholesky factor of the Gram matrix of the in-bound rows about their centroid.

    Attributes
    ----------
    row_means
        Row means ``r`` of ``K_II``, shape (n,).
    mean
        Mean ``k`` of ``K_II``.
    scale
        Mean squared distance of the in-bound rows from their centroid.
    L
        Lower Cholesky factor of ``H``, shape (n, n), Fortran order.
    jitter
        Number that was added to the diagonal of ``H`` to make it factorable; 0 for most fits.
    largest
        The largest ``|K_ii|``.
    """

    row_means: FloatArray
    mean: float
    scale: float
    L: FloatArray
    jitter: float
    largest: float

    @property
    def is_dependent(self) -> bool:
        """Whether some row lies in the affine hull of the others, up to rounding."""
        least = float(self.L.diagonal().min()) ** 2
        return self.jitter > 0 or least <= _DEPENDENT * self.largest

    def centred(self, K_II: FloatArray) -> FloatArray:
        """Return ``G``, the Gram matrix about the centroid, from ``K_II``."""
        G: FloatArray = K_II - self.row_means[:, None] - self.row_means + self.mean
        return G

    def centred_diagonal(self, diagonal: FloatArray) -> FloatArray:
        """Return the diagonal of ``G`` from the diagonal of ``K_II``."""
        G_ii: FloatArray = diagonal - 2 * self.row_means + self.mean
        return G_ii

    def about_centroid(self, K_Ip: FloatArray, K_pp: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return ``G_Ip`` (n, m) and ``G_pp`` (m,) for m other rows from their kernel values."""
        to_centroid = K_Ip.sum(axis=0) / len(K_Ip)
        G_Ip: FloatArray = K_Ip - self.row_means[:, None] - to_centroid + self.mean
        G_pp: FloatArray = K_pp - 2 * to_centroid + self.mean
        return G_Ip, G_pp

    def solve(self, rhs: FloatArray, total: float) -> tuple[FloatArray, float]:
        """Return (x, b) with ``K_II x + b 1 = rhs`` and ``1'x = total``.

        The offset ``b`` follows from ``K_II x = G x + (r - k) total + 1 (r'x)``, in which the mean
        of ``G x`` is zero.
        """
        rhs = rhs - (self.row_means - self.mean) * total
        level = rhs.sum() / len(rhs)
        centred, _ = lapack.dpotrs(self.L, rhs - level, lower=1)
        # In exact arithmetic, the sum of `centred` would be zero.
        x = centred + (total - centred.sum()) / len(rhs)
        return x, float(level - self.row_means @ x)

    def affine_weights(self, K_Ip: FloatArray) -> FloatArray:
        """Return the weights, with sum 1, of the points of the hull closest to other rows.

        Parameters
        ----------
        K_Ip
            Kernel values between the in-bound rows and m other rows, shape (n, m).

        Returns
        -------
        Weights of the in-bound rows, shape (n, m).
        """
        G_Ip, _ = self.about_centroid(K_Ip, np.zeros(K_Ip.shape[1]))
        weights: FloatArray
        weights, _ = lapack.dpotrs(self.L, G_Ip, lower=1)
        # In exact arithmetic, the sums of these weights would be zero.
        weights -= weights.sum(axis=0) / len(weights)
        return weights + 1 / len(weights)

    def squared_distances(self, K_Ip: FloatArray, K_pp: FloatArray) -> FloatArray:
        """Return ``G_pp - G_Ip' H^-1 G_Ip``, the squared distances of other rows from the hull.

        Parameters
        ----------
        K_Ip
            Kernel values between the in-bound rows and the other rows, shape (n, m).
        K_pp
            Kernel value of each other row with itself, shape (m,).
        """
        G_Ip, G_pp = self.about_centroid(K_Ip, K_pp)
        half = solve_triangular(self.L, G_Ip)
        return self.checked_squares(G_pp - np.einsum("ij,ij->j", half, half), K_pp)

    def checked_squares(self, squared: FloatArray, K_pp: FloatArray) -> FloatArray:
        """Return squared distances from the hull, with zero for those that are slightly negative.

        Raises
        ------
        SolverError
            If a squared distance is clearly negative, which means that the kernel is not positive
            semi-definite.
        """
        worst = squared.min(initial=0.0)
        if worst < -INDEFINITE * np.abs(K_pp).max(initial=abs(self.mean) + self.scale):
            raise SolverError(_not_psd(f"a squared distance is {worst:.3g}"))
        # A value slightly below zero is due to rounding: the row lies in the hull.
        return np.maximum(squared, 0.0)

    def own_squared_distances(self) -> FloatArray:
        """Return the squared distance of each in-bound row from the hull of the others.

        It is ``1 / (M^-1)_pp`` with ``(M^-1)_pp = (H^-1)_pp - 1 / (n (n scale + jitter))``. There
        must be at least two in-bound rows.
        """
        squared: FloatArray = 1 / (self._inverse_diagonal - self._border)
        return squared

    @functools.cached_property
    def least_eigenvalue(self) -> float:
        """A lower bound of ``x'K_II x / x'x`` over all x whose sum is 0, or 0 if none is proven.

        The least eigenvalue of ``L L'`` is at least the reciprocal of the trace of its inverse. It
        differs from that of H by the rounding of the factorisation and of the entries of H, which
        is bounded by n times the largest error of an entry.
        """
        n = len(self.row_means)
        entry = dot_rounding(n, np.array(2 * self.scale + self.jitter + 4 * self.largest))
        found = _ROUNDED_DOWN / float(self._inverse_diagonal.sum()) - n * float(entry) - self.jitter
        return max(found, 0.0) if math.isfinite(found) else 0.0

    @functools.cached_property
    def _inverse_diagonal(self) -> FloatArray:
        """The diagonal of ``H^-1``, shape (n,)."""
        inverse = inverse_of_triangular(self.L)
        diagonal: FloatArray = np.einsum("ij,ij->j", inverse, inverse)
        return diagonal

    def precision(self) -> FloatArray:
        """Return ``(M^-1)_II = H^-1 - 11' / (n (n scale + jitter))``, shape (n, n)."""
        inverse = inverse_of_triangular(self.L)
        A: FloatArray = inverse.T @ inverse - self._border
        return A

    @property
    def _border(self) -> float:
        n = len(self.row_means)
        return 1 / (n * (n * self.scale + self.jitter))


def factored_gram(K_II: FloatArray) -> CentredGram:
    """Factor the Gram matrix of the in-bound rows about their centroid.

    If the matrix is singular, because rows are equal or outnumber the dimensions, a pivot is no
    more than rounding. The least jitter that works is then added to the diagonal. It starts at
    1e-14 of the mean squared distance, or at the rounding of the entries of K if that is larger. A
    larger constant would drown the spans of rows with large costs.

    Raises
    ------
    SolverError
        If the matrix about its centroid is not positive semi-definite. ``K_II`` itself need not be,
        because only distances matter.
    """
    n = len(K_II)
    row_means, mean, scale, size = _centroid(K_II)
    H = np.asfortranarray(K_II - row_means[:, None] - row_means + (mean + scale))
    noise, limit = _PIVOT_NOISE * size, INDEFINITE * size
    jitter = 0.0
    while True:
        L = cholesky(H)
        if L is not None and L.diagonal().min() ** 2 >= noise:
            largest = float(np.abs(K_II.diagonal()).max())
            return CentredGram(row_means, mean, scale, L, jitter, largest)
        if jitter >= limit:
            raise SolverError(_not_psd(f"its least eigenvalue is below {-limit:.3g}"))
        grown = min(limit, max(_FIRST_JITTER * scale, 2 * noise, jitter * _JITTER_GROWTH))
        H.reshape(-1, order="F")[:: n + 1] += grown - jitter  # the diagonal of H
        jitter = grown


def independent_rows(K_II: FloatArray) -> IndexArray:
    """Return affinely independent rows that have the same affine hull as all rows.

    They are the pivots of a Cholesky factorisation, which stops when only rounding is left.
    """
    _, pivots, rank = _pivoted(K_II)
    rows: IndexArray = np.sort(pivots[:rank])
    return rows


def affine_coordinates(K_II: FloatArray) -> FloatArray:
    """Return coordinates of rows in their affine hull, shape (n, r), with r <= n.

    Any ``sum_i x_i`` of multiples of the rows, and the sum of the multiples themselves, is a linear
    function of the same sum of the coordinates. The rows are independent if r is n.
    """
    L, pivots, rank = _pivoted(K_II)
    coordinates = np.empty((len(L), rank))
    coordinates[pivots] = np.tril(L)[:, :rank]
    return coordinates


def _pivoted(K_II: FloatArray) -> tuple[FloatArray, IndexArray, int]:
    """Return the factor of the Gram matrix ``H`` with its pivots first, the pivots and the rank."""
    row_means, mean, scale, size = _centroid(K_II)
    H = np.asfortranarray(K_II - row_means[:, None] - row_means + (mean + scale))
    L, pivots, rank, _ = lapack.dpstrf(H, lower=1, tol=_DEPENDENT * size)
    return L, pivots - 1, int(rank)


def _centroid(K_II: FloatArray) -> tuple[FloatArray, float, float, float]:
    """Return the row means of ``K_II``, their mean, the scale, and the mean of ``|K_ii|``."""
    n, diagonal = len(K_II), K_II.diagonal()
    row_means = K_II.sum(axis=1) / n
    mean = float(row_means.sum()) / n
    size = float(np.abs(diagonal).sum()) / n or 1.0
    scale = float(diagonal.sum()) / n - mean
    if scale <= _PIVOT_NOISE * size:
        scale = size  # all rows coincide up to rounding, and any positive scale will do
    return row_means, mean, scale, size


def check_definite(K: KernelBlocks) -> None:
    """Raise if a kernel matrix has an eigenvalue that is clearly negative.

    It must be below ``-1e-9`` times a lower bound of the largest eigenvalue. Where rows differ by
    orders of magnitude, computed distances may be negative although the matrix is not to blame.
    A matrix that is not held in memory is not checked: computed distances are believed there.

    Raises
    ------
    SolverError
        If the matrix is not positive semi-definite.
    """
    if not is_held(K):
        raise SolverError(_not_psd("a squared distance is negative"))
    matrix = K.block(ALL, ALL)
    largest = max(
        float(np.abs(matrix.diagonal()).max()), float(np.abs(matrix.mean())) * len(matrix)
    )
    shift = _CLEARLY_NEGATIVE * largest
    if cholesky(np.asfortranarray(matrix + shift * np.eye(len(matrix)))) is None:
        raise SolverError(_not_psd(f"its least eigenvalue is below {-shift:.3g}"))


def _not_psd(evidence: str) -> str:
    return (
        f"The kernel matrix is not positive semi-definite ({evidence}), so spans are undefined. "
        "Use a positive semi-definite kernel, or method='refit'."
    )
