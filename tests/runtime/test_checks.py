import dataclasses
import math
import pickle

import numpy as np
import pytest

from span_hpo.runtime.checks import ArgumentError, make_plain, plain, real, whole


def test_numbers_of_any_type():
    """Python and NumPy numbers, also in an array without dimensions, become plain ones."""
    for value in (2, 2.0, np.float32(2), np.int64(2), np.array(2.0)):
        found = real("x", value)
        assert (found, type(found)) == (2.0, float)
    assert (whole("n", np.int8(3), at_least=1), whole("n", -5)) == (3, -5)


@pytest.mark.parametrize("value", [True, "1", None, math.nan, math.inf, 1j, np.ones(1), np.nan])
def test_what_is_no_number(value):
    """Anything else is named with what is wanted."""
    with pytest.raises(ValueError, match="`x` must be a finite number, got"):
        real("x", value)


@pytest.mark.parametrize(
    ("limits", "value", "wanted"),
    [
        ({"above": 0}, 0, "a finite number above 0, got 0"),
        ({"at_least": 0}, -1e-9, "a finite number of at least 0, got -1e-09"),
    ],
)
def test_limits_of_real_numbers(limits, value, wanted):
    """A limit is part of the message."""
    with pytest.raises(ValueError, match=f"`x` must be {wanted}"):
        real("x", value, **limits)


@pytest.mark.parametrize("value", [0, 11, 2.0, "3", True])
def test_limits_of_whole_numbers(value):
    """A whole number outside its range, or another type, is refused."""
    with pytest.raises(ValueError, match="`n` must be a whole number from 1 to 10, got"):
        whole("n", value, at_least=1, at_most=10)


def test_an_error_can_name_its_argument_otherwise():
    """The same message names the argument as its reader does, also after a pickle."""
    error = ArgumentError("drop", "the column.", "Fill it in, or")
    for same in (error, pickle.loads(pickle.dumps(error))):
        assert str(same) == "Fill it in, or `drop` the column."
        assert same.message("--drop") == "Fill it in, or --drop the column."
    with pytest.raises(ArgumentError) as raised:
        real("width", -1, above=0)
    assert raised.value.argument == "width"
    assert raised.value.message("--width") == "--width must be a finite number above 0, got -1."


def test_numbers_of_numpy_become_plain():
    """Numbers in lists, tuples, dictionaries and dataclasses are those of Python."""
    one = np.float64(1.5)
    for given, expected in (
        (one, "1.5"),
        ([one, 2], "[1.5, 2]"),
        ((np.int64(3), (one,)), "(3, (1.5,))"),
        ({"a": one}, "{'a': 1.5}"),
        (np.bool_(True), "True"),
    ):
        assert repr(plain(given)) == expected
    for same in ([1, "x"], (1, 2), {"a": (1,)}, None, "text", np.ones(2)):
        assert plain(same) is same

    @dataclasses.dataclass(frozen=True)
    class Settings:
        width: float
        name: str = "x"

    settings = Settings(np.float64(0.5))
    make_plain(settings)
    assert repr(settings).endswith("Settings(width=0.5, name='x')")


def test_messages_show_plain_numbers():
    """What was received is shown as a user would type it."""
    with pytest.raises(ArgumentError, match=r"got 2\.5\.$"):
        whole("n", np.float64(2.5))
    with pytest.raises(ArgumentError, match=r"got -1\.0\.$"):
        real("x", np.float64(-1), above=0)
