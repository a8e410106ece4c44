"""What every test needs before NumPy is imported."""

import os

# One BLAS thread: the problems are small, and the same input then gives the same number.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

from span_hpo.runtime import runs_machine_code  # noqa: E402  after the number of threads is set

if not runs_machine_code():
    # Tests of a wheel without compiled modules: processes that tests start need not warn of that.
    os.environ.setdefault("SPAN_HPO_INTERPRETED", "1")
