"""What rounding may do to a fit."""

from span_hpo.runtime import FloatArray

_NOISE = 1e-13  # rounding of a decision value, relative to 1 + sum(alpha) max|K_ii|
_NOISE_FACTOR = 1e3  # how many times that a chain of computations may add up to
_VIOLATION = 1e-6  # of the KKT conditions that is no more than rounding, in units of the margin,
_LARGEST_VIOLATION = 1e-3  # and that never is


def margin_noise(alpha: FloatArray, largest: float) -> float:
    """Return how far rounding may move a decision value, with `largest` the largest |K_ii|."""
    return _NOISE * (1 + float(alpha.sum()) * largest)


def violation_limit(noise: float) -> float:
    """Return by how much margins of a solution may violate the KKT conditions."""
    return min(_VIOLATION + _NOISE_FACTOR * noise, _LARGEST_VIOLATION)


def zero_width(noise: float) -> float:
    """Return how far from 0 a decision value must be for its sign to be known."""
    return min(_NOISE_FACTOR * noise, _VIOLATION)
