import re
import sys

import pytest

from tests.cli.program import call, run


@pytest.mark.slow
def test_demo(tmp_path):
    """The demo prints its table, with the span-rule near the refits, and writes a picture."""
    pytest.importorskip("matplotlib")
    printed = run("demo", folder=tmp_path)
    errors = {
        title.strip(): float(error)
        for title, error in re.findall(r"^(\S.+?) {2,}(0\.\d{4})", printed, flags=re.MULTILINE)
    }
    assert list(errors) == [
        "honest, corrected for the search, no fit",
        "span-rule, one fit (optimistic: selected)",
        "exact leave-one-out, proven from one fit",
        "leave-one-out, 284 refits",
        "5-fold cross-validation, 5 fits",
        "test rows",
    ]
    honest, span, exact, refit, *_ = errors.values()
    assert span < honest < 2 * errors["test rows"]
    assert abs(span - refit) < 0.02
    assert exact == refit
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_demo_without_matplotlib(monkeypatch, capsys):
    """What is missing is named before the search, with the way to install it."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert "pip install 'span-hpo[optuna,plots]'" in call("demo", capsys=capsys, code=2)
