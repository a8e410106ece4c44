"""Files that commands read and write, with checks before the work that nothing precious is lost."""

import csv
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from span_hpo.cli.options import RowSettings
from span_hpo.cli.output import print_note
from span_hpo.io import (
    Encoding,
    Predictor,
    Samples,
    Table,
    category_text,
    file_format,
    libsvm_entries,
    read_libsvm,
    read_samples,
    read_table,
    write_text,
)
from span_hpo.runtime import ArgumentError


@dataclass(frozen=True)
class ModelFiles:
    """The two files of a model, which differ in their suffix.

    Attributes
    ----------
    stem
        Their path without the suffix.
    """

    stem: Path

    @classmethod
    def at(cls, out: Path) -> "ModelFiles":
        """Return the files for the option --out, which may have a suffix of theirs."""
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

    def write(self, predictor: Predictor) -> None:
        """Write a model into both files."""
        predictor.save(self.json)
        predictor.save_libsvm(self.libsvm)


@dataclass(frozen=True, eq=False)
class PredictionTask:
    """A model, and rows to predict.

    Attributes
    ----------
    predictor
        The model.
    X
        Features of the rows, encoded but not scaled, shape (l, d).
    labels
        Label of each row if the file has labels of the model, else None.
    """

    predictor: Predictor
    X: Any
    labels: list[Any] | None


def samples_of(settings: RowSettings) -> Samples:
    """Read the training rows."""
    return read_samples(
        settings.file,
        target=settings.target,
        score=settings.score,
        group=settings.group,
        drop=settings.drop,
        category=settings.category,
    )


def check_outputs(
    outputs: Sequence[Path], others: Sequence[Path], *, may_replace: bool, folders: bool = False
) -> None:
    """Raise if a file could not be written, or would replace one unasked or one that is read.

    Parameters
    ----------
    outputs
        What will be written.
    others
        What is read or written besides, and must not be replaced by any of the outputs.
    may_replace
        Whether outputs may exist already.
    folders
        Whether the outputs are folders.

    Raises
    ------
    ValueError
        With the path, and why it cannot be written.
    """
    for index, path in enumerate(outputs):
        if any(_is_same(path, other) for other in [*others, *outputs[:index]]):
            raise ValueError(f"{path} must be another file: it is read, or written already.")
        if path.exists() and not may_replace:
            raise ValueError(f"{path} exists already: --force replaces it, --out names another.")
        if not path.parent.is_dir():
            raise ValueError(f"{path} must be in a folder that exists.")
        if not os.access(path.parent, os.W_OK):
            raise ValueError(f"{path} must be in a folder where files can be written.")
        if path.exists() and path.is_dir() != folders:
            wanted, got = ("folder", "file") if folders else ("file", "folder")
            raise ValueError(f"{path} must be a {wanted}, got a {got}.")


def check_picture(path: Path) -> None:
    """Raise if a picture cannot be written there."""
    check_outputs([path], [], may_replace=True)
    if path.suffix not in (".png", ".pdf", ".svg"):
        raise ArgumentError("--picture", f"must be a .png, .pdf or .svg file, got {str(path)!r}.")


def read_task(model: Path, file: Path) -> PredictionTask:
    """Read a model and the rows that it shall predict.

    Parameters
    ----------
    model
        A model of ours if its name ends in .json, else one of LIBSVM.
    file
        A table for a model that was fitted to one, else a file in LIBSVM's format.

    Raises
    ------
    ValueError, TypeError, OSError, ImportError
        If a file cannot be read, or the rows are not those that the model can predict.
    """
    is_ours = model.suffix.lower() == ".json"
    predictor = Predictor.load(model) if is_ours else Predictor.load_libsvm(model)
    if file_format(file) == "libsvm":
        return _numbered_task(predictor, file, is_ours)
    table = read_table(file)
    encoding = _encoding_for(predictor, table)
    labels = _known_labels(table, encoding.target, predictor)
    return PredictionTask(predictor, encoding.encoded(table), labels)


def _encoding_for(predictor: Predictor, table: Table) -> Encoding:
    """Return how the model encodes tables, or raise if it knows none."""
    if predictor.columns is None:
        n_features = predictor.support_vectors.shape[1]
        raise ValueError(
            f"{table.source} must hold {n_features} numbered features: the model was not fitted to "
            "named columns."
        )
    return predictor.columns


def _known_labels(table: Table, target: str, predictor: Predictor) -> list[Any] | None:
    """Return the labels of a table if it has those of the model in every row."""
    if target not in table.columns:
        return None
    by_text = {category_text(label): label for label in predictor.labels.tolist()}
    try:
        texts = table.texts(target)
    except ValueError:  # some are missing: these rows are to be predicted
        return None
    return [by_text[text] for text in texts] if set(texts) <= set(by_text) else None


def _numbered_task(predictor: Predictor, file: Path, is_ours: bool) -> PredictionTask:
    """Read rows in LIBSVM's format, which may have more features than the training rows had."""
    if predictor.columns is not None:
        names = [column.name for column in predictor.columns.features]
        raise ValueError(
            f"FILE must be a table with the columns {', '.join(names[:20])}, as the model was "
            f"tuned from one, got {file} in LIBSVM's format."
        )
    wanted = predictor.support_vectors.shape[1]
    X, y = read_libsvm(file, wanted)
    if X.shape[1] > wanted and is_ours:
        print_note(
            f"features {wanted + 1} to {X.shape[1]} of {file} are left out, which no training row "
            "has."
        )
        X = X[:, :wanted]
    elif X.shape[1] > wanted:  # which a support vector of LIBSVM need not have
        predictor = predictor.widened(X.shape[1])
    labels = y.tolist()
    is_known = set(labels) <= set(predictor.labels.tolist())
    return PredictionTask(predictor, X, labels if is_known else None)


def write_features(task: PredictionTask, path: Path) -> None:
    """Write rows as LIBSVM's programs want them for the model in their format."""
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
