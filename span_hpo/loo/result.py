"""The result of leave-one-out, and its printed summary."""

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
        Labels, shape (l,): -1 and +1 for two classes, class numbers for more.
    decision_values
        Decision value ``f^p(x_p)`` of every row p by the model without row p, shape (l,). For k > 2
        classes there is one column for each pair, shape (l, k (k - 1) / 2), with positive values
        for the second class. Where `exact` is False, a value is an estimate (method "span", which
        gives -1 or 1 for many rows without a span), a bound that proves its sign ("exact"), or the
        value of a classifier whose sign is proven to be right ("stopping"). Such values suffice for
        errors, but not for rankings.
    squared_spans
        Free squared spans, shaped as the decision values: NaN where a span is undefined, and 0
        where a row takes no part in a fit. None for method "refit".
    method
        Name of the method that computed the values.
    certified
        Mask of the rows whose leave-one-out class is proven, shape (l,). For all methods but "span"
        these are nearly all rows. Most of the others have values that are 0, or so close to 0 that
        not even arithmetic with more digits proves their sign. A value of 0 counts as an error. The
        kernel must be positive semi-definite.
    exact
        Mask of the rows whose value comes from a solution of the problem without the row and is
        proven to be accurate to a hundredth of the margin, shape (l,). Most are far more accurate.
    accuracy
        Proven bound on the error of each value, shape (l,); infinite for values that are only
        bounds or estimates. For k > 2 classes it is the largest bound of all pairs.
    error_bounds
        Proven lower and upper bounds on the exact leave-one-out error.
    n_undefined
        Number of rows whose span is undefined.
    n_refit
        Number of rows that were refitted.

    Examples
    --------
    >>> from span_hpo import Linear, Problem, leave_one_out, solve
    >>> problem = Problem(Linear()([[0], [2], [3]]), y=[-1, 1, 1], costs=[1, 1, 1])
    >>> leave_one_out(solve(problem))
    Leave-one-out by method 'span'
      error            0.6667 (2 of 3)
      proven classes   2 rows; the exact error is between 0.3333 and 0.6667
      exact values     2 rows
      undefined spans  0 rows
      refitted         0 rows
    """

    y: FloatArray
    decision_values: FloatArray
    squared_spans: FloatArray | None
    method: str
    certified: BoolArray
    exact: BoolArray
    accuracy: FloatArray
    error_bounds: tuple[float, float]
    n_undefined: int
    n_refit: int

    @property
    def error(self) -> float:
        """The leave-one-out error, ``mean(y f^p <= 0)``; several classes are decided by vote."""
        return float(np.mean(is_wrong(self.y, self.decision_values)))

    def _summary(self) -> tuple[str, dict[str, str]]:
        count = len(self.y)
        low, high = (f"{bound:.4f}" for bound in self.error_bounds)
        lines = {
            "error": f"{self.error:.4f} ({round(self.error * count):,} of {count:,})",
            "proven classes": f"{counted(int(self.certified.sum()), 'row')}; the exact error is "
            + (low if low == high else f"between {low} and {high}"),
            "exact values": counted(int(self.exact.sum()), "row"),
            "undefined spans": counted(self.n_undefined, "row"),
            "refitted": counted(self.n_refit, "row"),
        }
        return f"Leave-one-out by method {self.method!r}", lines


def error_bounds(proven: BoolArray, wrong: BoolArray) -> tuple[float, float]:
    """Return the smallest and the largest error that the proofs allow."""
    count, known_wrong = len(wrong), int(np.count_nonzero(proven & wrong))
    unproven = count - int(np.count_nonzero(proven))
    return known_wrong / count, (known_wrong + unproven) / count
