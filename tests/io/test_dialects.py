import gzip

import numpy as np
import pytest

from span_hpo.io.dialects import Dialect, looks_like_data
from span_hpo.io.samples import read_samples
from span_hpo.io.table_files import read_table
from span_hpo.runtime import ArgumentError

TEXT = "größe,town,label\n1,Köln,x\n2,Ulm,y\n"


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8", "UTF_8", None])
def test_encodings(encoding, tmp_path):
    """The same table is read from every encoding that is named."""
    file = tmp_path / "rows.csv"
    file.write_bytes(TEXT.encode(encoding or "utf-8"))
    table = read_table(file, Dialect(encoding=encoding))
    assert list(table.columns) == ["größe", "town", "label"]
    assert table.texts("town") == ["Köln", "Ulm"]


@pytest.mark.parametrize(
    ("content", "dialect", "message"),
    [
        (
            TEXT.encode("latin-1"),
            Dialect(),
            "must be text in UTF-8, got the byte 0xf6 in line 1, which may be .*größe.*. Set "
            "`encoding` latin-1 to read it",
        ),
        (
            TEXT.replace("Köln", "“Ulm”").replace("größe", "a").encode("cp1252"),
            Dialect(),
            "the byte 0x93 in line 2, which may be .*“Ulm”.*. Set `encoding` cp1252 to",
        ),
        (
            (TEXT + "Köln,\N{EN DASH},u\n").encode("cp1252"),
            Dialect(),
            "the byte 0xf6 in line 1, which may be .*größe.*. Set `encoding` cp1252 to",
        ),
        (
            TEXT.encode("utf-16"),
            Dialect(),
            "got the byte order mark of UTF-16. Set `encoding` utf-16 to read it",
        ),
        (
            TEXT.encode("latin-1"),
            Dialect(encoding="ascii"),
            "`encoding` must be the text encoding of .*rows.csv.*, got 'ascii'",
        ),
        (b"a,b\n\x00\xff\x01,1\n", Dialect(), "must be text in UTF-8, got other bytes"),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_other_encodings_are_suggested(content, dialect, message, is_packed, tmp_path):
    """The message shows the place, and the option that reads the file."""
    file = tmp_path / ("rows.csv.gz" if is_packed else "rows.csv")
    file.write_bytes(gzip.compress(content) if is_packed else content)
    with pytest.raises(ValueError, match=message):
        read_table(file, dialect)


@pytest.mark.parametrize("delimiter", [";", "tab", "\\t", "pipe", "|", " ", ":"])
def test_delimiters(delimiter, tmp_path):
    """A delimiter may be any character, some of which have names."""
    written = {"tab": "\t", "\\t": "\t", "pipe": "|"}.get(delimiter, delimiter)
    file = tmp_path / "rows.csv"
    file.write_text(TEXT.replace(",", written), encoding="utf-8")
    assert list(read_table(file, Dialect(delimiter=delimiter)).columns)[1:] == ["town", "label"]


def test_a_delimiter_that_is_rare_in_the_first_line(tmp_path):
    """What the user says counts more than the first line."""
    file = tmp_path / "rows.csv"
    file.write_text("a, in cm, rounded;label\n1;x\n2;y\n")
    samples = read_samples(file, target="label", dialect=Dialect(delimiter=";"))
    assert samples.columns.feature_names == ["a, in cm, rounded"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"encoding": "latin-99"}, "`encoding` must be the name of a text encoding .* 'latin-99'"),
        ({"encoding": "rot13"}, "`encoding` must be the name of a text encoding"),
        ({"delimiter": ""}, "`delimiter` must be one character such as ; or the word tab, got ''"),
        ({"delimiter": "::"}, "`delimiter` must be one character"),
        ({"delimiter": '"'}, "`delimiter` must be one character"),
        ({"decimal": ";"}, r"`decimal` must be '\.' or ',', got ';'"),
        ({"decimal": ",", "delimiter": ","}, "`delimiter` must not be the decimal comma"),
    ],
)
def test_wrong_dialects_are_named(settings, message):
    """Arguments that no file can have."""
    with pytest.raises(ArgumentError, match=message):
        Dialect(**settings)


def test_parquet_has_no_dialect(tmp_path):
    """Options of text files are refused for other files."""
    with pytest.raises(ArgumentError, match="`decimal` must not be given for the Parquet file"):
        read_table(tmp_path / "rows.parquet", Dialect(decimal=","))


@pytest.mark.parametrize(
    ("names", "row", "is_data"),
    [
        (["a", "b", "label"], ["1", "2", "x"], False),
        (["5.1", "3.5", "setosa"], ["4.9", "3.0", "setosa"], True),
        (["5.1", "x", "y"], ["4.9", "u", "v"], False),
        (["red", "small", "yes"], ["red", "small", "no"], True),
        (["0", "1", "2", "label"], ["7", "8", "9", "x"], False),  # names that pandas gives
        (["1", "", ""], ["1", "", ""], False),
    ],
)
def test_first_lines(names, row, is_data):
    """A line looks like data if most of its cells are numbers or occur below."""
    assert looks_like_data(names, np.array([row], dtype=object)) == is_data
