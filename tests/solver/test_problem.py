import numpy as np
import pytest

from span_hpo import Problem, solve
from tests.problems import moons_problem


def test_offset_without_in_bound_rows_is_the_middle():
    """Two rows at their cost: every offset in an interval is optimal, the middle is taken."""
    problem = Problem(np.eye(2), np.array([1.0, -1.0]), np.array([0.5, 0.5]))
    solution = solve(problem)
    assert not solution.in_bound.any()
    assert solution.offset_limits.interval == (-0.5, 0.5)
    assert solution.b == 0.0
    assert not solution.b_unique
    assert solution.kkt_violation() == 0.0


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (
            {"K": np.ones((2, 3))},
            ValueError,
            "`K` must be a square kernel matrix, got shape (2, 3)",
        ),
        ({"K": [[1, 2], [0, 1]]}, ValueError, "`K` must be symmetric"),
        ({"K": [[1, np.inf], [np.inf, 1]]}, ValueError, "`K` must be finite"),
        ({"y": [1, -1, 1]}, ValueError, "`y` must hold one value for each of the 2 rows"),
        ({"y": [0, 1]}, ValueError, "`y` must hold -1 and +1 only, got [0.0, 1.0]"),
        ({"costs": [1]}, ValueError, "`costs` must hold one value for each of the 2 rows"),
        ({"costs": [1, -2]}, ValueError, "`costs` must not be negative, got -2.0 in row 1"),
        ({"costs": [1, np.nan]}, ValueError, "`costs` must be finite, got nan in row 1"),
        ({"costs": [np.inf, 1]}, ValueError, "`costs` must be finite, got inf in row 0"),
        ({"costs": [0, 0]}, ValueError, "positive in some row of each class, got only zeros"),
        ({"costs": [1, 0]}, ValueError, "of each class, got only rows of class -1"),
        ({"y": [1, 1]}, ValueError, "of each class, got only rows of class +1"),
        ({"K": [[1.0]], "y": [1], "costs": [1]}, ValueError, "got only rows of class +1"),
    ],
)
def test_wrong_problems_are_named(change, kind, message):
    """No wrong problem reaches LIBSVM."""
    given = {"K": np.eye(2), "y": [-1, 1], "costs": [1.0, 1.0], **change}
    with pytest.raises(kind) as caught:
        Problem(**given)
    assert message in str(caught.value)


def test_blocks_in_place_of_a_matrix():
    """Any object that gives blocks and the diagonal is a kernel matrix."""
    problem = moons_problem(40)

    class Blocks:
        def __len__(self):
            return 40

        def diagonal(self):
            return problem.K.values.diagonal()

        def block(self, rows, columns):
            return problem.K.values[rows][:, columns]

    lazy = solve(Problem(Blocks(), problem.y, problem.costs))
    np.testing.assert_allclose(lazy.alpha, solve(problem).alpha, atol=1e-10)
