"""Factors and triangular systems, by compiled functions and by SciPy's wrappers."""

import contextlib
import threading
import time

import numpy as np
import pytest

from span_hpo.runtime import interpreted
from span_hpo.solver.lapack import cholesky, inverse_of_triangular, solve_triangular
from tests.compiled import needs_compiled

RNG = np.random.default_rng(0)


def gram(n):
    A = RNG.normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@pytest.fixture(params=["compiled", "wrappers"])
def way(request):
    with interpreted() if request.param == "wrappers" else contextlib.nullcontext():
        yield request.param


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [1, 5, 150])
def test_both_ways_solve(n):
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


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("n", [5, 150])
def test_indefinite_matrix_has_no_factor(n):
    """A negative pivot is told, not factored."""
    H = gram(n)
    H[n - 1, n - 1] = -1.0
    assert cholesky(H) is None


@pytest.mark.parametrize("n", [1, 2, 30, 200])
def test_both_ways_agree(n):
    """Compiled functions and wrappers call the same routines, for matrices in any layout."""
    H = gram(n)
    fixed = H.copy()
    fixed.setflags(write=False)
    wide = np.zeros((2 * n, 3 * n))
    wide[::2, ::3] = H
    L = cholesky(H)
    systems = [H, H[:, :0], H[0], np.asfortranarray(H), wide[::2, ::3], wide[0, ::3], fixed]
    found = [
        *map(cholesky, (np.asfortranarray(H), wide[::2, ::3], fixed)),
        inverse_of_triangular(L),
        *(solve_triangular(L, B, transposed=t) for B in systems for t in (False, True)),
    ]
    with interpreted():
        wanted = [
            *[cholesky(H)] * 3,
            inverse_of_triangular(L),
            *(solve_triangular(L, B, transposed=t) for B in systems for t in (False, True)),
        ]
    for one, other in zip(found, wanted, strict=True):
        assert one.flags.f_contiguous
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@needs_compiled
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
