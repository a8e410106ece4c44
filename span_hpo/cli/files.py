"""Read and write the files of commands, and check beforehand that no file is lost."""

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from span_hpo.cli.options import ReadingSettings, RowSettings
from span_hpo.cli.output import print_note
from span_hpo.io import (
    Encoding,
    Numbering,
    Predictor,
    Samples,
    Table,
    category_text,
    file_format,
    libsvm_entries,
    listed,
    read_libsvm,
    read_samples,
    read_table,
    write_text,
)
from span_hpo.runtime import ArgumentError


@dataclass(frozen=True)
class ModelFiles:
    """The two files of a model, whose paths differ from `stem` only by a suffix."""

    stem: Path

    @classmethod
    def at(cls, out: Path) -> "ModelFiles":
        """Return the files for the option --out, whose value may have one of the suffixes."""
        stem = out.with_suffix("") if out.suffix in (".json", ".libsvm") else out
        if stem.name in ("", ".."):
            raise ArgumentError("--out", f"must name a file, got {str(stem)!r}.")
        return cls(stem)

    @property
    def json(self) -> Path:
        """Path of the file that `span-hpo predict` and Python read."""
        return self.stem.with_name(self.stem.name + ".json")

    @property
    def libsvm(self) -> Path:
        """Path of the file that LIBSVM's programs read."""
        return self.stem.with_name(self.stem.name + ".libsvm")

    def write(self, predictor: Predictor, numbering: Numbering | None = None) -> None:
        """Write a model into both files, for all features of its numbering if it has one."""
        model = predictor if numbering is None else predictor.spread(numbering)
        model.save(self.json)
        model.save_libsvm(self.libsvm)


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """A model, `predictor`, and the rows that it is to predict.

    Attributes
    ----------
    X
        Features of the rows, encoded but not scaled, shape (l, d).
    labels
        Label of each row, or None if the file does not have labels that the model knows.
    """

    predictor: Predictor
    X: Any
    labels: list[Any] | None


def samples_of(settings: RowSettings) -> Samples:
    """Read the training rows that the settings describe, and print what is left out."""
    samples = read_samples(
        settings.file,
        target=settings.target,
        score=settings.score,
        group=settings.group,
        drop=settings.drop,
        category=settings.category,
        impute=settings.impute,
        drop_rows=settings.drop_rows,
        classify=settings.classify,
        dialect=settings.dialect,
    )
    if samples.n_dropped:
        verb, count = "is" if samples.n_dropped == 1 else "are", samples.n_dropped + len(samples.y)
        print_note(
            f"{samples.n_dropped} of {count} rows {verb} left out because values are missing."
        )
    if settings.group is not None:
        print_note(f"column {settings.group!r} holds the groups, and is not used as a feature.")
    return samples


def check_outputs(
    outputs: Sequence[Path], others: Sequence[Path], *, may_replace: bool, folders: bool = False
) -> None:
    """Raise if an output cannot be written, or would replace a file that must be kept.

    Parameters
    ----------
    outputs
        Paths that will be written.
    others
        Paths that are also read or written, and that no output may replace.
    may_replace
        Allow outputs that exist already.
    folders
        Expect folders instead of files.

    Raises
    ------
    ValueError
        If a path cannot be written; the message says why.
    """
    for index, path in enumerate(outputs):
        if any(_is_same(path, other) for other in [*others, *outputs[:index]]):
            raise ValueError(
                f"{path} must be another file: it is an input or another output of this command."
            )
        if path.exists() and not may_replace:
            raise ValueError(f"{path} exists already. Use --force to replace it, or change --out.")
        if not path.parent.is_dir():
            raise ValueError(f"{path} must be in a folder that exists.")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{path} must be in a folder where files can be written.")
        if path.exists() and path.is_dir() != folders:
            wanted, got = ("folder", "file") if folders else ("file", "folder")
            raise ValueError(f"{path} must be a {wanted}, got a {got}.")


def check_picture(path: Path) -> None:
    """Raise if a picture cannot be written to the path."""
    check_outputs([path], [], may_replace=True)
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ArgumentError("--picture", f"must be a .png, .pdf or .svg file, got {str(path)!r}.")


