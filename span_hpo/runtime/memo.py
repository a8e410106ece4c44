"""Keep results that several threads may need, so that each is computed only once."""

import pickle
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Memo(Generic[T]):
    """Results by key, which the first thread computes while other threads wait.

    A computation that fails is forgotten, so that the next request tries again.

    Parameters
    ----------
    most
        Number of results to keep, of which the oldest are dropped first; all by default.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._futures: dict[Hashable, Future[T]] = {}

    def holds(self, key: Hashable) -> bool:
        """Return whether the result for `key` is known or being computed."""
        with self._lock:
            return key in self._futures

    def get(self, key: Hashable, compute: Callable[[], T]) -> T:
        """Return the result for `key`, which `compute` gives if it is not known yet."""
        with self._lock:
            known = self._futures.get(key)
        if known is not None:
            return known.result()
        own: Future[T] = Future()
        try:
            with self._lock:
                future = self._futures.setdefault(key, own)
                if self._most is not None:
                    for old in list(self._futures)[: -self._most]:
                        del self._futures[old]
            if future is not own:
                return future.result()
            result = compute()
        except BaseException as error:
            with self._lock:
                if self._futures.get(key) is own:
                    del self._futures[key]
            own.set_exception(error)
            raise
        own.set_result(result)
        return result


def key_of(values: dict[str, Any]) -> Hashable:
    """Return a key that differs for different values, even for 1 and True or a changed list."""
    try:
        return pickle.dumps(values)
    except (AttributeError, TypeError, pickle.PicklingError):
        return object()  # values such as a lambda get a key of their own, so nothing is reused
