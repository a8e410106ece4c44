"""SVM+, which models the slacks of the training rows by privileged features.

The primal problem, with privileged features ``z~_i`` that are known of training rows only, is

    min  1/2 |w|^2 + gamma/2 |w~|^2 + C sum_i xi_i,    xi_i = <w~, z~_i> + b~
    s.t. y_i (<w, z_i> + b) >= 1 - xi_i,   xi_i >= 0

With the multipliers ``alpha_i`` of the margins and ``beta_i`` of the signs of the slacks, and
``a~ = alpha + beta - C``, its dual is

    max  sum_i alpha_i - 1/2 alpha' Y K Y alpha - 1/(2 gamma) a~' K~ a~
    s.t. sum_i y_i alpha_i = 0,   sum_i a~_i = 0,   alpha, beta >= 0

and ``w = sum_i alpha_i y_i z_i``, ``w~ = 1/gamma sum_i a~_i z~_i``. The offsets are the multipliers
of the two sums. It is solved over ``(alpha, beta) / C``, with both kernels centred, which changes
neither quadratic form because of the sums.

References
----------
Lapin, Hein and Schiele, "Learning using privileged information: SVM+ and weighted SVM", 2014,
eqs. 1 and 3.
"""

from dataclasses import dataclass

import numpy as np

from span_hpo.runtime import BoolArray, FloatArray, Printable, one_blas_thread, read_only
from span_hpo.solver.box_qp import nonnegative_minimum
from span_hpo.solver.centred_gram import doubly_centred


@dataclass(frozen=True, eq=False, repr=False)
class SVMPlusSolution(Printable):
    """The primal and dual solution of SVM+.

    Attributes
    ----------
    alpha, beta
        Multipliers of the margins and of the signs of the slacks, shape (l,).
    b
        Offset of the decision function.
    decision_values
        Decision values of the training rows, shape (l,).
    slacks
        Values ``xi_i = <w~, z~_i> + b~`` of the correcting function, shape (l,).
    y
        Labels, shape (l,), -1 or +1.
    C, gamma
        Cost of the slacks, and weight of the correcting function.

    Examples
    --------
    >>> import numpy as np
    >>> from span_hpo.solver import solve_svm_plus
    >>> K = np.array([[0.0, 0.0], [0.0, 4.0]])
    >>> solution = solve_svm_plus(K, np.eye(2), np.array([-1.0, 1.0]), C=10.0, gamma=1.0)
    >>> solution.alpha.round(3).tolist(), round(solution.b, 3)
    ([0.5, 0.5], -1.0)
    """

    alpha: FloatArray
    beta: FloatArray
    b: float
    decision_values: FloatArray
    slacks: FloatArray
    y: FloatArray
    C: float
    gamma: float

    @property
    def is_support(self) -> BoolArray:
        """Mask of the support vectors, whose multiplier exceeds that by which they miss the margin.

        One of the two is 0 at the solution, and both are rounded.
        """
        mask: BoolArray = self.alpha / self.C > self.y * self.decision_values - 1 + self.slacks
        return mask

    @property
    def costs(self) -> FloatArray:
        """Costs ``alpha + beta`` with which a weighted SVM has the same decision function.

        The multiplier of a positive slack is 0 at the solution, and its rounding is left out.
        """
        costs: FloatArray = self.alpha + np.where(self.beta / self.C > self.slacks, self.beta, 0.0)
        return costs

    def kkt_violation(self) -> float:
        """Return by how much the solution misses its optimality conditions.

        It is the largest violation of a margin, of the sign of a slack, of a sum over C, and of a
        product of a multiplier over C with what it multiplies.
        """
        short = 1 - self.slacks - self.y * self.decision_values
        alpha, beta = self.alpha / self.C, self.beta / self.C
        sums = self.y @ alpha, (alpha + beta - 1).sum()
        return float(
            max(
                short.max(),
                -self.slacks.min(),
                np.abs(sums).max(),
                np.abs(alpha * short).max(),
                np.abs(beta * self.slacks).max(),
            )
        )

    def _summary(self) -> tuple[str, dict[str, str]]:
        return f"Solution of SVM+ on {len(self.y)} rows", {
            "support vectors": str(np.count_nonzero(self.is_support)),
            "KKT violation": f"{self.kkt_violation():.1e}",
        }


@one_blas_thread
def solve_svm_plus(
    K: FloatArray, privileged: FloatArray, y: FloatArray, *, C: float, gamma: float
) -> SVMPlusSolution:
    """Return the solution of SVM+ by a dense quadratic program with 2 l variables.

    Time grows with the cube of the number of rows.

    Parameters
    ----------
    K
        Kernel matrix of the features, shape (l, l).
    privileged
        Kernel matrix of the privileged features, shape (l, l).
    y
        Labels, shape (l,), -1 or +1.
    C
        Cost of the slacks; positive.
    gamma
        Weight of the correcting function; positive.

    Raises
    ------
    SolverError
        If the program cannot be solved.
    """
    count = len(y)
    signed = C * y[:, None] * doubly_centred(K) * y
    correcting = C / gamma * doubly_centred(privileged)
    P = np.block([[signed + correcting, correcting], [correcting, correcting]])
    sums = np.vstack([np.append(y, np.zeros(count)), np.ones(2 * count)])
    linear = np.append(-np.ones(count), np.zeros(count))
    found = nonnegative_minimum(P, linear, sums, np.array([0.0, float(count)]))
    alpha, beta = C * found.x[:count], C * found.x[count:]
    # The gradient by alpha is y f - 1 + xi, and that by beta is xi.
    offset, level = found.multipliers
    slacks = correcting @ ((alpha + beta) / C - 1) + level
    without_offset = K @ (y * alpha)
    b = float(offset - without_offset.mean())
    return SVMPlusSolution(
        alpha=read_only(alpha),
        beta=read_only(beta),
        b=b,
        decision_values=read_only(without_offset + b),
        slacks=read_only(slacks),
        y=y,
        C=C,
        gamma=gamma,
    )
