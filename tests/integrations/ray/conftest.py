"""A cluster that the tests of Ray's adapter share."""

import pytest

from tests.places import ROOT


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
