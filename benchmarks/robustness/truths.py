"""The truth about the rows of one problem, from the reference and, in doubt, from the referee.

The truth of a problem is that of its kernel matrix and its costs as they are: doubles are rational
numbers. If rounding has left a matrix that is not positive semi-definite, its dual problem may have
several solutions. A class or a value is then called wrong only if matrices that are positive
semi-definite and equal up to rounding contradict it as well: the same one with a raised diagonal,
and the kernel of the features. What the features give without rounding is counted apart, too.
"""

import functools
from itertools import combinations
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt

from benchmarks.robustness.dual_steps import UNIT
from benchmarks.robustness.instances import Instance
from benchmarks.robustness.referee import (
    RATIONAL_ROWS,
    RefereeError,
    exact_value,
    is_positive_semidefinite,
)
from benchmarks.robustness.reference import Reference, leave_one_out_margins

BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
Number = Any  # a Fraction or a number of mpmath
_TRUSTED = 2.0  # a margin is trusted if it exceeds this multiple of its error
_RATIONAL_TIES = 40  # most rows of a problem whose value of 0 is confirmed in rational numbers


class Truth:
    """The leave-one-out margins ``y_p f^p(x_p)`` of a problem with labels -1 and +1."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.refereed: set[int] = set()  # rows that the referee has settled
        self._margins: dict[tuple[int, str], Number | None] = {}

    @functools.cached_property
    def reference(self) -> Reference:
        """The margins in double precision."""
        return leave_one_out_margins(self.instance.K, self.instance.y, self.instance.costs)

    @functools.cached_property
    def is_definite(self) -> bool:
        """Whether the matrix of doubles is positive semi-definite without any tolerance."""
        return is_positive_semidefinite(self.instance.K.tolist())

    def is_trusted(self, p: int) -> bool:
        """Return whether the reference proves the sign of a margin by its own bound."""
        margin, error = self.reference.margins[p], self.reference.errors[p]
        return bool(abs(margin) > _TRUSTED * error)

    def sign(self, p: int) -> int | None:
        """Return the sign of the margin of row p; None if the referee finds no solution."""
        margin = self.reference.margins[p] if self.is_trusted(p) else self.margin(p)
        return None if margin is None else int(margin > 0) - int(margin < 0)

    def margin(self, p: int, matrix: str = "given") -> Number | None:
        """Return the exact margin of row p; None if the referee finds no solution.

        Parameters
        ----------
        p
            The row.
        matrix
            "given" for the matrix of doubles, "raised" for the same with a diagonal raised by its
            rounding, "features" for the kernel of the features without rounding.
        """
        if (p, matrix) not in self._margins:
            self._margins[p, matrix] = self._settled(p, matrix)
        return self._margins[p, matrix]

    def contradiction(self, p: int, says_error: bool) -> str:
        """Return how a proven class of row p relates to the truth.

        "" if it is right, "wrong" if it is wrong, and "undecided" if the matrix of doubles is not
        positive semi-definite, and one that is so agrees with the class.
        """
        if self._agrees(p, says_error):
            return ""
        margin = self.margin(p)
        if margin is not None and (margin <= 0) == says_error:
            return ""
        if margin is not None and self.is_definite:
            return "wrong"
        others = self._other_margins(p)
        agree = any(other is None or (other <= 0) == says_error for other in others)
        return "undecided" if agree else "wrong"

    def contradicts_features(self, p: int, says_error: bool) -> bool:
        """Return whether the kernel without rounding gives row p another class.

        Rows about which the reference agrees are not looked at again.
        """
        if self.instance.exact_kernel is None or self._agrees(p, says_error):
            return False
        margin = self.margin(p, "features")
        return margin is not None and bool((margin <= 0) != says_error)

    def wrong_value(self, p: int, value: FloatArray, accuracy: FloatArray) -> str:
        """Return how a value is off by more than its accuracy, or nothing."""
        margin = float(self.instance.y[p] * value)
        if abs(margin - self.reference.margins[p]) <= accuracy:
            return ""
        exact = self.margin(p)
        if exact is None or _distance(exact, margin) <= accuracy:
            return ""
        if not self.is_definite and any(
            other is None or _distance(other, margin) <= accuracy
            for other in self._other_margins(p)
        ):
            return ""
        return f"y f = {margin!r} with an accuracy of {float(accuracy):.3g}, truth {shown(exact)}"

    def error_range(self, known: BoolArray) -> tuple[float, float]:
        """Return the least and the largest error rate, if the signs of some rows are known."""
        signs = [self.sign(p) if known[p] else None for p in range(len(known))]
        return _range([None if sign is None else sign <= 0 for sign in signs])

    def describe(self, p: int) -> str:
        """Return the exact margin of row p, and that of the features."""
        features = ""
        if self.instance.exact_kernel is not None:
            features = f" (of the features {shown(self.margin(p, 'features'))})"
        return f"y f = {shown(self.margin(p))}{features}"

    def _other_margins(self, p: int) -> list[Number | None]:
        """Return margins by matrices that are equal up to rounding and positive semi-definite."""
        features = ["features"] if self.instance.exact_kernel is not None else []
        return [self.margin(p, matrix) for matrix in ("raised", *features)]

    def _agrees(self, p: int, says_error: bool) -> bool:
        return self.is_trusted(p) and bool((self.reference.margins[p] <= 0) == says_error)

    def _settled(self, p: int, matrix: str) -> Number | None:
        instance = self.instance
        self.refereed.add(p)
        costs = np.where(np.arange(len(instance.y)) == p, 0.0, instance.costs)
        if len(np.unique(instance.y[costs > 0])) < 2:
            return -1
        if matrix == "features":
            assert instance.exact_kernel is not None
            K = instance.exact_kernel()
        else:
            K = (instance.K if matrix == "given" else _raised(instance.K)).tolist()
        start = self.reference.betas[p]

        def settled(*, rational: bool) -> Number:
            return exact_value(K, instance.y.tolist(), costs.tolist(), p, start, rational=rational)

        may_be_rational = not isinstance(K[0][0], mpmath.mpf)
        try:
            value = settled(rational=may_be_rational and len(K) <= RATIONAL_ROWS)
            if value == 0 and may_be_rational and RATIONAL_ROWS < len(K) <= _RATIONAL_TIES:
                value = settled(rational=True)
        except RefereeError:
            return None
        return value if instance.y[p] > 0 else -value


class Elections:
    """The truth about several classes: the vote of all pairs, as in LIBSVM.

    A value of 0 is a vote for the second class of a pair, except against row p in the pairs of its
    own class. If classes tie, the first of them is elected.
    """

    def __init__(self, instance: Instance) -> None:
        self.codes = instance.y.astype(int)
        self.pairs = list(combinations(range(self.codes.max() + 1), 2))
        self.truths = [Truth(_pair(instance, first, second)) for first, second in self.pairs]

    @property
    def refereed(self) -> set[int]:
        """The rows that the referee has settled in some pair."""
        return set().union(*(truth.refereed for truth in self.truths))

    def elected(self, p: int) -> int | None:
        """Return the class that the exact signs of all pairs elect for row p."""
        votes = [0] * (self.codes.max() + 1)
        for (first, second), truth in zip(self.pairs, self.truths, strict=True):
            sign = truth.sign(p)
            if sign is None:
                return None
            # In the problem of a pair, the first class has the label -1, and others have +1.
            value = -sign if self.codes[p] == first else sign
            for_second = value > 0 or (value == 0 and self.codes[p] != second)
            votes[second if for_second else first] += 1
        return votes.index(max(votes))

    def contradiction(self, p: int, says_error: bool) -> str:
        """Return "wrong" if the election contradicts what is said about row p."""
        elected = self.elected(p)
        if elected is None:
            return "undecided"
        return "" if (elected != self.codes[p]) == says_error else "wrong"

    def contradicts_features(self, p: int, says_error: bool) -> bool:
        """Return False: kernels without rounding are looked at for two classes only."""
        return False

    def wrong_value(self, p: int, value: FloatArray, accuracy: FloatArray) -> str:
        """Return how a value of some pair is off by more than its accuracy, or nothing."""
        accuracies = np.broadcast_to(accuracy, value.shape)
        found = [
            truth.wrong_value(p, value[k], accuracies[k]) for k, truth in enumerate(self.truths)
        ]
        return "; ".join(text for text in found if text)

    def error_range(self, known: BoolArray) -> tuple[float, float]:
        """Return the least and the largest error rate, if the classes of some rows are known."""
        elected = [self.elected(p) if known[p] else None for p in range(len(known))]
        pairs = zip(elected, self.codes, strict=True)
        return _range([None if winner is None else winner != code for winner, code in pairs])

    def describe(self, p: int) -> str:
        """Return the elected class of row p and the exact margins of all pairs."""
        margins = ", ".join(shown(truth.margin(p)) for truth in self.truths)
        classes = f"class {self.elected(p)} for a row of class {self.codes[p]}"
        return f"{classes}, y f of the pairs {margins}"


def truth_of(instance: Instance) -> Truth | Elections:
    """Return the truth about a problem of two or more classes."""
    return Truth(instance) if instance.has_two_classes else Elections(instance)


def shown(margin: Number | None) -> str:
    """Return a margin as text."""
    return "unknown" if margin is None else f"{float(margin):.6g}"


def _pair(instance: Instance, first: int, second: int) -> Instance:
    """Return the problem of two of several classes: other rows take no part, with label +1."""
    own = (instance.y == first) | (instance.y == second)
    y = np.where(instance.y == first, -1.0, 1.0)
    return Instance(instance.K, y, np.where(own, instance.costs, 0.0), instance.exact_kernel)


def _distance(exact: Number, margin: float) -> float:
    """Return how far a double is from an exact margin."""
    return abs(float(exact - type(exact)(margin)))


def _raised(K: FloatArray) -> FloatArray:
    """Return the matrix with a diagonal raised by a share that makes it positive semi-definite."""
    diagonal = np.abs(K.diagonal())
    roots = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    least = float(np.linalg.eigvalsh(K / np.outer(roots, roots))[0])
    return K + np.diag((len(K) * UNIT + max(0.0, -2 * least)) * diagonal)


def _range(errors: list[bool | None]) -> tuple[float, float]:
    """Return the least and the largest share of errors; None stands for what is not known."""
    return (
        sum(error is True for error in errors) / len(errors),
        sum(error is not False for error in errors) / len(errors),
    )
