"""What the tests of Optuna's adapter share."""

import optuna
import pytest

from span_hpo import SpanObjective
from tests.problems import two_moons


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def objective():
    return SpanObjective(*two_moons(80))
