"""The rescaled radius-margin value on the postal digits."""

import numpy as np
import pytest

from benchmarks.harness.runner import Options
from benchmarks.papers import postal, rescaling
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import rows_of


@with_data
def test_quick_values_are_the_committed_ones(tmp_path):
    """A quick run measures three widths of two subsets, which are in the CSV."""
    rows = rescaling.run(Options(quick=True, folder=tmp_path)).rows
    assert len(rows) == 2 * 3
    for row in rows:
        (committed,) = rows_of("rescaling.csv", subset=row["subset"], sigma=row["sigma"])
        for column in rescaling.CURVES:
            assert float(row[column]) == pytest.approx(float(committed[column]), rel=1e-5)


def test_all_subsets_and_widths_are_there():
    """The CSV has each width of each subset, as the test errors have."""
    rows = rows_of("rescaling.csv")
    assert len(rows) == postal.SUBSETS["usps"] * len(postal.GRIDS["usps"])
    widths = {
        column: [point[0] for point in points] for column, points in rescaling.curves().items()
    }
    assert len({tuple(several) for several in widths.values()}) == 1


def test_the_rescaled_value_has_the_shape_of_the_test_error():
    """As in the published figure, both are least at one width; before the rescaling they differ."""
    found = rescaling.curves()
    middles = {column: np.array([middle for _, middle, _ in found[column]]) for column in found}
    errors = middles[rescaling.TEST]
    assert middles["rescaled"].argmin() == errors.argmin()
    logs = {column: np.log(values) for column, values in middles.items()}
    assert np.corrcoef(logs["rescaled"], logs[rescaling.TEST])[0, 1] > 0.99
    assert np.corrcoef(logs["radius_margin"], logs[rescaling.TEST])[0, 1] < 0.5
    assert len(rescaling.table().splitlines()) == 2 + 3
