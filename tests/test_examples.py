"""Every example runs as it stands, in a fresh process and an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(arguments, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    found = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_all_examples_are_tested():
    """No example is left out below."""
    assert {path.stem for path in (ROOT / "examples").glob("*.py")} == {
        "demo",
        "exact_loo",
        "quickstart",
        "score_to_costs",
    }


def test_exact_loo(tmp_path):
    """The exact methods agree in the number of errors, and the span-rule's bounds contain it."""
    printed = run([ROOT / "examples" / "exact_loo.py"], tmp_path)
    pattern = r"(\w+) +(\d+) +(\d+) +\[([\d.]+), ([\d.]+)\]"
    found = {name: numbers for name, *numbers in re.findall(pattern, printed)}
    assert set(found) == {"span", "exact", "stopping", "refit"}
    assert found["exact"] == found["stopping"] == found["refit"]
    errors = int(found["exact"][0]) / 569
    assert float(found["span"][2]) - 1e-4 <= errors <= float(found["span"][3]) + 1e-4


def test_quickstart(tmp_path):
    """The first example finds a model with a small test error."""
    printed = run([ROOT / "examples" / "quickstart.py"], tmp_path)
    assert float(re.search(r"test error +([\d.]+)", printed)[1]) < 0.1


@pytest.mark.slow
def test_score_to_costs(tmp_path):
    """Costs from confidence beat one cost for all rows."""
    printed = run([ROOT / "examples" / "score_to_costs.py"], tmp_path)
    plain, weighted = (float(error) for error in re.findall(r"test error ([\d.]+)", printed))
    assert weighted < plain


@pytest.mark.slow
def test_demo(tmp_path):
    """The demo prints its table, with the span-rule near the refits, and writes a picture."""
    pytest.importorskip("matplotlib")
    printed = run([ROOT / "examples" / "demo.py"], tmp_path)
    errors = {
        title.strip(): float(error)
        for title, error in re.findall(r"^(\S.+?) {2,}(0\.\d{4})", printed, flags=re.MULTILINE)
    }
    assert list(errors) == [
        "span-rule, one fit (optimistic: selected)",
        "leave-one-out, 284 refits",
        "5-fold cross-validation, 5 fits",
        "test rows",
    ]
    span, refit, *_ = errors.values()
    assert abs(span - refit) < 0.02
    assert (tmp_path / "demo.png").stat().st_size > 10_000


def test_readme_code_runs(tmp_path):
    """The programs in the README are programs."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    script = tmp_path / "readme.py"
    script.write_text(blocks[0])
    assert "gamma" in run([script], tmp_path)
    assert len(blocks[0].splitlines()) <= 12
    script.write_text(blocks[1])
    assert run([script], tmp_path)
