"""The exceptions that callers must tell from others, and the warnings about leaks.

Wrong input raises the built-in ``ValueError`` or ``TypeError``. A fit, a quadratic program or a
kernel matrix that cannot be computed raises `SolverError`, and a metric, kernel or weighting that
cannot be searched by gradients raises `NoDerivativeError`:

    RuntimeError
    └── SolverError

    ValueError
    └── NoDerivativeError

A leave-one-out error that may be too low issues `ScalingWarning` if the scaling is the reason, and
`LeakWarning` if features depend on the labels of the rows:

    UserWarning
    ├── LeakWarning
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


class NoDerivativeError(ValueError):
    """A metric, a kernel or a weighting has no derivative, so that there is no gradient anywhere.

    Examples
    --------
    >>> from span_hpo import SpanObjective
    >>> from span_hpo.errors import NoDerivativeError
    >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], metric="error")
    >>> try:
    ...     objective.value_and_gradient(objective.defaults()[0])
    ... except NoDerivativeError as error:
    ...     print(str(error).partition(":")[0])
    `metric` must have a derivative, which error has not
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


class LeakWarning(UserWarning):
    """A transformer or a score has seen the rows that are left out, so that errors are too low.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from sklearn.feature_selection import SelectKBest
    >>> from sklearn.pipeline import make_pipeline
    >>> from span_hpo import LeakWarning, LooSVC, loo_scorer
    >>> rng, y = np.random.default_rng(0), np.arange(60) % 2
    >>> noise = rng.normal(size=(60, 3000))
    >>> pipeline = make_pipeline(SelectKBest(k=20), LooSVC()).fit(noise, y)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always", LeakWarning)
    ...     error = -loo_scorer("error")(pipeline, noise, y)
    >>> error < 0.2, caught[0].category.__name__
    (True, 'LeakWarning')
    """
