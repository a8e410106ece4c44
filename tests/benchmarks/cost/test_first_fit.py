"""The first fit of a process."""

from itertools import product

from benchmarks.cost import first_fit
from tests.benchmarks.results import rows_of


def test_committed_figures_cover_what_was_asked():
    """Both models were fitted with and without bytecode; bytecode saves time of the import."""
    rows = {(row["model"], row["caches"]): row for row in rows_of("first_fit.csv")}
    assert set(rows) == set(product(first_fit.MODELS, first_fit.CACHES))
    for model in first_fit.MODELS:
        empty, kept = (float(rows[model, caches]["import_s"]) for caches in first_fit.CACHES)
        assert kept < empty
