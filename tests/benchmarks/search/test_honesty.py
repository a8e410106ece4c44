import csv

import numpy as np
import pytest

from benchmarks.harness.runner import Options, combinations
from benchmarks.search import honesty


@pytest.mark.slow
def test_a_search_is_measured(monkeypatch, tmp_path):
    """A short search of two problems gives losses between 0 and 1, and an interval."""
    monkeypatch.setattr(honesty, "TRIALS", 25)
    results = honesty.run(Options(datasets=["noise 80"], folder=tmp_path))
    with (tmp_path / "honesty.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(results.rows) == len(combinations(metric=[0, 0], split=range(15)))
    for row in rows:
        chosen, honest, test = (float(row[name]) for name in ("chosen", "honest", "test_loss"))
        assert float(row["low"]) <= honest <= float(row["high"])
        assert 0 <= chosen <= 1
        assert test == pytest.approx(0.5, abs=0.05)
    gaps = [float(row["honest"]) - float(row["chosen"]) for row in rows]
    assert np.mean(gaps) > 0.02


def test_committed_figures():
    """The honest estimate has a smaller bias than each other estimate, for either metric."""
    lines = [
        [cell.strip() for cell in line.split("|")[1:-1]] for line in honesty.table().splitlines()
    ]
    found = {(line[0], line[1], line[3]): abs(float(line[4])) for line in lines[2:]}
    for (metric, method, estimate), bias in found.items():
        honest = found[metric, method, "honest estimate"]
        assert honest <= bias or estimate == "honest estimate", (metric, method, estimate)
