"""Compiled steps of the reference: from any feasible point of a dual problem to its solution.

The notation is that of `benchmarks.robustness.reference`. *Rows inside* are strictly between their
bounds. All functions change `beta` in place. They share no code with the package, not even its
compiled core. If Numba happens to be installed, it compiles them, which makes the benchmark one to
three times as fast; no extra installs it, because the slow tests bear the difference.
"""

import importlib
import importlib.util
import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
F = TypeVar("F", bound=Callable[..., object])

UNIT = 2.0**-52  # rounding unit of double precision
NOISE = 8.0  # multiple of the rounding that the operations of a sum may add up to
SNAP = 1e-11  # share of its box within which a row may really stand at the bound
_INDEPENDENT = 1e-13  # a squared distance below this share of its terms is rounding


def _compiled(function: F) -> F:
    """Return machine code of the function if Numba is installed."""
    if importlib.util.find_spec("numba") is None:
        return function
    machine_code: F = importlib.import_module("numba").njit(cache=True)(function)
    return machine_code


@_compiled
def balance(beta: FloatArray, lower: FloatArray, upper: FloatArray) -> None:
    """Move rows inside their bounds until the sum is 0, up to rounding."""
    rest = -beta.sum()
    for inside_first in (True, False):
        for i in range(len(beta)):
            inside = lower[i] < beta[i] < upper[i]
            if rest == 0.0 or inside != inside_first:
                continue
            moved = min(max(beta[i] + rest, lower[i]), upper[i])
            rest -= moved - beta[i]
            beta[i] = moved


@_compiled
def pair_steps(
    K: FloatArray,
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    most: int,
    tolerance: float,
) -> None:
    """Move the pair of rows that promises the largest gain, at most so many times."""
    count = len(y)
    E = K @ beta - y
    for _ in range(most):
        i, least = -1, np.inf
        for k in range(count):
            if beta[k] < upper[k] and E[k] < least:
                i, least = k, E[k]
        j, best, curvature = -1, 0.0, 1.0
        largest = -np.inf
        for k in range(count):
            if beta[k] > lower[k]:
                largest = max(largest, E[k])
                slope = E[k] - least
                if slope > 0 and i >= 0:
                    bend = K[i, i] + K[k, k] - 2 * K[i, k]
                    bend = max(bend, UNIT * (K[i, i] + K[k, k]) + 1e-300)
                    if slope * slope / bend > best:
                        j, best, curvature = k, slope * slope / bend, bend
        if i < 0 or j < 0 or largest - least <= tolerance:
            return
        room_i, room_j = upper[i] - beta[i], beta[j] - lower[j]
        step = min((E[j] - E[i]) / curvature, room_i, room_j)
        beta[i] = upper[i] if step == room_i else min(beta[i] + step, upper[i])
        beta[j] = lower[j] if step == room_j else max(beta[j] - step, lower[j])
        for k in range(count):
            E[k] += step * (K[i, k] - K[j, k])


@_compiled
def _factor(K: FloatArray, rows: npt.NDArray[np.int64], n: int, L: FloatArray) -> int:
    """Order `rows` so that the first ones are affinely independent, and return their number.

    L receives the Cholesky factor of the inner products of their differences to ``rows[0]``.
    """
    r = rows[0]
    rest = np.empty(n)
    for i in range(1, n):
        rest[i] = K[rows[i], rows[i]] + K[r, r] - 2 * K[rows[i], r]
    for k in range(1, n):
        best, place = 0.0, -1
        for i in range(k, n):
            own = _INDEPENDENT * (K[rows[i], rows[i]] + K[r, r])
            if rest[i] > own and rest[i] > best:
                best, place = rest[i], i
        if place < 0:
            return k
        if place != k:
            rows[k], rows[place] = rows[place], rows[k]
            rest[k], rest[place] = rest[place], rest[k]
            for c in range(1, k):
                L[k, c], L[place, c] = L[place, c], L[k, c]
        pivot = math.sqrt(rest[k])
        L[k, k] = pivot
        for i in range(k + 1, n):
            total = K[rows[i], rows[k]] - K[rows[i], r] - K[rows[k], r] + K[r, r]
            for c in range(1, k):
                total -= L[i, c] * L[k, c]
            L[i, k] = total / pivot
            rest[i] -= L[i, k] * L[i, k]
    return n


