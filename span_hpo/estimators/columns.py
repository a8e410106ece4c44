"""Check the rows that an estimator gets, and turn them into rows of numbers.

Arrays, sparse rows and DataFrames of numbers stay as they are. DataFrames with text or categories,
and rows whose missing values are filled in, are encoded as the command line encodes tables.
"""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import check_X_y, validate_data

from span_hpo.io import Encoding, Table, learned_encoding
from span_hpo.runtime import Array, IndexArray


def training_rows(estimator: Any, X: Any, y: Any, *, is_kernel: bool) -> tuple[Any, Array]:
    """Return the checked rows and labels of a fit.

    Parameters
    ----------
    estimator
        Estimator of scikit-learn, which gets the number and the names of the columns, and whose
        argument `impute` says what is done about missing values.
    X, y
        Rows and labels as the user gave them.
    is_kernel
        Whether `X` is a kernel matrix.

    Returns
    -------
    Numbers without missing values, as an array or sparse rows; or a table that is to be encoded.

    Raises
    ------
    ValueError, TypeError
        If rows or labels are not as scikit-learn and `learned_encoding` want them.
    """
    if is_kernel and estimator.impute is not None:
        raise ValueError(
            f"`impute` must be None for a precomputed kernel, got {estimator.impute!r}."
        )
    table = None if is_kernel else _table_with_text(X)
    if table is not None:
        validate_data(estimator, X, skip_check_array=True)
        # One column stands for the features, so that the labels are checked as usual.
        _, labels = check_X_y(
            np.zeros((len(table), 1)), y, ensure_min_samples=2, estimator=estimator
        )
        return table, labels
    X, y = validate_data(
        estimator,
        X,
        y,
        accept_sparse="csr",
        dtype=np.float64,
        ensure_min_samples=2,
        ensure_all_finite=True if is_kernel or issparse(X) else "allow-nan",
    )
    if is_kernel or issparse(X):
        return X, y
    if estimator.impute is None and not np.isnan(X).any():
        return X, y
    return _numbered_table(X, _names_of(estimator)), y


def learned_columns(
    rows: Any, kept: IndexArray, impute: str | None, y: Any
) -> tuple[Any, Encoding | None]:
    """Return the features of the rows that are kept, and the encoding that they have taught.

    Parameters
    ----------
    rows
        Rows that `training_rows` has returned.
    kept
        Rows of the fit.
    impute
        How missing values are filled in, or None.
    y
        Labels as the user gave them, whose name, if they have one, is kept with the encoding.
    """
    if not isinstance(rows, Table):
        return rows[kept], None
    table = rows.take(kept)
    name = getattr(y, "name", None)
    target = name if isinstance(name, str) and name not in table.columns else None
    encoding = learned_encoding(table, list(table.columns), target=target, impute=impute)
    return encoding.encoded(table), encoding


def new_rows(estimator: Any, X: Any, encoding: Encoding | None) -> Any:
    """Return the features of rows that a fitted estimator is to predict.

    Parameters
    ----------
    estimator
        Fitted estimator, which knows the number and the names of the columns.
    X
        Rows as the user gave them.
    encoding
        Encoding of the training rows, or None if these were numbers.

    Raises
    ------
    ValueError, TypeError
        If the rows do not have the columns of the training rows, or values are missing that nothing
        fills in.
    """
    if encoding is None:
        is_table = not issparse(X) and not estimator.__sklearn_tags__().input_tags.pairwise
        X = validate_data(
            estimator,
            X,
            accept_sparse="csr",
            dtype=np.float64,
            reset=False,
            ensure_all_finite="allow-nan" if is_table else True,
        )
        if is_table and np.isnan(X).any():
            table = _numbered_table(X, _names_of(estimator))
            counts = table.missing_counts(table.columns)
            raise ValueError(
                f"`X` must have a value (not NaN) in every cell, got none in "
                f"{table.about_missing(counts)}. Fill them in, or fit with `impute`."
            )
        return X
    names = [column.name for column in encoding.features]
    if hasattr(X, "columns"):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        # scikit-learn has compared the names, if both have names; otherwise the order counts.
        columns = Table.of(X).columns.values()
        return encoding.encoded(Table.of(dict(zip(names, columns, strict=True))))
    is_text = any(column.categories is not None for column in encoding.features)
    X = validate_data(
        estimator,
        X,
        accept_sparse="csr",
        dtype=None if is_text else np.float64,
        reset=False,
        ensure_all_finite="allow-nan",
    )
    cells = X.toarray() if issparse(X) else X
    return encoding.encoded(_numbered_table(cells, names))


def _table_with_text(X: Any) -> Table | None:
    """Return the table of a DataFrame with a column that holds no numbers, and None otherwise."""
    if issparse(X) or not hasattr(X, "columns"):
        return None
    names = list(X.columns)
    if len({str(name) for name in names}) < len(names) and _is_numeric(np.asarray(X)):
        return None  # scikit-learn accepts columns of equal names
    table = Table.of(X)
    if not table.categorical and all(map(_is_numeric, table.columns.values())):
        return None
    return table


def _is_numeric(values: Array) -> bool:
    return values.dtype.kind in "biufc"


def _names_of(estimator: Any) -> list[str]:
    """Return the names of the columns of a fit, as scikit-learn calls them if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        return [f"x{column}" for column in range(estimator.n_features_in_)]
    return [str(name) for name in names]


def _numbered_table(rows: Array, names: list[str]) -> Table:
    return Table.of(dict(zip(names, rows.T, strict=True)))
