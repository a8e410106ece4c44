"""Random tables of row losses that the tests share."""

import numpy as np

from span_hpo.metrics import RowLosses
from span_hpo.selection import LossTable


def table_of(values, strata=(slice(None),)):
    """Return the table of trials, given their losses of all rows, shape (T, n)."""
    trials = [RowLosses(tuple(own[rows] for rows in strata), strata).compact() for own in values]
    return LossTable(trials, strata)


def dense(table, n_rows):
    """Return the losses of all trials, strata and rows as the table holds them, NaN elsewhere."""
    found = np.full((len(table.trials), len(table.strata), n_rows), np.nan)
    for trial, parts in enumerate(table.trials):
        for stratum, rows in enumerate(table.strata):
            own = np.arange(n_rows)[rows]
            bits = parts[stratum].dtype == np.uint8
            values = np.unpackbits(parts[stratum]) if bits else parts[stratum].astype(float)
            found[trial, stratum, own] = values[: len(own)]
    return found


def random_tables(seed, n_trials=12, n_rows=23, kind="error"):
    """Return the losses by which trials are chosen, smooth errors, and numbers of supports."""
    rng = np.random.default_rng(seed)
    margins = rng.normal(0.8, 1.0, n_rows) + 0.4 * rng.normal(size=(n_trials, n_rows))
    if n_trials > 3:
        margins[3] = margins[1]  # trials that tie in everything but their support vectors
        margins[n_trials - 1] = margins[0]
    smooth = table_of(1 / (1 + np.exp(4 * margins)))
    n_support = rng.integers(2, n_rows, n_trials)
    if n_trials > 3:
        n_support[n_trials - 1] = n_support[0]
    classes = np.arange(n_rows) % 3 == 0
    of_classes = (np.flatnonzero(classes), np.flatnonzero(~classes))
    overlapping = (np.arange(0, 15), np.arange(8, n_rows), np.arange(4, 12))
    criterion = {
        "error": table_of(margins <= 0),
        "balanced": table_of(margins <= 0, of_classes),
        "hinge": table_of(np.maximum(0, 1 - margins)),
        "pairs": table_of(np.maximum(0, 1 - margins), overlapping),
    }[kind]
    return criterion, smooth, n_support