@_compiled
def _solved(L: FloatArray, n: int, right: FloatArray) -> FloatArray:
    """Return the solution of ``L L' x = right`` on the places 1 to n - 1, with 0 at place 0."""
    x = np.zeros(n)
    for i in range(1, n):
        total = right[i]
        for c in range(1, i):
            total -= L[i, c] * x[c]
        x[i] = total / L[i, i]
    for i in range(n - 1, 0, -1):
        total = x[i]
        for c in range(i + 1, n):
            total -= L[c, i] * x[c]
        x[i] = total / L[i, i]
    return x


@_compiled
def _shares(
    K: FloatArray, rows: npt.NDArray[np.int64], n: int, L: FloatArray, j: int
) -> tuple[FloatArray, float]:
    """Return lambda with sum 1 whose combination of the rows is nearest to row j, and S_j^2."""
    r = rows[0]
    right = np.zeros(n)
    for i in range(1, n):
        right[i] = K[rows[i], j] - K[rows[i], r] - K[r, j] + K[r, r]
    shares = _solved(L, n, right)
    square = K[j, j] + K[r, r] - 2 * K[r, j] - (right * shares).sum()
    shares[0] = 1 - shares[1:].sum()
    return shares, square


@_compiled
def _settle(
    K: FloatArray,
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    rows: npt.NDArray[np.int64],
    n: int,
    L: FloatArray,
) -> int:
    """Make the rows stationary; rows that reach a bound leave. Return how many stay."""
    for round_ in range(3 * len(y) + 6):
        n = _factor(K, rows, n, L)
        E = K @ beta - y
        right = np.zeros(n)
        for i in range(1, n):
            right[i] = E[rows[0]] - E[rows[i]]
        step = _solved(L, n, right)
        step[0] = -step[1:].sum()
        length, first = 1.0, -1
        for i in range(n):
            at = beta[rows[i]]
            if at + step[i] > upper[rows[i]]:
                share = (upper[rows[i]] - at) / step[i]
            elif at + step[i] < lower[rows[i]]:
                share = (lower[rows[i]] - at) / step[i]
            else:
                continue
            if share < length or first < 0:
                length, first = share, i
        for i in range(n):
            k = rows[i]
            beta[k] = min(max(beta[k] + length * step[i], lower[k]), upper[k])
        if first < 0:
            if round_ > 0:
                return n
            continue  # one more step removes what rounding has left
        k = rows[first]
        beta[k] = upper[k] if step[first] > 0 else lower[k]
        n -= 1
        rows[first] = rows[n]
        if n == 0:
            return 0
    return n


@_compiled
def _drive(
    K: FloatArray,
    y: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    beta: FloatArray,
    rows: npt.NDArray[np.int64],
    n: int,
    L: FloatArray,
    j: int,
) -> int:
    """Move row j downhill, the rows answering, until it is stationary or at a bound."""
    for _ in range(2 * len(y) + 4):
        n = _factor(K, rows, n, L)
        shares, square = _shares(K, rows, n, L, j)
        E_j, E_r = -y[j], -y[rows[0]]
        for k in range(len(y)):
            E_j += K[j, k] * beta[k]
            E_r += K[rows[0], k] * beta[k]
        slope = E_j - E_r
        sign = -1.0 if slope > 0 else 1.0
        limit = UNIT * 10 * (K[j, j] + K[rows[0], rows[0]])
        room = upper[j] - beta[j] if sign > 0 else beta[j] - lower[j]
        length, first = room, n
        if square > limit and abs(slope) / square < length:
            length, first = abs(slope) / square, -1
        for i in range(n):
            change = -sign * shares[i]
            k = rows[i]
            if change > 0 and (upper[k] - beta[k]) / change < length:
                length, first = (upper[k] - beta[k]) / change, i
            elif change < 0 and (lower[k] - beta[k]) / change < length:
                length, first = (lower[k] - beta[k]) / change, i
        beta[j] = min(max(beta[j] + sign * length, lower[j]), upper[j])
        for i in range(n):
            k = rows[i]
            beta[k] = min(max(beta[k] - sign * length * shares[i], lower[k]), upper[k])
        if first == n:
            beta[j] = upper[j] if sign > 0 else lower[j]
            return n
        if first == -1:
            rows[n] = j
            return n + 1
        k = rows[first]
        beta[k] = upper[k] if -sign * shares[first] > 0 else lower[k]
        n -= 1
        rows[first] = rows[n]
        if n == 0:
            rows[0] = j
            return 1
    return n


