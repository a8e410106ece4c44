import numpy as np
import pytest

from span_hpo.kernels.blocks import (
    ALL,
    KernelMatrix,
    KernelSubset,
    as_kernel_blocks,
    kernel_product,
    kernel_times,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 5))


@pytest.fixture
def matrix():
    A = np.random.default_rng(0).normal(size=(8, 3))
    return A @ A.T


def test_subset_is_the_matrix_of_its_rows(matrix):
    """Blocks, diagonal and products of a subset are those of the smaller matrix."""
    rows = np.array([6, 1, 4, 0])
    subset = KernelSubset(KernelMatrix(matrix), rows)
    small = matrix[np.ix_(rows, rows)]
    assert len(subset) == 4
    np.testing.assert_array_equal(subset.diagonal(), np.diag(small))
    np.testing.assert_array_equal(subset.block(ALL, ALL), small)
    np.testing.assert_array_equal(subset.block(np.array([2, 0]), ALL), small[[2, 0]])
    np.testing.assert_array_equal(
        subset.block(np.array([3]), np.array([1, 2])), small[[3]][:, [1, 2]]
    )
    coefficients = np.array([0.0, 2.0, -1.0, 0.5])
    np.testing.assert_allclose(kernel_product(subset, coefficients), small @ coefficients)


def test_blocks_of_indices_are_copies(matrix):
    """What is done to a block does not touch the matrix."""
    blocks = KernelMatrix(matrix)
    block = blocks.block(np.arange(3), np.arange(8))
    block -= 100.0
    assert blocks.values.min() > -99


@pytest.mark.parametrize("n_rows", [0, 1, 20, 400])
@pytest.mark.parametrize("n_columns", [0, 3, 40, 60, 400])
def test_blocks_of_every_shape_are_parts_of_the_matrix(n_rows, n_columns):
    """Small, narrow and large blocks hold the same values, in the order that is asked for."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(400, 400))
    rows, columns = rng.permutation(400)[:n_rows], rng.permutation(400)[:n_columns]
    block = KernelMatrix(A + A.T).block(rows, columns)
    np.testing.assert_array_equal(block, (A + A.T)[np.ix_(rows, columns)])
    assert block.flags.writeable


def test_kernel_matrix_is_read_only_but_the_users_array_is_not():
    """Nobody can change a cached matrix by accident, and the user's own stays writable."""
    own = X @ X.T
    K = KernelMatrix(own)
    with pytest.raises(ValueError, match="read-only"):
        K.values[0, 0] = 1.0
    own[0, 0] = 2.0


@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 1.0])
def test_kernel_times_equals_the_plain_product(share):
    """Sparse and dense coefficients give K @ c, for matrices and for objects that give blocks."""

    class Blocks:
        def __len__(self):
            return 40

        def diagonal(self):
            return (X @ X.T).diagonal()

        def block(self, rows, columns):
            return (X @ X.T)[rows][:, columns]

    rows = np.flatnonzero(RNG.random(40) < share)
    coefficients = RNG.normal(size=len(rows))
    expected = (X @ X.T)[:, rows] @ coefficients
    for K in (KernelMatrix(X @ X.T), as_kernel_blocks(Blocks())):
        np.testing.assert_allclose(kernel_times(K, rows, coefficients), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("matrix", "kind", "message"),
    [
        (np.ones((3, 2)), ValueError, "`K` must be a square kernel matrix, got shape (3, 2)"),
        (np.array([[1.0, 2], [0, 1]]), ValueError, "`K` must be symmetric, got |K - K'| up to 2"),
        (np.array([[1.0, np.nan], [np.nan, 1]]), ValueError, "`K` must be finite"),
        (np.array([["a"]]), TypeError, "`K` must hold real numbers"),
    ],
)
def test_wrong_kernel_matrices_are_named(matrix, kind, message):
    """A matrix that is no kernel matrix is refused."""
    with pytest.raises(kind) as caught:
        as_kernel_blocks(matrix)
    assert message in str(caught.value)
