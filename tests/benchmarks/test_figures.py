"""The pictures of the documentation."""

import pytest

from benchmarks import figures


def test_the_prediction_is_drawn(tmp_path):
    """The picture of estimates and test errors is written from the committed CSV."""
    pytest.importorskip("matplotlib")
    figures.prediction_figure(tmp_path / "span_prediction.png")
    assert (tmp_path / "span_prediction.png").stat().st_size > 10_000


@pytest.mark.parametrize("name", ["rescaling", "bound_line", "bound_contours"])
def test_figures_of_bounds_are_drawn(tmp_path, name):
    """The pictures of radius-margin bounds are written from the committed CSVs."""
    pytest.importorskip("matplotlib")
    getattr(figures, f"{name}_figure")(tmp_path / f"{name}.png")
    assert (tmp_path / f"{name}.png").stat().st_size > 10_000
