import pytest

from tests.integrations.ray.parts import moons

pytest.importorskip("ray")
from span_hpo.integrations.ray import best_result

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_without_results():
    """Where no trial has seen all rows there is no best one."""
    with pytest.raises(ValueError, match="must have a trial that has seen all 120 rows, got 0"):
        best_result([], moons())
