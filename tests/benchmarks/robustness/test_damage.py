"""Damaged files, which are the same in every run."""

import json

import numpy as np

from benchmarks.robustness.damage import damaged_bytes, damaged_json, damaged_text

TEXT = b"1 1:0.5 2:1\n-1 1:2 9:3\n"
JSON = json.dumps({"a": [1, 2, {"b": "x"}], "labels": [1, 2], "c": None}).encode()


def test_damages_are_repeatable_and_differ():
    """A seed gives the same damage every time, and other seeds give other ones."""
    for damage, content in ((damaged_text, TEXT), (damaged_bytes, TEXT), (damaged_json, JSON)):
        found = [damage(content, np.random.default_rng(seed)) for seed in range(300)]
        again = [damage(content, np.random.default_rng(seed)) for seed in range(300)]
        assert found == again
        assert len(set(found)) > 150
        assert sum(damaged == content for damaged in found) < 40


def test_damages_of_text_are_of_every_kind():
    """Huge, negative and unordered numbers, other line ends, invalid bytes and marks occur."""
    found = [damaged_text(TEXT, np.random.default_rng(seed)) for seed in range(1200)]
    for part in (b"499999999:", b"-1:", b"0:1", b"nan", b"1e999", b"\r\n", b"\0", b"\xff\xfe"):
        assert any(part in damaged for damaged in found), part
    assert any(damaged.startswith(b"\xef\xbb\xbf") for damaged in found)
    assert any(b"9" * 5000 in damaged for damaged in found)
    assert max(map(len, found)) < 10**6


def test_every_node_of_json_is_damaged():
    """Each field is replaced by wrong types, huge numbers and deep lists in some file."""
    texts = [
        damaged_json(JSON, np.random.default_rng(seed)).decode("utf-8", "replace")
        for seed in range(2000)
    ]
    for part in ('"b": NaN', '"c": 1e999', '"labels": {}', '"a": [[[', '"b": ""', '"a": null'):
        assert any(part in text for text in texts), part
    assert any(text.count('"labels"') == 2 for text in texts)
    assert any('"c"' not in text for text in texts)
