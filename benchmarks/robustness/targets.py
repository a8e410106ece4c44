"""Readers of files, whole files for them, and how each kind of file is damaged."""

import bz2
import contextlib
import functools
import gzip
import io
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from benchmarks.robustness.damage import damaged_bytes, damaged_json, damaged_text
from span_hpo import Predictor, ScalingWarning, SpanSVC, UniformCost
from span_hpo.cli import main
from span_hpo.estimators import fitted_scaler
from span_hpo.io import Samples, read_samples
from span_hpo.kernels import RBF

_LARGEST_FIT = 5000  # bytes of the largest table that the command line is asked to evaluate
_BLOCKS = [b"\0", b"\n", b"1 1:1\n-1 2:1\n", b"1,2\n", b"0,", b"1 ", b"x" * 50]
_BLOCK_SIZE = 2**20  # bytes of a part of a bomb
_SMALL_BOMB, _LARGE_BOMB = 4, 400  # parts of a bomb; a file may always unpack to 64 of them
_WIDE = 9_999_999  # a feature that only one row has


@dataclass(frozen=True)
class Target:
    """A reader that is given damaged files.

    Attributes
    ----------
    files
        Function that returns whole files, as names and contents.
    damage
        Function from a name, a content and a random generator to a damaged content.
    read
        Function that reads a file at a path, and uses what it has read.
    """

    files: Callable[[], list[tuple[str, bytes]]]
    damage: Callable[[str, bytes, np.random.Generator], bytes]
    read: Callable[[Path], None]


