"""Follow dual paths and check where they stop in one call of compiled code.

On a few hundred rows, the paths themselves take less time than the Python code around them. The
extension `span_hpo.loo.path._one_call` makes the tableau, follows all paths, computes the columns
that they need and checks their last states in one call, without the GIL. It leaves a row open if no
in-bound row is left at the end of its path, if the path is long, or if the check proves nothing.
Such rows, of which there are few on most problems, are followed by `span_hpo.loo.path.follow`.

The check differs from that of `span_hpo.loo.path.check`, which computes all margins anew from the
kernel matrix. Here the state of a path is a sum of few columns of the tableau, whose entries are
known up to the rounding of triangular systems. With ``H = L L'`` of n base rows I, the computed
solution x of ``H x = h`` satisfies

``|H x - h|_i <= c (n + 8) u |L_i| (|L^-1 h| + sum_j |L_j| |x_j|)``

for the rounding unit u and a small constant c, because Cholesky factors and triangular solutions
are backward stable. A column that changes the dual variables of I by ``d`` therefore changes
decision values as the tableau says, up to a common offset, which proofs leave open, and an error of

``c (n + 8) u D_j B (sum_i |d_i| + 1 + D_k / B)``

for row j and the column of row k. Here ``R`` is the largest ``sqrt(K_ii)`` in I, B the larger one
of R and the largest ``|L_i|``, and ``D_j`` the larger one of B and ``sqrt(K_jj) + R``. The last two
terms are absent if k is a base row. docs/theory.md has the derivation.

References
----------
Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, Theorems 8.5 and 10.3.
"""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from span_hpo.kernels import KernelMatrix, largest_entry
from span_hpo.loo.path.tableau import Base, PathState, base_of
from span_hpo.loo.proofs import Proofs
from span_hpo.runtime import FloatArray, IndexArray, compiled, runs_machine_code
from span_hpo.solver import Problem

# Constant c of the errors above: 24 for the sum of all terms, and some for sums of columns.
_RESIDUAL = 40.0
# Columns have entries for rows that are this much farther from their margin than watched rows.
_WIDER = 10.0
_SHARP = 1e-6  # accuracy, in units of the margin, beyond which no sharper bound is sought
_MOST_ROWS = 4096  # largest number of rows for a call that Ctrl-C cannot interrupt
_MOST_ENTRIES = 8_000_000  # largest number of entries in the columns that are kept
_AT_ONCE = 128  # number of columns that are computed at once
_ROWS_FOR_THREADS = 64  # least number of paths for which threads are started

_Findings = tuple[FloatArray, FloatArray]


def followed_in_one_call(
    problem: Problem, state: PathState, rows: IndexArray, *, complete: bool, threads: int = 1
) -> Proofs:
    """Follow the paths of some rows from one state, and return what the stops prove.

    Parameters
    ----------
    problem
        Kernel matrix, labels and costs.
    state
        State at which the paths start.
    rows
        Indices of support vectors, none of which may be the last row of its class.
    complete
        Follow every path to its end, not only until the class is proven.
    threads
        Number of threads among which the rows are divided.

    Returns
    -------
    Proofs for the rows. Nothing is entered for rows that are left open.
    """
    proofs = Proofs.none(len(rows))
    K = problem.K
    if not (isinstance(K, KernelMatrix) and runs_machine_code() and len(problem) <= _MOST_ROWS):
        return proofs
    base_rows = base_of(problem, state)

    def follow(positions: IndexArray) -> None:
        margin, accuracy = followed(
            problem,
            K.values,
            state,
            base_rows,
            rows[positions],
            complete,
            largest_entry(K),
            _MOST_ENTRIES,
        )
        found = np.isfinite(margin)
        positions = positions[found]
        proofs.margin[positions] = margin[found]
        proofs.accuracy[positions] = accuracy[found]
        proofs.solved[positions] = np.isfinite(accuracy[found])
        proofs.proven[positions] = True

    everyone = np.arange(len(rows))
    if threads > 1 and len(rows) >= _ROWS_FOR_THREADS:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(follow, (everyone[start::threads] for start in range(threads))))
    else:
        follow(everyone)
    return proofs


@compiled
def followed(
    problem: Problem,
    K: FloatArray,
    state: PathState,
    base_rows: Base,
    rows: IndexArray,
    complete: bool,
    largest: float,
    most_entries: int,
) -> _Findings:
    """Return the margins of rows, or bounds that prove their signs, and their accuracies.

    The margin is NaN where nothing is proven. The accuracy is infinite for a bound. Without
    compiled code nothing is proven.
    """
    return np.full(len(rows), np.nan), np.full(len(rows), np.inf)
