import subprocess
import sys

import pytest

from span_hpo.search import PRUNERS, SAMPLERS, SCHEDULERS, SEARCHES
from tests.places import ROOT


@pytest.mark.parametrize("names", [SAMPLERS, PRUNERS, SCHEDULERS, SEARCHES])
def test_names_differ(names):
    """A name stands for one thing."""
    assert len(set(names)) == len(names)


def test_names_need_no_framework():
    """The names are known before Optuna or Ray is imported."""
    code = "import sys, span_hpo.search; print(sorted({'optuna', 'ray'} & set(sys.modules)))"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert found.stdout.strip() == "[]"