@functools.cache
def _rows() -> tuple[Any, Any]:
    """Return a few rows of two classes, as they are used for all files."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(14, 4)) + np.arange(14)[:, None] % 2).round(3)
    return X * (rng.random(X.shape) < 0.8), np.arange(14) % 2


def _libsvm_rows(X: Any) -> bytes:
    file = io.BytesIO()
    dump_svmlight_file(X, _rows()[1], file, zero_based=False)
    return file.getvalue()


@functools.cache
def _row_files() -> list[tuple[str, bytes]]:
    X, _ = _rows()
    wide = sparse.lil_array((len(X), _WIDE))
    wide[:, :4] = X
    wide[0, _WIDE - 1] = 2.0
    return [("rows", _libsvm_rows(X)), ("wide", _libsvm_rows(sparse.csr_array(wide)))]


@functools.cache
def _table_files() -> list[tuple[str, bytes]]:
    X, y = _rows()
    lines = ["a,b,c,d,town,label"]
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        town = ["Ulm", '"Bad Aibling, Mitte"', "Köln"][int(10 * abs(row[0])) % 3]
        lines.append(",".join([*(str(cell) for cell in row), town, ["no", "yes"][label]]))
    text = "\n".join(lines) + "\n"
    tabs = text.replace('"Bad Aibling, Mitte"', "Aibling").replace(",", "\t")
    return [("rows.csv", text.encode()), ("rows.tsv", tabs.encode())]


def _table(content: bytes) -> Any:
    import pandas as pd

    return pd.read_csv(io.BytesIO(content))


@functools.cache
def _parquet_files() -> list[tuple[str, bytes]]:
    frame = _table(_table_files()[0][1])
    other = frame.assign(town=frame["town"].astype("category"), flag=frame["a"] > 0)
    files = []
    variants: list[dict[str, Any]] = [
        {},
        {"compression": "gzip"},
        {"compression": None, "use_dictionary": False},
    ]
    for number, options in enumerate(variants):
        file = io.BytesIO()
        (frame if number else other).to_parquet(file, **options)
        files.append((f"rows{number}.parquet", file.getvalue()))
    return files


def _fitted(samples: Samples) -> Predictor:
    # A scaler is part of the file, although few rows define it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ScalingWarning)
        model = SpanSVC(RBF(gamma=0.5), UniformCost(2.0)).fit(samples.X, samples.y)
    predictor = model.as_predictor(samples.columns)
    return predictor if samples.numbering is None else predictor.spread(samples.numbering)


@functools.cache
def _models() -> list[tuple[str, Predictor]]:
    """Return models of a table, of dense and of wide rows, and of three classes."""
    with tempfile.TemporaryDirectory() as name:
        models = []
        for file, content in [*_row_files(), _table_files()[0]]:
            path = Path(name) / file
            path.write_bytes(content)
            target = "label" if path.suffix else None
            models.append((file, _fitted(read_samples(path, target=target))))
    X, _ = _rows()
    three = Samples(X, np.arange(14) % 3)
    return [*models, ("three", _fitted(three))]


def _written(save: Callable[[Predictor, Path], None], suffix: str) -> list[tuple[str, bytes]]:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "model"
        files = []
        for title, model in _models():
            save(model, path)
            files.append((f"{title}{suffix}", path.read_bytes()))
    return files


@functools.cache
def _json_files() -> list[tuple[str, bytes]]:
    return _written(Predictor.save, ".json")


@functools.cache
def _libsvm_files() -> list[tuple[str, bytes]]:
    return _written(Predictor.save_libsvm, ".libsvm")


@functools.cache
def _packed_files() -> list[tuple[str, bytes]]:
    return [
        (f"{name}{suffix}", pack(content))
        for name, content in [*_row_files(), *_table_files()]
        for suffix, pack in _PACKERS.items()
    ]


_PACKERS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress}


@functools.cache
def _packed_block(block: bytes, suffix: str) -> bytes:
    return _PACKERS[suffix](block * (_BLOCK_SIZE // len(block)))


def _damaged_packed(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """Damage the packed bytes or the unpacked ones, or append a bomb."""
    suffix = Path(name).suffix
    kind = rng.random()
    if kind < 0.45:
        return damaged_bytes(content, rng)
    if kind < 0.9:
        unpacked = gzip.decompress(content) if suffix == ".gz" else bz2.decompress(content)
        return _PACKERS[suffix](damaged_text(unpacked, rng))
    block = _packed_block(_BLOCKS[int(rng.integers(len(_BLOCKS)))], suffix)
    # Sizes in between are read like a plain file of that size.
    few = int(rng.integers(1, _SMALL_BOMB + 1))
    bomb = block * (few if rng.random() < 0.3 else int(rng.integers(80, _LARGE_BOMB)))
    whole = content + bomb
    return damaged_bytes(whole, rng) if rng.random() < 0.2 else whole


def _damaged_parquet(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    """Damage the bytes, or write a table of unusual types, names and sizes."""
    if rng.random() < 0.75:
        return damaged_bytes(content, rng)
    count = int(rng.choice([0, 1, 2, 14, 1000, 10**6, 10**7]))
    if count > 1000:
        return _equal_rows(count, bool(rng.random() < 0.5))
    import pyarrow as pa

    label = pa.array(["x", "y"] * (count // 2) + ["x"] * (count % 2), pa.string())
    columns = [pa.array([_unusual(rng)] * count) for _ in range(int(rng.integers(1, 4)))]
    return _as_parquet(pa.table([*columns, label], names=[*"abc"[: len(columns)], "label"]))


@functools.cache
def _equal_rows(count: int, with_text: bool) -> bytes:
    """Return a table of equal rows, which take no space in the file."""
    import pyarrow as pa

    codes = pa.array(np.zeros(count, dtype=np.int8))
    text = pa.DictionaryArray.from_arrays(codes, pa.array(["x" * 10_000]))
    return _as_parquet(pa.table({"a": codes, "label": text if with_text else codes}))


def _as_parquet(table: Any) -> bytes:
    from pyarrow import parquet

    file = io.BytesIO()
    parquet.write_table(table, file)
    return file.getvalue()


def _unusual(rng: np.random.Generator) -> Any:
    import datetime
    from decimal import Decimal

    values: list[Any] = [
        *(None, float("nan"), float("inf"), 2**62, -1, 1e308, True, "", "x" * 10_000, b"\xff"),
        *([1, 2], {"a": 1}, [], Decimal("1.5"), Decimal("1e30"), "1", "NA"),
        *(datetime.date(1, 1, 1), datetime.datetime(9999, 12, 31), datetime.timedelta(1)),
    ]
    return values[int(rng.integers(len(values)))]


def _use_samples(path: Path) -> None:
    is_table = any(suffix in (".csv", ".tsv", ".parquet") for suffix in path.suffixes)
    samples = read_samples(path, target="label" if is_table else None)
    scaler = fitted_scaler("minmax", samples.X)
    scaler.transform(samples.X)


def _use_model(model: Predictor, path: Path) -> None:
    """Predict three rows, and write the model in both formats."""
    d = model.support_vectors.shape[1]
    if d:
        rows = sparse.csr_array(([1.0, 2.0], ([0, 1], [0, d - 1])), shape=(3, d))
        model.labels_of(model.decision_function(rows))
    model.save(path.with_suffix(".written"))
    model.save_libsvm(path.with_suffix(".written"))


def _use_json(path: Path) -> None:
    _use_model(Predictor.load(path), path)


def _use_libsvm(path: Path) -> None:
    _use_model(Predictor.load_libsvm(path), path)


@functools.cache
def _command_files() -> list[tuple[str, bytes]]:
    return [
        *(_row_files() + _table_files() + _json_files() + _libsvm_files()),
        *(_packed_files()[:2] + _parquet_files()[:1]),
    ]


def _damaged_any(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    suffix = Path(name).suffix
    if suffix in _PACKERS:
        return _damaged_packed(name, content, rng)
    if suffix == ".parquet":
        return _damaged_parquet(name, content, rng)
    return damaged_json(content, rng) if suffix == ".json" else damaged_text(content, rng)


class WrongEndError(Exception):
    """A command has ended otherwise than with an answer or one line."""


def _run_command(path: Path) -> None:
    """Let the command line read a file: as a model, as new rows, and as training rows."""
    folder = path.parent
    for name, content in [*_row_files(), *_table_files(), *_json_files()]:
        whole = folder / f"whole.{name}"
        if not whole.exists():
            whole.write_bytes(content)
    is_table = any(suffix in (".csv", ".tsv", ".parquet") for suffix in path.suffixes)
    if path.suffix in (".json", ".libsvm"):
        rows = "rows.csv" if path.name.endswith("rows.csv.json") else "wide"
        commands = [["predict", str(path), str(folder / f"whole.{rows}"), "--values"]]
    else:
        model = folder / f"whole.{'rows.csv' if is_table else 'wide'}.json"
        commands = [["predict", str(model), str(path)]]
        if path.stat().st_size <= _LARGEST_FIT and path.suffix not in _PACKERS:
            target = ["--target", "label"] if is_table else []
            commands.append(["loo", str(path), *target, "--C", "1", "--gamma", "1", "--no-refit"])
    refusals = [fault for command in commands if (fault := _ended(command)) is not None]
    if refusals:
        raise ValueError(refusals[0])


def _ended(command: list[str]) -> str | None:
    """Run a command, and return the line with which it refuses its files, or None."""
    printed, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(errors):
        try:
            main(command)
        except SystemExit as end:
            code = end.code
    lines = [
        line
        for line in errors.getvalue().splitlines()
        if not line.startswith(("Note: ", "Warning: ", "The error on "))
    ]
    if code == 0 and not lines:
        return None
    is_refusal = code in (1, 2) and len(lines) == 1 and lines[0].startswith("span-hpo: ")
    if not is_refusal or printed.getvalue():
        raise WrongEndError(f"{command} ended with {code}: {errors.getvalue()[-500:]}")
    return lines[0]


def _text(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    return damaged_text(content, rng)


def _json(name: str, content: bytes, rng: np.random.Generator) -> bytes:
    return damaged_json(content, rng)


TARGETS = {
    "LIBSVM rows": Target(_row_files, _text, _use_samples),
    "LIBSVM model": Target(_libsvm_files, _text, _use_libsvm),
    "JSON model": Target(_json_files, _json, _use_json),
    "table": Target(_table_files, _text, _use_samples),
    "Parquet": Target(_parquet_files, _damaged_parquet, _use_samples),
    "compressed": Target(_packed_files, _damaged_packed, _use_samples),
    "command line": Target(_command_files, _damaged_any, _run_command),
}
