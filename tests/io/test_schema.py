import json

import numpy as np
import pytest

from span_hpo.io import schema

HUGE = 10**400
DEEP = json.loads("[" * 50 + "]" * 50)
CASES = {
    "plain": (schema.plain, [None, [[1]], {"a": {"b": HUGE}}], [DEEP, {"a": [DEEP]}]),
    "text": (schema.text, ["", "a"], [1, None, ["a"], True]),
    "different texts": (schema.different_texts, [["a", "b"]], [[], ["a", "a"], ["a", 1], "ab"]),
    "number": (schema.number, [0, -1.5, 2**63], [True, "1", None, HUGE, [1], float("inf")]),
    "number or text": (schema.number_or_text, [0, -1.5, "", "a"], [True, None, HUGE, ["a"]]),
    "whole": (schema.whole(5), [0, 5], [-1, 6, 1.0, True, "1", HUGE]),
    "one of": (schema.one_of(["rbf", 1]), ["rbf", 1], ["linear", True, 1.0, None, ["rbf"]]),
    "numbers": (
        schema.numbers,
        [[], [1, 2.5]],
        [None, 1, "ab", [1, "2"], [[1]], [None], [True], [HUGE], [float("nan")], {"0": 1}],
    ),
    "rows": (
        schema.rows_of_numbers,
        [[[1, 2], [3, 4]], [[], []]],
        [[], [1], [[1], [1, 2]], [[1], "a"], [[HUGE]], [[[1]]], None],
    ),
    "whole numbers": (
        schema.whole_numbers,
        [[], [0, 2**63 - 1]],
        [[-1], [2**63], [HUGE], [1.0], [True], ["1"], 3, None],
    ),
    "labels": (
        schema.labels,
        [[0, 1], [-1.5, 2], ["a", "b", "c"], [True, False], [-(2**63) + 1, 5]],
        [[], [1], [1, 1], [1, "a"], [1, True], [[1], [2]], [1, HUGE], ["a", "b" * 201], None, "ab"],
    ),
    "list": (
        schema.list_of(schema.text, at_least=1, at_most=2),
        [["a"], ["a", "b"]],
        [[], ["a", "b", "c"], [1], "a", None],
    ),
    "mapping": (schema.mapping_of(schema.number), [{}, {"a": 1}], [[], {"a": "b"}, None, 1]),
    "record": (
        schema.record({"a": schema.text}, {"b": schema.number}),
        [{"a": "x"}, {"a": "x", "b": None}, {"a": "x", "b": 2, "c": HUGE}],
        [{}, {"b": 1}, {"a": None}, {"a": "x", "b": "y"}, [], None],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_checks_accept_what_they_describe(case):
    """Values of the kind that is described pass, and every other value raises a ValueError."""
    check, right, wrong = CASES[case]
    for value in right:
        check(value, "place")
        assert schema.plain(value, "place") is value
    for value in wrong:
        with pytest.raises(ValueError, match=r"`place(\.\w+|\[\d\])?` (must|is missing)"):
            check(value, "place")


def test_values_come_in_their_final_form():
    """Lists of numbers become arrays with the type and the shape that models have."""
    assert schema.numbers([1, 2], "x").dtype == float
    assert schema.rows_of_numbers([[], []], "x").shape == (2, 0)
    assert schema.rows_of_numbers([[1, 2, 3]], "x").shape == (1, 3)
    assert schema.whole_numbers([], "x").dtype == np.int64
    assert schema.labels([1, 2], "x").dtype.kind == "i"
    assert schema.labels([1, 2.5], "x").tolist() == [1.0, 2.5]
    record = schema.record({"a": schema.numbers}, {"b": schema.text})
    assert record({"a": [1], "other": 0}, "")["b"] is None


def test_messages_name_the_place():
    """The way to a wrong value is shown, and a long value is cut."""
    check = schema.record({"a": schema.list_of(schema.record({"b": schema.number}))})
    with pytest.raises(ValueError, match=r"`a\[1\].b` must be finite numbers, got a list"):
        check({"a": [{"b": 1}, {"b": "x" * 1000}]}, "")
    with pytest.raises(ValueError, match=r"`a\[0\].b` is missing"):
        check({"a": [{}]}, "")
    assert len(str(schema.wrong("place", "short", "x" * 1000))) < 100
