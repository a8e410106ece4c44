"""Every problem of two to five rows on {-1, 0, 1}^2 with a linear kernel, up to symmetry.

A row is one of nine points with one of two labels, so it is one of 18 *kinds*; equal rows are
allowed, and both classes must be present. There are three patterns of costs:

=========  ============================================  =====================================
pattern    costs                                         symmetries
=========  ============================================  =====================================
"equal"    1                                             order of rows, square, swap of labels
"class"    1 for +1 and 1/4 for -1                       order of rows, square
"row"      1, 1/4, 1/16, ... in the order of the rows    square, swap of labels
=========  ============================================  =====================================

The symmetries of the square are the eight rotations and reflections, which leave the kernel matrix
as it is, and a swap of labels turns the decision function around. Of all problems that symmetries
map to each other, the one with the smallest code is kept. In the pattern "row", every assignment
of the costs to the rows occurs.
"""

import functools
from itertools import combinations_with_replacement, product

import numpy as np
import numpy.typing as npt

from benchmarks.robustness.instances import Instance, linear

IntArray = npt.NDArray[np.int64]
PATTERNS = ("equal", "class", "row")
_POINTS = np.array(list(product((-1, 0, 1), repeat=2)))
_KINDS = 2 * len(_POINTS)  # kind = 2 * point + (label > 0)


def n_problems() -> int:
    """Return the number of problems."""
    return sum(len(kinds) for _, kinds in _all_problems())


def exhaustive_instance(number: int) -> Instance:
    """Return the problem of this number, from 0 to ``n_problems() - 1``."""
    for pattern, kinds in _all_problems():
        if number < len(kinds):
            return _instance(kinds[number], pattern)
        number -= len(kinds)
    raise ValueError(f"`number` must be below {n_problems()}, got {number + n_problems()}.")


def _instance(kinds: IntArray, pattern: str) -> Instance:
    y = np.where(kinds % 2 == 1, 1.0, -1.0)
    costs = {
        "equal": np.ones(len(y)),
        "class": np.where(y > 0, 1.0, 0.25),
        "row": 0.25 ** np.arange(len(y)),
    }[pattern]
    return linear(_POINTS[kinds // 2].astype(float), y, costs)


@functools.cache
def _all_problems() -> list[tuple[str, IntArray]]:
    """Return the kinds of the rows of all problems, by pattern and number of rows."""
    return [
        (pattern, representatives(count, pattern)) for pattern in PATTERNS for count in range(2, 6)
    ]


def representatives(count: int, pattern: str) -> IntArray:
    """Return one problem of each class of symmetric ones, shape (problems, count)."""
    ordered, symmetries = pattern == "row", _symmetries(swap=pattern != "class")
    if ordered:
        # The smallest code begins with a kind that no symmetry maps to a smaller one.
        first = np.flatnonzero(np.min(symmetries, axis=0) == np.arange(_KINDS))
        kinds = np.indices((len(first), *[_KINDS] * (count - 1))).reshape(count, -1).T
        kinds[:, 0] = first[kinds[:, 0]]
    else:
        kinds = np.array(list(combinations_with_replacement(range(_KINDS), count)))
    labels = kinds % 2
    kinds = kinds[(labels.min(axis=1) == 0) & (labels.max(axis=1) == 1)]
    own = _codes(kinds)
    smallest = np.ones(len(kinds), dtype=bool)
    for image in symmetries:
        mapped = image[kinds]
        smallest &= own <= _codes(mapped if ordered else np.sort(mapped, axis=1))
    chosen: IntArray = kinds[smallest]
    return chosen


def _codes(kinds: IntArray) -> IntArray:
    """Return a number for each sequence of kinds."""
    codes: IntArray = kinds @ _KINDS ** np.arange(kinds.shape[1])[::-1]
    return codes


def _symmetries(*, swap: bool) -> list[IntArray]:
    """Return the maps of kinds to kinds: symmetries of the square, and swapped labels."""
    place = {tuple(point): i for i, point in enumerate(_POINTS.tolist())}
    images = []
    for turned, first, second in product((False, True), (-1, 1), (-1, 1)):
        points = _POINTS[:, ::-1] if turned else _POINTS
        moved = [place[first * a, second * b] for a, b in points.tolist()]
        images += [
            np.array([2 * moved[kind // 2] + (kind % 2 ^ swapped) for kind in range(_KINDS)])
            for swapped in ((0, 1) if swap else (0,))
        ]
    return images
