"""The pictures of the documentation."""

import pytest

from benchmarks import figures


def test_the_prediction_is_drawn(tmp_path):
    """The picture of estimates and test errors is written from the committed CSV."""
    pytest.importorskip("matplotlib")
    figures.prediction_figure(tmp_path / "span_prediction.png")
    assert (tmp_path / "span_prediction.png").stat().st_size > 10_000
