"""The result of leave-one-out."""

from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, Printable, counted
from span_hpo.solver import is_wrong


@dataclass(frozen=True, eq=False, repr=False)
class LeaveOneOut(Printable):
    """Leave-one-out decision values of all rows.

    Attributes
    ----------
    y
        Labels, shape (l,), -1 or +1; the numbers of the classes if there are more than two.
    decision_values
        ``f^p(x_p)``: the decision value of row p by the model without row p, shape (l,); of k > 2
        classes one for each pair, shape (l, k (k - 1) / 2), positive for the second class. Where
        `exact` is False it is an estimate ("span"), a bound that proves its sign ("exact"), or the
        value of a classifier that is proven to have its sign ("stopping"): enough for errors, not
        for rankings.
    squared_spans
        Free squared spans, shaped as the values, NaN where undefined and 0 where a row takes no
        part; None for method "refit".
    method
        How the values were computed.
    certified
        Mask of the rows whose leave-one-out class is proven; all of them for other methods than
        "span", unless even a refit does not converge.
    exact
        Mask of the rows whose value is known: it solves the problem without the row, up to
        rounding.
    error_bounds
        The least and the largest leave-one-out error that is possible after what is proven.
    n_undefined
        Number of rows whose span is undefined.
    n_refit
        Number of rows answered by a refit.
    """

    y: FloatArray
    decision_values: FloatArray
    squared_spans: FloatArray | None
    method: str
    certified: BoolArray
    exact: BoolArray
    error_bounds: tuple[float, float]
    n_undefined: int
    n_refit: int

    @property
    def error(self) -> float:
        """The leave-one-out error, ``mean(y f^p <= 0)``; of several classes, by their vote."""
        return float(np.mean(is_wrong(self.y, self.decision_values)))

    def _summary(self) -> tuple[str, dict[str, str]]:
        count = len(self.y)
        low, high = (f"{bound:.4f}" for bound in self.error_bounds)
        lines = {
            "error": f"{self.error:.4f} ({round(self.error * count):,} of {count:,})",
            "proven": f"{counted(int(self.certified.sum()), 'row')}: the error is "
            + (low if low == high else f"between {low} and {high}"),
            "exact values": counted(int(self.exact.sum()), "row"),
            "undefined spans": counted(self.n_undefined, "row"),
            "refitted": counted(self.n_refit, "row"),
        }
        return f"Leave-one-out by method {self.method!r}", lines


def error_bounds(proven: BoolArray, wrong: BoolArray) -> tuple[float, float]:
    """Return the least and the largest error that the proofs allow."""
    count, known_wrong = len(wrong), np.count_nonzero(proven & wrong)
    unproven = count - np.count_nonzero(proven)
    return known_wrong / count, (known_wrong + unproven) / count
