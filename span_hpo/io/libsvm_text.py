"""Read and write LIBSVM's text formats of rows and of models."""

import math
import re
from collections.abc import Iterator
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file

from span_hpo.io.numbering import LARGEST_NUMBER, is_dense
from span_hpo.io.tables import shown_cell, whole_labels
from span_hpo.io.unpacking import opened
from span_hpo.kernels import LIBSVM_KERNELS
from span_hpo.runtime import Array

_MOST_FEATURES = 10**7  # largest number of a feature that is accepted in rows
_LONGEST_REASON = 200  # characters of a reason, which may quote a part of the file
_LONGEST_LINE = 10**6  # bytes of a line in which a fault is looked for
_WANTED = "must hold a label and features such as 3:0.5, in increasing order and numbered from 1"
_LIBSVM_LINE = re.compile(r"[^\s:]+(\s+[^\s:]+:[^\s:]+)*\s*$")


def libsvm_entries(X: Any) -> Iterator[list[str]]:
    """Yield the nonzero entries of each row as LIBSVM writes them, such as 3:0.5."""
    rows = sparse.csr_array(X)
    rows.sum_duplicates()
    for start, end in pairwise(rows.indptr.tolist()):
        columns, values = rows.indices[start:end].tolist(), rows.data[start:end].tolist()
        yield [f"{j + 1}:{value!r}" for j, value in zip(columns, values, strict=True) if value]


def model_text(model: Any, labels: Array) -> str:
    """Return the content of a model file.

    Parameters
    ----------
    model
        A `Predictor`, of which the kernel, the support vectors, the coefficients and the offsets
        are written.
    labels
        Whole numbers that stand for the labels of the classes, shape (k,).
    """
    lines = ["svm_type c_svc", f"kernel_type {LIBSVM_KERNELS[model.kernel].libsvm_name}"]
    for name, value in model.kernel_parameters.items():
        lines.append(f"{name} {int(value) if name == 'degree' else repr(value)}")
    lines += [
        f"nr_class {len(labels)}",
        f"total_sv {model.support_vectors.shape[0]}",
        # In the file, a positive decision value is a vote for the first class.
        "rho " + " ".join(repr(float(offset)) for offset in model.offsets),
        "label " + " ".join(str(label) for label in labels),
        "nr_sv " + " ".join(str(count) for count in model.n_support),
        "SV",
    ]
    for coefficients, entries in zip(
        -model.coefficients.T, libsvm_entries(model.support_vectors), strict=True
    ):
        lines.append(" ".join([*(repr(float(value)) for value in coefficients), *entries]))
    return "\n".join(lines) + "\n"


def model_parts(text: str, source: str, n_features: int | None = None) -> dict[str, Any]:
    """Return the attributes of the `Predictor` that the content of a file describes.

    Messages name the file `source`. Without `n_features`, the highest number of a feature that is
    used is also the number of features.

    Raises
    ------
    ValueError
        If the file is damaged, or holds a model of another kind.
    """
    lines = iter(text.splitlines())
    header = _header(lines, source)
    kernel = _kernel_of(header, source)
    try:
        return {"kernel": kernel, **_numbers(kernel, header, lines, n_features)}
    except (ValueError, IndexError) as error:
        raise damaged_model(source, error) from error
    except KeyError as missing:
        raise damaged_model(source, ValueError(f"it has no line {missing}")) from missing


def _numbers(
    kernel: str, header: dict[str, str], lines: Iterator[str], n_features: int | None
) -> dict[str, Any]:
    """Return the numbers in a header and in the lines of its support vectors."""
    labels = _whole_numbers(header["label"])
    rows = [_support_vector(line, len(labels) - 1) for line in lines if line.strip()]
    if len(labels) < 2:
        raise ValueError(f"it has {len(labels)} of two or more labels")
    if len(rows) != int(header["total_sv"]):
        raise ValueError(f"it holds {len(rows)} of {header['total_sv']} support vectors")
    if len(labels) != int(header["nr_class"]):
        raise ValueError(f"it has {len(labels)} labels for {header['nr_class']} classes")
    return {
        "kernel_parameters": {
            name: float(header[name]) for name in LIBSVM_KERNELS[kernel].parameter_names()
        },
        "labels": labels,
        "support_vectors": _vectors([entries for _, entries in rows], n_features),
        "n_support": _whole_numbers(header["nr_sv"]),
        "coefficients": -np.array([coefficients for coefficients, _ in rows]).T,
        "offsets": np.array([float(rho) for rho in header["rho"].split()]),
    }


def _whole_numbers(text: str) -> Array:
    """Return the whole numbers in a line, which LIBSVM's programs read as an int."""
    numbers = [int(word) for word in text.split()]
    if any(abs(number) > LARGEST_NUMBER for number in numbers):
        raise ValueError(f"it has numbers above {LARGEST_NUMBER} in {shown_cell(text)}")
    return np.array(numbers, dtype=np.int64)


def damaged_model(source: str, fault: Exception) -> ValueError:
    """Return the error that reports a damaged model file."""
    reason = str(fault)
    shown = reason if len(reason) <= _LONGEST_REASON else reason[:_LONGEST_REASON] + "..."
    return ValueError(f"{source} must be a whole LIBSVM model, got a damaged one: {shown}.")


def _header(lines: Iterator[str], source: str) -> dict[str, str]:
    """Return the lines before the support vectors as a mapping of names to values."""
    header: dict[str, str] = {}
    for line in lines:
        if line.strip() == "SV":
            return header
        name, _, value = line.partition(" ")
        header[name] = value.strip()
    raise ValueError(f"{source} must be a LIBSVM model, got a file without support vectors.")


