import os
import signal
import threading
import time

import numpy as np
import pytest

from span_hpo import Problem, leave_one_out, solve
from span_hpo.runtime.deadlines import (
    Deadline,
    OutOfTimeError,
    check_time,
    over_at_ctrl_c,
    time_limit,
)
from tests.problems import moons_problem


def test_only_a_time_that_is_over_raises():
    """Without a limit, or before it, nothing happens; the former limit is back after a block."""
    check_time()
    with time_limit(time.monotonic() - 1):
        with time_limit(None):
            check_time()
        with time_limit(time.monotonic() + 60):
            check_time()
        with pytest.raises(OutOfTimeError):
            check_time()
    check_time()


def test_a_limit_belongs_to_its_thread():
    """Another thread, which has set no limit, goes on."""
    ended = []
    with time_limit(time.monotonic() - 1):
        thread = threading.Thread(target=lambda: ended.append(check_time()))
        thread.start()
        thread.join()
    assert ended == [None]


def test_a_deadline_may_be_brought_forward():
    """A computation that runs towards a deadline ends when it is set to an earlier moment."""
    deadline = Deadline()
    with time_limit(deadline):
        check_time()
        deadline.end = time.monotonic() - 1
        with pytest.raises(OutOfTimeError):
            check_time()


@pytest.fixture
def heeded():
    """Let this process heed Ctrl-C, even if it was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_ends_computations_of_other_threads(heeded):
    """The interrupt of the main thread sets the deadlines, and the handler is put back."""
    deadline, ended = Deadline(), threading.Event()

    def compute():
        with time_limit(deadline):
            try:
                while True:
                    check_time()
            except OutOfTimeError:
                ended.set()

    thread = threading.Thread(target=compute)
    thread.start()
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), over_at_ctrl_c(deadline):
        time.sleep(5)
    assert ended.wait(5)
    thread.join()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_that_does_not_interrupt_ends_nothing():
    """Where Ctrl-C is only noted, computations go on."""
    deadline, noted = Deadline(), []
    before = signal.signal(signal.SIGINT, lambda *_: noted.append(True))
    try:
        with over_at_ctrl_c(deadline):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGINT, before)
    assert noted
    assert deadline.end == np.inf


def computed(problem, method):
    return leave_one_out(solve(problem), method, complete=True)


@pytest.mark.parametrize(
    ("method", "share"), [("exact", 0.0), ("refit", 0.4), ("stopping", 0.4), ("span", 0.0)]
)
def test_leave_one_out_ends_in_time(method, share):
    """Every method ends soon after its time, wherever it is then."""
    problem = moons_problem(500)
    start = time.monotonic()
    computed(problem, method)
    total = time.monotonic() - start
    start = time.monotonic()
    with pytest.raises(OutOfTimeError), time_limit(start + share * total):
        computed(problem, method)
    assert time.monotonic() - start < total + 1.0


def test_a_fit_ends_in_time():
    """A fit by pairwise steps that would take many seconds ends soon after its time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 3))
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(2))
    problem = Problem(K, np.where(rng.random(1500) < 0.5, -1.0, 1.0), np.full(1500, 1e5))
    start = time.monotonic()
    with pytest.raises(OutOfTimeError), time_limit(start + 0.2):
        solve(problem, solver="smo", polish=False)
    assert time.monotonic() - start < 3.0
