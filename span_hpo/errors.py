"""The one exception of the package.

Wrong input raises the built-in ``ValueError`` or ``TypeError``. A fit, a quadratic program or a
kernel matrix that cannot be computed raises

    RuntimeError
    └── SolverError
"""


class SolverError(RuntimeError):
    """A numerical step failed, although its input was valid."""