def _kernel_of(header: dict[str, str], source: str) -> str:
    """Return the name that the package gives to the kernel of a header."""
    svm_type, wanted = header.get("svm_type", "none"), header.get("kernel_type", "none")
    if svm_type != "c_svc":
        raise ValueError(f"{source} must hold a model of type c_svc, got {svm_type!r}.")
    ours = {str(kernel.libsvm_name): name for name, kernel in LIBSVM_KERNELS.items()}
    if wanted not in ours:
        raise ValueError(f"{source} must have one of the kernels {sorted(ours)}, got {wanted!r}.")
    return ours[wanted]


def _support_vector(line: str, count: int) -> tuple[list[float], dict[int, float]]:
    """Return the coefficients and the entries of one support vector."""
    words = line.split()
    entries = [word.split(":") for word in words[count:]]
    coefficients = [float(word) for word in words[:count]]
    if len(coefficients) < count:
        raise ValueError(f"a support vector has {len(coefficients)} of {count} coefficients")
    by_feature = {int(j): float(value) for j, value in entries}
    if len(by_feature) < len(entries) or min(by_feature, default=1) < 1:
        raise ValueError("features must be numbered from 1, each once in a row")
    return coefficients, by_feature


def _vectors(rows: list[dict[int, float]], n_features: int | None) -> Any:
    """Return the entries of support vectors as an array, or sparse if most of it would be 0."""
    used = max((j for entries in rows for j in entries), default=0)
    width = used if n_features is None else n_features
    if not used <= width <= LARGEST_NUMBER:
        raise ValueError(f"its support vectors use {used} features where {width} are wanted")
    sizes = [len(entries) for entries in rows]
    columns = np.array([j - 1 for entries in rows for j in entries], dtype=np.int64)
    values = np.array([value for entries in rows for value in entries.values()], dtype=float)
    vectors = sparse.csr_array((values, columns, np.cumsum([0, *sizes])), shape=(len(rows), width))
    vectors.sort_indices()
    return vectors.toarray() if is_dense(vectors) else vectors


def read_libsvm(path: str | Path, n_features: int | None = None) -> tuple[Any, Array]:
    """Read features and labels in LIBSVM's format.

    Parameters
    ----------
    path
        Path of the file.
    n_features
        Smallest number of features to return, even if the file uses fewer. By default, the number
        of features is the highest one in the file.

    Returns
    -------
    Features, shape (l, d), as a sparse matrix, or as an array if at least a quarter of the entries
    is nonzero; and labels, shape (l,).

    Raises
    ------
    ValueError, OSError
        If the file cannot be read, or is not in LIBSVM's format.
    """
    with opened(Path(path)) as file:
        content = file.read()
    if not content or content.isspace():
        raise ValueError(f"{path} must hold rows, got an empty file.")
    _check_long_lines(content, path)
    try:
        X, y = load_svmlight_file(BytesIO(content), zero_based=False)
    except (ValueError, OverflowError, MemoryError) as error:
        raise ValueError(_libsvm_fault(content, path, error)) from error
    if X.shape[1] > _MOST_FEATURES:
        raise ValueError(
            f"{path} must number its features from 1 to at most {_MOST_FEATURES}, got {X.shape[1]}."
        )
    if not (np.isfinite(y).all() and np.isfinite(X.data).all()):
        raise ValueError(_libsvm_fault(content, path, None))
    if n_features is not None:
        X.resize(X.shape[0], max(n_features, X.shape[1]))
    elif X.nnz == 0:
        raise ValueError(f"{path} must have a feature, got only labels.")
    return (X.toarray() if is_dense(X) else X), whole_labels(y)


def _check_long_lines(content: bytes, path: str | Path) -> None:
    """Raise if a long line is wrong at its beginning, before it is split into words."""
    start = 0
    while len(content) - start > _LONGEST_LINE:
        end = content.rfind(b"\n", start, start + _LONGEST_LINE)
        if end < 0:
            text = _text_of(content[start : start + _LONGEST_LINE + 1])
            if text and not _is_libsvm_line(text):
                raise ValueError(_wrong_line(content.count(b"\n", 0, start) + 1, path, text))
            end = content.find(b"\n", start)
            if end < 0:
                return
        start = end + 1


def _libsvm_fault(content: bytes, path: str | Path, error: Exception | None) -> str:
    """Return a message that names the first wrong line of a LIBSVM file."""
    for number, line in enumerate(BytesIO(content), start=1):
        text = _text_of(line)
        if text and not _is_libsvm_line(text):
            return _wrong_line(number, path, text)
    return f"{path} {_WANTED}, in every line, got other text: {error}."


def _wrong_line(number: int, path: str | Path, text: str) -> str:
    return f"line {number} of {path} {_WANTED}, got {shown_cell(text)}."


def _text_of(line: bytes) -> str:
    """Return a line without its comment; only its beginning, up to a whole word, if it is long."""
    if len(line) > _LONGEST_LINE:
        line = line[:_LONGEST_LINE].rpartition(b" ")[0] or line[:_LONGEST_LINE]
    return line.decode("utf-8", "replace").partition("#")[0].strip()


def _is_libsvm_line(text: str) -> bool:
    if not _LIBSVM_LINE.match(text):
        return False
    label, *entries = text.split()
    pairs = [entry.split(":") for entry in entries if not entry.startswith("qid:")]
    try:
        numbers = [float(label), *(float(value) for _, value in pairs)]
        indices = [0, *(int(index) for index, _ in pairs)]
        is_ordered = all(before < after for before, after in pairwise(indices))
        return is_ordered and all(map(math.isfinite, numbers))
    except ValueError:
        return False
