"""Equal rows of one class as one row, whose cost is the sum of theirs.

Rows of one class with equal features have equal margins, so only the sum of their dual variables
matters to the dual problem. A fit in which one row, the *leader*, stands for all of them is smaller
and has fewer solutions. Its dual variable is then shared out in one of two ways:

- in proportion to the costs, which gives the least ``sum_i alpha_i^2 / C_i`` (see
  `span_hpo.solver.optimal_face`)
- so that at most one of the rows is in-bound, from which paths and proofs start
"""

from dataclasses import dataclass

import numpy as np

from span_hpo.kernels import KernelMatrix
from span_hpo.runtime import FloatArray, IndexArray
from span_hpo.solver.problem import Problem
from span_hpo.solver.rounding import ALPHA_ROUNDING

_KNOWN = "groups of equal rows"  # where a kernel matrix keeps them


@dataclass(frozen=True, eq=False)
class MergedRows:
    """The groups of equal rows of a problem.

    Attributes
    ----------
    members
        Rows with a positive cost that are equal to another such row of their class, shape (k,).
    leaders
        For each of them, the first row of its group, shape (k,).
    own_costs
        Costs of all rows in the problem, shape (l,).
    costs
        Costs in which each leader has the sum of its group, and the other members have 0, shape
        (l,).
    """

    members: IndexArray
    leaders: IndexArray
    own_costs: FloatArray
    costs: FloatArray

    def gathered(self, alpha: FloatArray) -> FloatArray:
        """Return dual variables in which each leader has the sum of its group."""
        sums = alpha.copy()
        sums[self.members] = 0.0
        np.add.at(sums, self.leaders, alpha[self.members])
        return sums

    def shared(self, alpha: FloatArray) -> FloatArray:
        """Return dual variables that the rows of a group share in proportion to their costs."""
        found = alpha.copy()
        of_leaders, reach = alpha[self.leaders], self.costs[self.leaders]
        # A share never exceeds the cost, and equals it where the group is bounded.
        share = np.where(of_leaders == reach, 1.0, of_leaders / reach)
        found[self.members] = share * self.own_costs[self.members]
        return found

    def basic(self, alpha: FloatArray, shared: FloatArray) -> tuple[FloatArray, bool]:
        """Return dual variables of which at most one in each group is in-bound.

        Parameters
        ----------
        alpha
            Dual variables of the fit, shape (l,).
        shared
            The same dual variables, shared in proportion to the costs; see `shared`.

        Returns
        -------
        The dual variables, which are `shared` itself if no group is in-bound, and whether the
        in-bound rows are exactly those of the fit.
        """
        of_leaders = alpha[self.leaders]
        inside = (of_leaders > 0) & (of_leaders < self.costs[self.leaders])
        if not inside.any():
            return shared, True
        found, same = shared.copy(), True
        for leader in sorted(set(self.leaders[inside].tolist())):
            rows = self.members[self.leaders == leader]
            parts, only_first = _filled(float(alpha[leader]), self.own_costs[rows].tolist())
            found[rows] = parts
            same &= only_first
        return found, same

    def spans(self, squared: FloatArray, alpha: FloatArray) -> FloatArray:
        """Return the squared spans of all rows from those of the fit.

        An in-bound row of a group lies in the hull of the others, so that its span is 0.

        Parameters
        ----------
        squared
            Squared spans of the fit, shape (l,).
        alpha
            Dual variables of the fit, shape (l,).
        """
        found = squared.copy()
        of_leaders = alpha[self.leaders]
        bounded = of_leaders == self.costs[self.leaders]
        found[self.members] = np.where(bounded, squared[self.leaders], 0.0)
        return found


def merged_rows(problem: Problem) -> MergedRows | None:
    """Return the groups of equal rows of a problem.

    Returns
    -------
    The groups, or None if there are none or if the kernel matrix is not held in memory.
    """
    K, y, costs = problem.K, problem.y, problem.costs
    first = K.first_equal if isinstance(K, KernelMatrix) else None
    if first is None:
        return None
    if costs.min() > 0:
        known = vars(K).get(_KNOWN)  # the groups of all rows depend on K and y alone
        if known is None or known[0] is not y:
            known = vars(K)[_KNOWN] = y, _groups(first, y, np.arange(len(y)))
        groups = known[1]
    else:
        groups = _groups(first, y, np.flatnonzero(costs))
    members, leaders, number = groups
    if not len(members):
        return None
    sums = np.bincount(number, costs[members])
    if not np.isfinite(sums).all():
        return None
    merged = costs.copy()
    merged[members] = 0.0
    merged[leaders] = sums
    return MergedRows(members, leaders[number], costs, merged)


def _groups(
    first: IndexArray, y: FloatArray, rows: IndexArray
) -> tuple[IndexArray, IndexArray, IndexArray]:
    """Return the members and leaders of groups, and the number of the group of each member."""
    key = (2 * first + (y > 0))[rows]
    is_member = np.bincount(key)[key] > 1
    members = rows[is_member]
    _, leader, number = np.unique(key[is_member], return_index=True, return_inverse=True)
    return members, members[leader], number


def _filled(total: float, costs: list[float]) -> tuple[list[float], bool]:
    """Return dual variables with this sum of which at most one is inside its box.

    It is the first one if its cost allows for that, which the second part of the result states.
    """
    found, left, rounding = [0.0] * len(costs), total, ALPHA_ROUNDING * total
    for k in range(1, len(costs)):
        if costs[k] <= left + rounding:
            found[k] = costs[k]
            left = max(left - costs[k], 0.0)
    for k in range(len(costs)):
        if found[k] == 0 and left > rounding:
            found[k] = costs[k] if costs[k] <= left + rounding else left
            left = max(left - found[k], 0.0)
    return found, 0 < found[0] < costs[0]
