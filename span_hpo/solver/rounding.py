"""Tolerances for the effect of rounding on a fit, which several modules share.

Each tolerance decides in several places whether a number is more than rounding, and these places
must agree. A tolerance that only one module needs is a constant of that module. Compiled code
reads all of them when it is imported. The table uses the rounding unit ``u = 2.2e-16`` of double
precision.

=================  =====================  ==========================  ==============================
name               unit                   derived from                a value ten times larger would
=================  =====================  ==========================  ==============================
ALPHA_ROUNDING     largest dual           solving for n dual          turn support vectors with
                   variable, or C_i if    variables rounds each by    small dual variables into
                   that is smaller        about ``n u``, n < 500      zero or bounded rows
INDEFINITE         ``K_ii``               half of the digits, which   accept kernels that are not
                                          kernels from users and      positive semi-definite, for
                                          from files still have       which spans mean nothing
MARGIN_NOISE       ``1 + sum(alpha)``     a product with K of n       let the polish stop before
                   ``max(K_ii)``          rows rounds by ``n u``      the solution is reached
NOISE_FACTOR       `MARGIN_NOISE`         the number of consecutive   call decision values zero
                                          computations in a proof     whose sign is known
SOLVED             margin                 accuracy of the active-set  start paths at points that
                                          method on hard problems     are not solutions
AT_BOUND           ``C_i`` or             a dual variable that hardly  report rows with small dual
                   ``sum(alpha)``         moves margins rounds by     variables as zero or bounded
                                          more than `ALPHA_ROUNDING`  rows
NEVER_SOLVED       margin                 LIBSVM's tolerance, at      start paths at LIBSVM's
                                          which a fit is unsolved     answers as if solved
=================  =====================  ==========================  ==============================

No proof relies on the tolerances of this table, which only say where paths may start and which
unproven values are reported as 0. Proofs use the bounds `dot_rounding`, `kernel_rounding` and
`margin_rounding`, which hold for every sum that they are applied to.
"""

import numpy as np

from span_hpo.runtime import ROUNDING_UNIT, FloatArray

ALPHA_ROUNDING = 1e-13
AT_BOUND = 1e-9
INDEFINITE = 1e-8
MARGIN_NOISE = 1e-13
NOISE_FACTOR = 1e3
SOLVED = 1e-6
NEVER_SOLVED = 1e-3
_KERNEL_ULPS = 4  # error of a kernel value, in units of the rounding of sqrt(K_ii K_jj)
ROUNDED_UP = 1 + 1e-9  # factor that allows for the rounding of a formula of positive bounds
FEW_OPERATIONS = 8  # operations around a dot product, each of which rounds once


def margin_noise(alpha: FloatArray, largest: float) -> float:
    """Return how far rounding may move a decision value.

    Parameters
    ----------
    alpha
        Dual variables of the fit, shape (l,).
    largest
        The largest ``|K_ii|``.
    """
    return MARGIN_NOISE * (1 + float(alpha.sum()) * largest)


def violation_limit(noise: float) -> float:
    """Return how far the margins of a solution may violate the KKT conditions.

    Parameters
    ----------
    noise
        The `margin_noise` of the fit.
    """
    return min(SOLVED + NOISE_FACTOR * noise, NEVER_SOLVED)


def zero_width(noise: float) -> float:
    """Return how far from 0 a decision value must be for its sign to be known.

    Parameters
    ----------
    noise
        The `margin_noise` of the fit.
    """
    return min(NOISE_FACTOR * noise, SOLVED)


def dot_rounding(n_terms: int, sizes: FloatArray) -> FloatArray:
    """Return bounds on the rounding errors of dot products, for any order of summation.

    Parameters
    ----------
    n_terms
        Number of products in each sum.
    sizes
        Sums of the absolute values of the products, or bounds on them.
    """
    bounds: FloatArray = (n_terms + FEW_OPERATIONS) * ROUNDING_UNIT * sizes
    return bounds


def kernel_rounding(sizes: FloatArray) -> FloatArray:
    """Return how far decision values may be off because the kernel values are rounded themselves.

    Parameters
    ----------
    sizes
        ``sqrt(K_jj) sum_i alpha_i sqrt(K_ii)`` of the rows.
    """
    bounds: FloatArray = _KERNEL_ULPS * ROUNDING_UNIT * sizes
    return bounds


def margin_rounding(margins: FloatArray, offset: float) -> FloatArray:
    """Return bounds on the rounding errors of a few sums of margins, offsets and 1."""
    bounds: FloatArray = FEW_OPERATIONS * ROUNDING_UNIT * (1 + abs(offset) + np.abs(margins))
    return bounds