def read_task(model: Path, file: Path, settings: ReadingSettings) -> PredictionTask:
    """Read a model and the rows that it is to predict.

    Parameters
    ----------
    model
        Path of the model, which is in LIBSVM's format unless its name ends in .json.
    file
        Path of the rows: a table if the model was fitted to one, otherwise in LIBSVM's format.
    settings
        How a table is written, and which of its columns are not used.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If a file cannot be read, or the model cannot predict the rows.
    """
    is_ours = model.suffix.lower() == ".json"
    predictor = Predictor.load(model) if is_ours else Predictor.load_libsvm(model)
    if file_format(file) == "libsvm":
        _check_no_settings(settings)
        return _numbered_task(predictor, file, is_ours)
    table = read_table(file, settings.dialect)
    encoding = _encoding_for(predictor, table)
    table = _without_dropped(table, settings.drop, encoding)
    labels = _known_labels(table, encoding.target, predictor)
    return PredictionTask(predictor, encoding.encoded(table), labels)


def _check_no_settings(settings: ReadingSettings) -> None:
    """Raise if an option about tables is given for a file in LIBSVM's format."""
    for name, value in vars(settings).items():
        if value:
            raise ArgumentError(
                name, f"must not be given for a file in LIBSVM's format, got {value!r}."
            )


def _without_dropped(table: Table, drop: Sequence[str], encoding: Encoding) -> Table:
    """Return a table without columns that the model does not need."""
    needed = {column.name for column in encoding.features}
    for name in drop:
        if name not in table.columns:
            raise ArgumentError(
                "drop",
                f"must be a column of {table.source}, one of {listed(table.columns)}, got "
                f"{name!r}.",
            )
        if name in needed:
            raise ArgumentError(
                "drop", f"must not name a column that the model needs, got {name!r}."
            )
    return table.without(drop)


def _encoding_for(predictor: Predictor, table: Table) -> Encoding:
    """Return the encoding of tables that a model has, or raise if it has none."""
    if predictor.columns is None:
        n_features = predictor.support_vectors.shape[1]
        raise ValueError(
            f"{table.source} must hold {n_features} numbered features, because the model was not "
            "fitted to named columns, got a table."
        )
    return predictor.columns


def _known_labels(table: Table, target: str | None, predictor: Predictor) -> list[Any] | None:
    """Return the labels of a table, or None if a row has no label that the model knows."""
    if target is None or target not in table.columns:
        return None
    by_text = {category_text(label): label for label in predictor.labels.tolist()}
    try:
        texts = table.texts(target)
    except ValueError:  # labels are missing in rows that are to be predicted
        return None
    return [by_text[text] for text in texts] if set(texts) <= set(by_text) else None


def _numbered_task(predictor: Predictor, file: Path, is_ours: bool) -> PredictionTask:
    """Read rows in LIBSVM's format, which may have more features than the training rows."""
    if predictor.columns is not None:
        names = [column.name for column in predictor.columns.features]
        raise ValueError(
            f"FILE must be a table with the columns {', '.join(names[:20])}, because the model "
            f"was tuned on one, got {file} in LIBSVM's format."
        )
    wanted = predictor.support_vectors.shape[1]
    X, y = read_libsvm(file, wanted)
    if X.shape[1] > wanted and is_ours:
        print_note(
            f"features {wanted + 1} to {X.shape[1]} of {file} are left out, because no training "
            "row has them."
        )
        X = X[:, :wanted]
    elif X.shape[1] > wanted:  # support vectors of LIBSVM need not use all
        predictor = predictor.widened(X.shape[1])
    labels = y.tolist()
    is_known = set(labels) <= set(predictor.labels.tolist())
    return PredictionTask(predictor, X, labels if is_known else None)


def write_features(task: PredictionTask, path: Path) -> None:
    """Write rows as LIBSVM's programs expect them for the model in their format."""
    predictor = task.predictor
    codes = predictor.libsvm_labels.tolist()
    code_of = dict(zip(predictor.labels.tolist(), codes, strict=True))
    entries = list(libsvm_entries(predictor.features(task.X)))
    labels = [0] * len(entries) if task.labels is None else [code_of[y] for y in task.labels]
    lines = [" ".join([str(label), *row]) for label, row in zip(labels, entries, strict=True)]
    write_text(path, "\n".join(lines) + "\n")


def csv_text(columns: dict[str, list[Any]]) -> str:
    """Return named columns as the text of a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _is_same(path: Path, other: Path) -> bool:
    return path.resolve() == other.resolve()