@_compiled
def finish(
    K: FloatArray, y: FloatArray, lower: FloatArray, upper: FloatArray, beta: FloatArray, most: int
) -> None:
    """Go to the solution: rows inside their bounds are stationary, and others follow one by one."""
    count = len(y)
    rows = np.empty(count + 1, dtype=np.int64)
    L = np.zeros((count + 1, count + 1))
    inside = np.empty(count, dtype=np.int64)
    for _ in range(most):
        n = 0
        for k in range(count):
            if lower[k] < beta[k] < upper[k]:
                inside[n] = k
                n += 1
        if n:
            rows[:n] = inside[:n]
            kept = _factor(K, rows, n, L)
            loose = rows[kept:n].copy()
            kept = _settle(K, y, lower, upper, beta, rows, kept, L)
            for j in loose:
                if kept and lower[j] < beta[j] < upper[j]:
                    kept = _drive(K, y, lower, upper, beta, rows, kept, L, j)
            n = kept
        E = K @ beta - y
        size = 1 + np.abs(E).max()
        i, j, least, largest = -1, -1, np.inf, -np.inf
        for k in range(count):
            if beta[k] < upper[k] and E[k] < least:
                i, least = k, E[k]
            if beta[k] > lower[k] and E[k] > largest:
                j, largest = k, E[k]
        if i < 0 or j < 0 or largest - least <= 4 * UNIT * count * size:
            return
        if n == 0:
            rows[0] = i
            n = _drive(K, y, lower, upper, beta, rows, 1, L, j)
            continue
        middle = E[rows[0]]
        entering = j if largest - middle >= middle - least else i
        for k in range(n):
            if rows[k] == entering:
                return  # what is left is rounding of the rows inside
        n = _drive(K, y, lower, upper, beta, rows, n, L, entering)


@_compiled
def bounded_value(
    K: FloatArray, y: FloatArray, lower: FloatArray, upper: FloatArray, beta: FloatArray, p: int
) -> tuple[float, float]:
    """Return ``f(x_p)`` and a bound on its error for every optimal offset.

    With lambda of sum 1 on rows inside their bounds, S the distance of row p to their combination
    and every ``beta_j +- s lambda_j`` inside its bounds, the value ``F_p - sum lambda_j E_j`` is
    off by at most ``s S^2 / 2 + gap / s``. Rounding widens E by ``noise`` of each row.
    """
    count = len(y)
    rows = np.empty(count + 1, dtype=np.int64)
    n = 0
    for k in range(count):
        width = upper[k] - lower[k]
        if beta[k] - lower[k] > SNAP * width and upper[k] - beta[k] > SNAP * width:
            rows[n] = k
            n += 1
    if n == 0:
        return 0.0, np.inf
    L = np.zeros((n, n))
    n = _factor(K, rows, n, L)
    shares, square = _shares(K, rows, n, L, p)
    noise, products = np.zeros(count), np.zeros(count)
    for k in range(count):
        for c in range(count):
            products[k] += K[k, c] * beta[c]
            noise[k] += abs(K[k, c] * beta[c])
        noise[k] = NOISE * UNIT * count * (1 + noise[k])
    E = products - y
    value, rounding, b = products[p], noise[p], 0.0
    roundings = K[p, p]
    room = np.inf
    for i in range(n):
        k = rows[i]
        value -= shares[i] * E[k]
        b -= shares[i] * E[k]
        rounding += abs(shares[i]) * noise[k]
        roundings += abs(shares[i]) * (abs(K[k, p]) + abs(K[k, rows[0]]) + abs(K[k, k]))
        if shares[i] != 0:
            room = min(room, min(beta[k] - lower[k], upper[k] - beta[k]) / abs(shares[i]))
    gap, total = 0.0, 0.0
    for k in range(count):
        total += beta[k]
        content = E[k] + b
        gap += max(
            max(content + noise[k], 0.0) * (beta[k] - lower[k]),
            max(noise[k] - content, 0.0) * (upper[k] - beta[k]),
        )
    # What is left of the sum could be given to the first row, which is inside its bounds.
    rounding += 2 * abs(total) * np.abs(K[rows[0]]).max()
    square = max(square, 0.0) + NOISE * UNIT * n * roundings
    s = min(math.sqrt(2 * gap / square), room) if square > 0 else room
    if s <= 0:
        return value, np.inf
    return value, s * square / 2 + gap / s + rounding
