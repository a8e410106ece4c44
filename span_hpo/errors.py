"""The exception that reports numerical failures.

Wrong input raises the built-in ``ValueError`` or ``TypeError``. A fit, a quadratic program or a
kernel matrix that cannot be computed raises `SolverError`:

    RuntimeError
    └── SolverError
"""


class SolverError(RuntimeError):
    """A numerical step failed, although its input was valid.

    Examples
    --------
    >>> from span_hpo import Linear, SolverError
    >>> try:
    ...     Linear()([[1e200], [2e200]])
    ... except SolverError as error:
    ...     print(error)
    The inner products of the rows overflow: scale the features.
    """
