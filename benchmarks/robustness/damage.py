"""Damage files in many ways: bytes, words, lines, numbers, and every node of JSON."""

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS = [
    *(b"0 -0 -1 1 0.5 nan NaN inf -inf Infinity -Infinity 1e999 -1e999 1e308 -1e308").split(),
    *(b"1e-999 5e-324 9999999 10000001 499999999 600000000 2147483647 2147483648").split(),
    *(b"4294967296 9223372036854775807 9223372036854775808 99999999999999999999999").split(),
    *(b"0x10 1_000 1e 1.2.3 --1 +5 1,5 \xd9\xa1 1e400000000").split(),
    b"9" * 400,
    b"9" * 5000,
    b"0." + b"3" * 5000,
]
_WORDS = [
    *(b'? NA nan null None true SV x: :x : :: # % \\ \' " "" , ; | \t a:1 1:a 0:1 -1:1').split(),
    *(b"1:1:1 qid:3 qid:x label gamma rbf polynomial sigmoid nr_class rho SV probA").split(),
    b"",
    b" ",
    b"\0",
    b"\xff\xfe",
    b"\xed\xa0\x80",
    b"\xe2\x80\xa8",
    b"w" * 300,
    b"w" * 150_000,
]
_NUMBER = re.compile(rb"[-+]?\d+(\.\d+)?([eE][-+]?\d+)?")
_INDEX = re.compile(rb"\d+(?=:)")
_WORD = re.compile(rb"[^\s,:\"]+")
_MOST_STEPS = 3  # largest number of damages to one file
_MOST_REPEATED = 200_000  # bytes that copies may add to a file
_MOST_COPIES = 20_000  # largest number of copies of a line or a word

Damage = Callable[[bytes, np.random.Generator], bytes]


