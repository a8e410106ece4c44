"""Real data sets in tests, and a server of small ones."""

from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from benchmarks.harness.data import data_folder
from benchmarks.harness.fetch import fetch

FOLDER = data_folder()
with_data = pytest.mark.skipif(FOLDER is None, reason="SPAN_HPO_DATA names no folder")


def stored(name):
    """Return the arrays of a real data set."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as arrays:
        return dict(arrays)


def fetched(name, source):
    """Return the arrays of a data set from a source."""
    with np.load(fetch(name, source), allow_pickle=False) as arrays:
        return dict(arrays)


class Files(ThreadingHTTPServer):
    """A server of the files in `contents`; those in `broken` stop half-way."""

    def __init__(self):
        self.contents, self.broken, self.requests = {}, set(), []
        super().__init__(("127.0.0.1", 0), Handler)

    def add(self, path, content):
        self.contents[f"/{path}"] = content
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.requests.append(self.path)
        content = self.server.contents.get(self.path)
        if content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        half = self.path in self.server.broken
        self.wfile.write(content[: len(content) // 2] if half else content)

    def log_message(self, *args):
        pass
