import pytest

from span_hpo import ARD, RBF, FunctionKernel, Laplacian, Linear, Polynomial, Precomputed
from span_hpo.kernels.names import KERNELS, LIBSVM_KERNELS, as_kernel

WRITTEN = {
    "rbf": RBF(),
    "linear": Linear(),
    "poly": Polynomial(),
    "laplacian": Laplacian(),
    "ard": ARD(),
    "precomputed": Precomputed(),
}


def product(A, B):
    return A @ B.T


def test_words_stand_for_kernels():
    """Each word stands for the kernel with its default ranges."""
    assert {word: as_kernel(word) for word in KERNELS} == WRITTEN


def test_kernels_of_libsvm():
    """LIBSVM's model files have three of them, under names of their own."""
    assert {word: kind.libsvm_name for word, kind in LIBSVM_KERNELS.items()} == {
        "rbf": "rbf",
        "linear": "linear",
        "poly": "polynomial",
    }


def test_kernels_and_functions_are_taken_as_they_are():
    """A kernel is returned unchanged, and a function becomes a kernel."""
    given = RBF(gamma=0.3)
    assert as_kernel(given) is given
    assert as_kernel(product) == FunctionKernel(product)


@pytest.mark.parametrize("wrong", ["gauss", "RBF", 3, None, RBF, [RBF()]])
def test_what_is_no_kernel_is_named(wrong):
    """Unknown words, numbers and classes list what is known."""
    with pytest.raises(ValueError, match=r"`kernel` must be one of \['ard', 'laplacian'") as caught:
        as_kernel(wrong)
    assert str(caught.value).endswith(f"got {wrong!r}.")
