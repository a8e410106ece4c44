import subprocess
import sys

import numpy as np

from span_hpo.runtime import compilation


def double(x):
    return 2 * x


@compilation.compiled(double)
def doubled_sum(x):
    """Return twice the sum."""
    total = 0.0
    for value in x:
        total += double(value)
    return total


def test_compiled_function_is_the_same_function():
    """It gives the same answer, keeps its name, and runs as plain Python on request."""
    x = np.arange(5.0)
    assert doubled_sum(x) == 20.0
    with compilation.interpreted():
        assert doubled_sum(x) == 20.0
    assert doubled_sum.__name__ == "doubled_sum"


def test_machine_code_runs_outside_the_block_only(monkeypatch):
    """In the block the function that was written runs, outside it what Numba made of it."""
    monkeypatch.setattr(compilation, "_machine_code", lambda *parts: lambda x: "compiled")
    monkeypatch.setattr(compilation, "has_numba", lambda: True)

    @compilation.compiled()
    def plain(x):
        return x

    with compilation.interpreted():
        assert plain(3) == 3
    assert plain(3) == "compiled"


def test_no_folder_for_the_cache():
    """A function that Numba cannot keep on disk is compiled for this process only."""
    namespace = {}
    exec("def triple(x):\n    return 3 * x", namespace)  # has no file beside which to keep it
    assert compilation.compiled()(namespace["triple"])(2.0) == 6.0


def test_everything_works_without_numba():
    """With Numba hidden the exact method runs, and gives the same answers."""
    code = """
import sys
sys.modules["numba"] = None
import importlib.util
importlib.util.find_spec = lambda name, find=importlib.util.find_spec: (
    None if name == "numba" else find(name)
)
from span_hpo import leave_one_out, solve
from tests.problems import moons_problem
solution = solve(moons_problem(60, cost=10.0))
for method in ("exact", "stopping"):
    print(repr(leave_one_out(solution, method).error))
"""
    from span_hpo import leave_one_out, solve
    from tests.problems import moons_problem

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = leave_one_out(solve(moons_problem(60, cost=10.0)), "exact").error
    assert found.stdout.split() == [repr(expected)] * 2
