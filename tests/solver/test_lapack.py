"""Factors and triangular systems, through SciPy's wrappers and through pointers."""

import threading
import time

import numpy as np
import pytest

from span_hpo.solver import lapack
from span_hpo.solver.lapack import cholesky, inverse_of_triangular, solve_triangular

RNG = np.random.default_rng(0)


def gram(n):
    A = RNG.normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.fixture(params=["pointers", "wrappers"])
def way(request, monkeypatch):
    if request.param == "wrappers":
        monkeypatch.setattr(lapack, "lapack_routine", lambda name, kinds: None)
    return request.param


@pytest.mark.parametrize("n", [1, 5, 150])
def test_both_ways_solve(way, n):
    """Factor, solutions and inverse are what they should be, in both orders of memory."""
    H = gram(n)
    kept = H.copy()
    L = cholesky(H)
    np.testing.assert_array_equal(H, kept)
    assert L.flags.f_contiguous
    np.testing.assert_allclose(L @ L.T, H, rtol=1e-12, atol=1e-9)
    np.testing.assert_array_equal(L, np.tril(L))
    np.testing.assert_allclose(inverse_of_triangular(L) @ L, np.eye(n), atol=1e-10)
    for m in (0, 1, 7):
        for order in "CF":
            B = np.array(RNG.normal(size=(n, m)), order=order)
            kept = B.copy()
            np.testing.assert_allclose(L @ solve_triangular(L, B), B, atol=1e-9)
            np.testing.assert_allclose(L.T @ solve_triangular(L, B, transposed=True), B, atol=1e-9)
            np.testing.assert_array_equal(B, kept)
            X = solve_triangular(L, B, overwrite=True)
            np.testing.assert_allclose(L @ X, kept, atol=1e-9)


@pytest.mark.parametrize("n", [5, 150])
def test_indefinite_matrix_has_no_factor(way, n):
    """A negative pivot is told, not factored."""
    H = gram(n)
    H[n - 1, n - 1] = -1.0
    assert cholesky(H) is None


def test_pointers_are_used_on_this_scipy():
    """The routines are found, and another signature than the expected one is refused."""
    for name, kinds in (("dpotrf", "cidii"), ("dtrtrs", "ccciididii"), ("dtrtri", "ccidii")):
        assert lapack.lapack_routine(name, kinds) is not None
        assert lapack.lapack_routine(name, kinds + "i") is None
    assert lapack.lapack_routine("no_such_routine", "c") is None


def test_other_threads_run_meanwhile():
    """While a large system is solved another thread goes on counting."""
    L = cholesky(gram(1500))
    B = np.array(RNG.normal(size=(1500, 1500)), order="F")
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    start = time.perf_counter()
    solve_triangular(L, B, overwrite=True)
    end = time.perf_counter()
    done.set()
    thread.join()
    assert len([moment for moment in ticks if start < moment < end]) >= 3
