"""What every test needs before NumPy is imported."""

import os

# One BLAS thread: the problems are small, and the same input then gives the same number.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
