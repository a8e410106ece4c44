import os
import subprocess
import sys
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from span_hpo import leave_one_out, solve
from span_hpo.runtime.threads import one_blas_thread, thread_count
from tests.problems import moons_problem
from tests.processes import ENVIRONMENT


@pytest.fixture
def two_threads():
    """Let BLAS use two threads, as it would on a machine with two cores."""
    with threadpool_limits(2, user_api="blas"):
        yield


def blas_threads():
    libraries = threadpool_info()
    return {library["num_threads"] for library in libraries if library["user_api"] == "blas"}


@one_blas_thread
def inside(action=blas_threads):
    return action()


def test_limit_holds_inside_and_is_lifted_after(two_threads):
    """BLAS has one thread inside, also when nested or after an error, and its own number after."""
    assert blas_threads() == {2}
    assert inside() == {1}
    assert inside(lambda: (inside(), blas_threads())) == ({1}, {1})
    with pytest.raises(ZeroDivisionError):
        inside(lambda: 1 / 0)
    assert blas_threads() == {2}


def test_threads_that_overlap_leave_the_setting_as_it_was(two_threads):
    """However the stays of two threads overlap, the user's setting is back in the end."""
    entered, leave = threading.Event(), threading.Event()
    thread = threading.Thread(target=inside, args=(lambda: (entered.set(), leave.wait(10)),))
    thread.start()
    assert entered.wait(10)
    inside()
    leave.set()
    thread.join(10)
    assert blas_threads() == {2}


def test_limit_holds_until_the_last_thread_leaves(two_threads):
    """A thread that leaves does not lift the limit of one that stays; any thread may be last."""
    entered, leave, seen = threading.Event(), threading.Event(), []

    def stay():
        entered.set()
        leave.wait(10)
        seen.append(blas_threads())

    thread = threading.Thread(target=inside, args=(stay,))
    thread.start()
    assert entered.wait(10)
    assert inside() == {1}
    assert blas_threads() == {1}
    leave.set()
    thread.join(10)
    assert seen == [{1}]
    assert blas_threads() == {2}
    first, last = threading.Event(), threading.Event()
    other = threading.Thread(target=inside, args=(lambda: (first.set(), last.wait(10)),))
    other.start()
    assert first.wait(10)
    inside(lambda: (last.set(), other.join(10)))
    assert blas_threads() == {2}


def test_fits_give_the_same_bits_whatever_the_user_allows():
    """With two BLAS threads allowed a fit gives the numbers of one."""
    problem = moons_problem(300, cost=5.0)
    found = []
    for limit in (1, 2):
        with threadpool_limits(limit, user_api="blas"):
            found.append(leave_one_out(solve(problem)).decision_values)
    np.testing.assert_array_equal(*found)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Only Linux can take cores away.")
def test_all_cores_are_those_that_the_process_may_use():
    """-1 stands for the cores that the process was given, not for all of the machine."""
    code = (
        "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "from span_hpo.runtime.threads import thread_count\n"
        "print(thread_count('n_jobs', -1))"
    )
    found = subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, capture_output=True)
    assert found.stdout.split() == [b"1"]
    assert thread_count("n_jobs", -1) == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("wrong", [0, -2, 1.0, True, None, "all"])
def test_numbers_of_threads(wrong):
    """A positive number is taken as it is; what is neither that nor -1 is named."""
    assert thread_count("n_jobs", 3) == 3
    with pytest.raises(
        ValueError, match="`n_jobs` must be a whole number of at least 1, or -1 for all cores, got"
    ):
        thread_count("n_jobs", wrong)