def damaged_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Return text with one to three damages."""
    for _ in range(int(rng.integers(1, _MOST_STEPS + 1))):
        content = _OF_TEXT[int(rng.integers(len(_OF_TEXT)))](content, rng)
    return content


def damaged_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    """Return binary content with one to three damages."""
    for _ in range(int(rng.integers(1, _MOST_STEPS + 1))):
        content = _OF_BYTES[int(rng.integers(len(_OF_BYTES)))](content, rng)
    return content


def damaged_json(content: bytes, rng: np.random.Generator) -> bytes:
    """Return JSON with one to three damaged nodes, or, one time in four, with damaged text."""
    if rng.random() < 0.25:
        return damaged_text(content, rng)
    root = {"": json.loads(content)}
    for _ in range(int(rng.integers(1, _MOST_STEPS + 1))):
        places = _nodes(root)
        # First a kind of node, so that the many numbers of an array do not hide the others.
        kind = sorted(places)[int(rng.integers(len(places)))]
        owner, key = places[kind][int(rng.integers(len(places[kind])))]
        _damage_node(owner, key, rng)
    text = json.dumps(root[""])
    for index, raw in enumerate(_RAW):
        text = text.replace(json.dumps(_mark(index)), raw)
    if rng.random() < 0.1:
        text = text.replace('"labels"', '"labels": [1, 2], "labels"', 1)
    return text.encode("utf-8", "surrogatepass")


def _place(content: bytes, rng: np.random.Generator) -> int:
    return int(rng.integers(len(content) + 1))


def _truncated(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: _place(content, rng)]


def _flipped(content: bytes, rng: np.random.Generator) -> bytes:
    data = bytearray(content)
    for spot in rng.integers(max(1, len(data)), size=int(rng.integers(1, 5))):
        if data:
            data[spot] ^= 1 << int(rng.integers(8))
    return bytes(data)


def _near_end(content: bytes, rng: np.random.Generator) -> bytes:
    """Change bytes near the end, where Parquet has its description."""
    data = bytearray(content)
    for _ in range(int(rng.integers(1, 6))):
        if data:
            data[-1 - int(rng.integers(min(len(data), 700)))] = int(rng.integers(256))
    return bytes(data)


def _noise(content: bytes, rng: np.random.Generator) -> bytes:
    start, size = _place(content, rng), int(rng.integers(1, 30))
    return content[:start] + rng.bytes(size) + content[start + size :]


def _without_part(content: bytes, rng: np.random.Generator) -> bytes:
    start = _place(content, rng)
    return content[:start] + content[start + int(rng.integers(1, 300)) :]


def _part_twice(content: bytes, rng: np.random.Generator) -> bytes:
    start = _place(content, rng)
    end = start + int(rng.integers(1, 300))
    return content[:end] + content[start:end] + content[end:]


def _inserted(content: bytes, rng: np.random.Generator) -> bytes:
    start = _place(content, rng)
    return content[:start] + _any(_WORDS, rng) + content[start:]


def _other_number(content: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(content, _NUMBER, _any(NUMBERS, rng), rng)


def _other_index(content: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(content, _INDEX, _any(NUMBERS, rng), rng)


def _other_word(content: bytes, rng: np.random.Generator) -> bytes:
    return _replaced(content, _WORD, _any(_WORDS, rng), rng)


def _many_words(content: bytes, rng: np.random.Generator) -> bytes:
    words = [found.group() for found in _WORD.finditer(content[:100_000])]
    if not words:
        return content
    separator = _any([b" ", b",", b"\n", b", ", b":1 "], rng)
    word = _any(words, rng)
    many = separator.join([word] * _copies(word, rng))
    return _replaced(content, _WORD, many, rng)


def _other_lines(content: bytes, rng: np.random.Generator) -> bytes:
    """Delete, repeat, swap, reverse or reorder lines, or the words within one."""
    lines = content.split(b"\n")
    first, second = (int(place) for place in rng.integers(len(lines), size=2))
    kind = int(rng.integers(6))
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines[first:first] = [lines[first]] * _copies(lines[first], rng)
    elif kind == 2:
        lines[first], lines[second] = lines[second], lines[first]
    elif kind == 3:
        lines.reverse()
    elif kind == 4:
        words = lines[first].split(b" ")
        lines[first] = b" ".join(words[:1] + words[:0:-1])
    else:
        words = lines[first].split(b" ")
        lines[first] = b" ".join(words + words[-1:])
    return b"\n".join(lines)


def _other_ends(content: bytes, rng: np.random.Generator) -> bytes:
    """Use other line ends, separators, marks at the beginning, or another encoding."""
    kind = int(rng.integers(7))
    if kind == 0:
        return b"\xef\xbb\xbf" + content
    if kind == 1:
        return content.decode("utf-8", "replace").encode("utf-16")
    if kind == 2:
        return content.decode("utf-8", "replace").encode("latin-1", "replace")
    old, new = [
        (b"\n", b"\r\n"),
        (b"\n", b"\r"),
        (b"\n", b""),
        (_any([b",", b":", b" "], rng), _any([b";", b"\t", b"::", b"\n", b"", b'"'], rng)),
    ][kind - 3]
    return content.replace(old, new)


_OF_BYTES: list[Damage] = [_truncated, _flipped, _near_end, _noise, _without_part, _part_twice]
_OF_TEXT: list[Damage] = [
    _truncated,
    _flipped,
    _noise,
    _without_part,
    _part_twice,
    _inserted,
    _other_number,
    _other_number,
    _other_index,
    _other_index,
    _other_word,
    _many_words,
    _other_lines,
    _other_lines,
    _other_ends,
]
# Texts that stand for a node: what Python's `json` would not write, or what is long.
_RAW = [
    *["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e308", "1e-999", "1.5e3", "-0", "-1"],
    *["0", "0.5", "600000000", "6e8", "2147483648", "9223372036854775807", "9223372036854775808"],
    *["18446744073709551616", "true", "false", "null", '""', '"x"', '"\\ud800"', '"\\u0000"'],
    *["[]", "{}", "[[]]", "[{}]", '{"a":1}', "[null]", '[1,"a"]', "[true]"],
    "1" + "0" * 400,
    "1" + "0" * 5000,
    "-" + "9" * 30,
    "[" * 200_000,
    "[" * 2000 + "]" * 2000,
    "[" * 900 + "]" * 900,
    '"' + "w" * 100_000 + '"',
    "[" + "0," * 20_000 + "0]",
    "[" + "[]," * 5000 + "[]]",
    "[" + '"w",' * 5000 + '"w"]',
]


def _mark(index: int) -> str:
    return f"@@{index}@@"


def _nodes(node: Any, kind: str = "") -> dict[str, list[tuple[Any, Any]]]:
    """Return the places of all nodes, as owner and key, by the names on the way to them."""
    found: dict[str, list[tuple[Any, Any]]] = {}
    if isinstance(node, dict):
        inner = [(key, f"{kind}.{key}") for key in node]
    elif isinstance(node, list):
        inner = [(index, f"{kind}[]") for index in range(len(node))]
    else:
        return found
    for key, name in inner:
        found.setdefault(name, []).append((node, key))
        for other, places in _nodes(node[key], name).items():
            found.setdefault(other, []).extend(places)
    return found


def _damage_node(owner: Any, key: Any, rng: np.random.Generator) -> None:
    """Replace, delete, repeat, rename or swap one node."""
    kind = int(rng.integers(10))
    keys = list(owner) if isinstance(owner, dict) else list(range(len(owner)))
    if kind == 0 and len(keys) > 1:
        del owner[key]
    elif kind == 1 and isinstance(owner, list):
        owner[key:key] = [owner[key]] * int(rng.integers(1, 50))
    elif kind == 1 and len(keys) > 1:
        owner[f"{key} "] = owner.pop(key)
    elif kind == 2:
        other = keys[int(rng.integers(len(keys)))]
        owner[key], owner[other] = owner[other], owner[key]
    elif kind == 3 and isinstance(owner[key], list) and owner[key]:
        node = owner[key]
        node[int(rng.integers(len(node)))] = node[int(rng.integers(len(node)))]
    else:
        owner[key] = _mark(int(rng.integers(len(_RAW))))


def _copies(part: bytes, rng: np.random.Generator) -> int:
    """Return a number of copies that leaves the file small."""
    return min(int(rng.integers(1, _MOST_COPIES)), 1 + _MOST_REPEATED // (len(part) + 1))


def _any(choices: list[bytes], rng: np.random.Generator) -> bytes:
    return choices[int(rng.integers(len(choices)))]


def _replaced(
    content: bytes, wanted: re.Pattern[bytes], new: bytes, rng: np.random.Generator
) -> bytes:
    """Return the content with one of the places that a pattern matches replaced."""
    places = [found.span() for found in wanted.finditer(content[:100_000])]
    if not places:
        return content
    start, end = places[int(rng.integers(len(places)))]
    return content[:start] + new + content[end:]
