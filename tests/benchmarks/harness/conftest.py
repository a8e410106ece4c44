"""A server of files, and an empty cache of data sets."""

import threading

import pytest

from tests.benchmarks.data_sets import Files


@pytest.fixture
def server():
    with Files() as files:
        thread = threading.Thread(target=files.serve_forever, args=(0.01,))
        thread.start()
        yield files
        files.shutdown()
        thread.join()


@pytest.fixture
def cache(monkeypatch, tmp_path):
    monkeypatch.delenv("SPAN_HPO_DATA", raising=False)
    monkeypatch.setenv("SPAN_HPO_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"
