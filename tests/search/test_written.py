import json
import math
import subprocess
import sys

import numpy as np
import pytest

from span_hpo import RBF, Choice, Float, Int
from span_hpo.search.written import option_labels, read_params, written_grid, written_params
from tests.places import ROOT

OPTIONS = {
    "plain": ["a", None, 2, 0.5, True],
    "equal to a storage": [True, 1, 1.0],
    "not a number": [math.nan, math.nan, 1.0],
    "arrays": [np.array([1.0, 2.0]), np.array([1.0, 2.0])],
    "objects": [RBF(0.5), RBF(1.0)],
    "functions": [max, min, lambda x: x],
    "lists": [[1, 2], [2, 1]],
    "a label of another": [(1,), "0: (1,)"],
}


@pytest.mark.parametrize("case", OPTIONS)
def test_options_come_back_as_themselves(case):
    """Written and read again, every option is the same object, and the labels are plain."""
    options = OPTIONS[case]
    space = {"option": Choice(options), "C": Float(0, 1)}
    labels = option_labels(space["option"])
    assert len({(type(label), label) for label in labels}) == len(options)
    for option in options:
        written = written_params(space, {"option": option, "C": 0.25})
        written = json.loads(json.dumps(written))
        found = read_params(space, written, "trial")
        assert found["C"] == 0.25
        if case == "plain":
            assert found["option"] == option
            assert written["option"] == option
        else:
            assert found["option"] is option


def test_plain_options_are_called_by_themselves():
    """A storage that can tell options apart shows what the user wrote."""
    assert option_labels(Choice(["rbf", 3, None])) == ["rbf", 3, None]
    assert option_labels(Choice([(1, 2), "x"])) == ["0: (1, 2)", "1: 'x'"]


def test_grids_are_written_value_by_value():
    """Numbers stay, options are written by their labels in the order that is given."""
    small, large = RBF(0.5), RBF(1.0)
    space = {"kernel": Choice([small, large]), "degree": Int(1, 3)}
    written = written_grid(space, {"degree": [1, 3], "kernel": [large, small, large]})
    first, second = option_labels(space["kernel"])
    assert written == {"kernel": [second, first, second], "degree": [1, 3]}


def test_labels_are_the_same_in_every_process():
    """Functions and objects are named without their place in memory."""
    code = """
import json
from span_hpo import Choice
from span_hpo.search.written import option_labels
print(json.dumps(option_labels(Choice([json.dumps, max, object(), (1, 2)]))))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    labels = option_labels(Choice([json.dumps, max, object(), (1, 2)]))
    assert json.loads(found.stdout) == labels
    assert not any(" at 0x" in label for label in labels)


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ({"kind": "a"}, r"`trial` must have the parameters \['kind', 'C'\], got \['kind'\]"),
        ({"kind": "a", "C": 1, "D": 2}, r"got \['kind', 'C', 'D'\]"),
        ({"kind": "c", "C": 1}, r"`trial` must have one of \['a', 'b'\] as `kind`, got 'c'"),
    ],
)
def test_parameters_of_another_search_are_named(written, message):
    """Names and options that the space does not have are refused."""
    with pytest.raises(ValueError, match=message):
        read_params({"kind": Choice(["a", "b"]), "C": Float(0, 1)}, written, "trial")
