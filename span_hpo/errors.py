"""The exception that reports numerical failures, and the warning about leaking scalings.

Wrong input raises the built-in ``ValueError`` or ``TypeError``. A fit, a quadratic program or a
kernel matrix that cannot be computed raises `SolverError`:

    RuntimeError
    └── SolverError

A leave-one-out error that may be too low because of the scaling issues `ScalingWarning`:

    UserWarning
    └── ScalingWarning
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


class ScalingWarning(UserWarning):
    """Rows that are left out have taken part in the scaling, or avoiding this takes many fits.

    Examples
    --------
    >>> import warnings
    >>> from span_hpo import RBF, ScalingWarning, SpanSVC, UniformCost
    >>> model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", ScalingWarning)
    ...     model = model.fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> str(caught[0].message).partition(".")[0]
    '2 of 4 rows (50 %) alone define the minimum or maximum of a feature'
    """
