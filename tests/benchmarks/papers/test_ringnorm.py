"""Growth on ringnorm: the rows that are drawn, and a short run."""

import numpy as np
import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import ringnorm


def test_ringnorm_is_as_described():
    """Three tenths of the rows have mean 1 and variance 1, the others mean 0 and variance 4."""
    X, y = ringnorm.sample(20, 4096)
    assert np.mean(y > 0) == pytest.approx(0.3, abs=1e-3)
    assert X.min() == 0
    assert X.max() == 1
    ratio = X[y < 0].std(axis=0) / X[y > 0].std(axis=0)
    assert ratio == pytest.approx(np.full(20, 2.0), rel=0.1)
    apart = (X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)) / X[y > 0].std(axis=0)
    assert apart == pytest.approx(np.ones(20), abs=0.25)


def test_ringnorm_runs_quickly(tmp_path):
    """A quick run goes up to 4,096 rows, with times and counts that make sense."""
    found = ringnorm.run(Options(quick=True, folder=tmp_path))
    assert [int(row["rows"]) for row in found.rows] == [2**k for k in range(7, 13)]
    for row in found.rows:
        assert 0 < float(row["n_in_bound"]) < float(row["n_support"]) < int(row["rows"])
        assert min(float(row[f"{name}_s"]) for name in ("fit", "span", "exact", "cv5")) > 0
