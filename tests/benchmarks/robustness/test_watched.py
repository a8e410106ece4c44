"""Reading damaged files in a process that is watched."""

import os
import time
from pathlib import Path

import pytest

from benchmarks.robustness import watched
from benchmarks.robustness.mutations import LONGEST, MOST_MEMORY
from benchmarks.robustness.targets import TARGETS, Target

pytestmark = pytest.mark.slow


def behave(path):
    """Do what the content of a file says."""
    content = path.read_text()
    if content == "memory":
        bytearray(300_000_000)
    elif content == "sleep":
        time.sleep(100)
    elif content == "exit":
        os._exit(3)
    elif content == "refuse":
        raise ValueError("`x` must be right.")
    elif content == "fail":
        raise OverflowError("too large")
    elif content == "vague":
        raise ValueError("oops")


CONTENTS = ["whole", "memory", "refuse", "fail", "vague", "exit", "whole", "sleep"]
WATCHED = Target(lambda: [("file", b"whole")], lambda name, content, rng: content, behave)


def test_what_files_do_is_noticed(tmp_path, monkeypatch):
    """Memory, refusals, other errors, the end of the process and no end are told apart."""
    monkeypatch.setattr(watched, "_LONGEST", 2.0)
    # The process that reads is forked, so that it knows the reader of this test.
    fork = watched.multiprocessing.get_context("fork")
    monkeypatch.setattr(watched.multiprocessing, "get_context", lambda _: fork)
    monkeypatch.setitem(TARGETS, "behave", WATCHED)
    monkeypatch.setattr(watched, "damaged_file", lambda *key: ("file", CONTENTS[key[-1]].encode()))
    monkeypatch.setattr(watched.tempfile, "gettempdir", lambda: str(tmp_path))
    found = list(watched.outcomes("behave", 0, len(CONTENTS)))
    assert [outcome.end for outcome in found] == [
        *("accepted", "accepted", "refused", "traceback", "traceback", "traceback"),
        *("accepted", "traceback"),
    ]
    assert 280 < found[1].memory < 400
    assert "OverflowError" in found[3].reason
    assert found[5].reason == "the process has ended"
    assert found[7].seconds == 2.0
    assert sorted(path.name for path in Path(tmp_path).glob("damaged-*")) == [
        f"damaged-behave-0-{number}-file" for number in (3, 4, 5, 7)
    ]


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_files_are_harmless(target):
    """300 damaged files of each reader: no traceback, 200 MB or 5 s (15 s on a busy machine)."""
    found = list(watched.outcomes(target, 2**31, 300))
    assert [outcome.reason for outcome in found if outcome.end == "traceback"] == []
    assert max(outcome.memory for outcome in found) < MOST_MEMORY
    assert max(outcome.seconds for outcome in found) < 3 * LONGEST
    assert {outcome.end for outcome in found} == {"accepted", "refused"}
