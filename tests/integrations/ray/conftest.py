"""A cluster that the tests of Ray's adapter share."""

import gc
import warnings

import pytest

from tests.places import ROOT


def collect_files():
    """Collect files that nobody has closed, without the warnings about them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="package")
def cluster():
    """Give the tests a cluster of this machine, with two cores."""
    import ray

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))  # of the workers
        for name in ("OMP", "OPENBLAS", "MKL"):
            patch.delenv(f"{name}_NUM_THREADS", raising=False)  # Ray leaves users' settings alone
        ray.init(address="local", include_dashboard=False, log_to_driver=False, num_cpus=2)
        yield
        ray.shutdown()
        collect_files()


@pytest.fixture(autouse=True)
def files_of_trials():
    """Close what Ray's loggers leave open of trials that were running when a stopper ended a run.

    The warning about an open file would otherwise be raised in whichever test collects it.
    """
    yield
    collect_files()
