"""Kernels, their matrices, and the cache that keeps matrices between trials."""

from span_hpo.kernels.ard import ARD
from span_hpo.kernels.blocks import (
    ALL,
    KernelBlocks,
    KernelMatrix,
    as_kernel_blocks,
    entry_range,
    first_equal_rows,
    is_held,
    kernel_product,
    kernel_times,
    largest_entry,
)
from span_hpo.kernels.cache import KernelCache, KernelMemory, default_memory_limit
from span_hpo.kernels.distances import cross_squared_distances, median_squared_distance
from span_hpo.kernels.functions import (
    RBF,
    RELATIVE_WIDTHS,
    FunctionKernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
)
from span_hpo.kernels.kernel import Kernel, WeightBlock
from span_hpo.kernels.names import KERNELS, LIBSVM_KERNELS, as_kernel

__all__ = [
    "ALL",
    "ARD",
    "KERNELS",
    "LIBSVM_KERNELS",
    "RBF",
    "RELATIVE_WIDTHS",
    "FunctionKernel",
    "Kernel",
    "KernelBlocks",
    "KernelCache",
    "KernelMatrix",
    "KernelMemory",
    "Laplacian",
    "Linear",
    "Polynomial",
    "Precomputed",
    "WeightBlock",
    "as_kernel",
    "as_kernel_blocks",
    "cross_squared_distances",
    "default_memory_limit",
    "entry_range",
    "first_equal_rows",
    "is_held",
    "kernel_product",
    "kernel_times",
    "largest_entry",
    "median_squared_distance",
]
