"""The words that stand for kernels, in Python, in files and on the command line."""

from typing import Any

from span_hpo.kernels.ard import ARD
from span_hpo.kernels.functions import (
    RBF,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from span_hpo.kernels.kernel import Kernel

# The kernels by the names that users write, in the order of the command line.
KERNELS: dict[str, type[Kernel]] = {
    "rbf": RBF,
    "linear": Linear,
    "poly": Polynomial,
    "laplacian": Laplacian,
    "ard": ARD,
    "precomputed": Precomputed,
}
# The kernels that LIBSVM and its model files have.
LIBSVM_KERNELS = {name: kind for name, kind in KERNELS.items() if kind.libsvm_name is not None}


def as_kernel(kernel: Any) -> Kernel:
    """Return the kernel that a user specifies by a name, a kernel object or a callable."""
    if isinstance(kernel, Kernel):
        return kernel
    if isinstance(kernel, str) and kernel in KERNELS:
        return KERNELS[kernel]()
    if callable(kernel) and not isinstance(kernel, type):
        return FunctionKernel(kernel)
    raise ValueError(
        f"`kernel` must be one of {sorted(KERNELS)}, a kernel such as RBF(gamma=0.1) or a "
        f"callable (X, Z) -> matrix, got {kernel!r}."
    )
