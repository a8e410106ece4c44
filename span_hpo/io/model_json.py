"""Convert a model to values that JSON can hold, and back; `MODEL` describes every field."""

import json
import re
from typing import Any

import numpy as np
from scipy import sparse

from span_hpo.io import schema
from span_hpo.io.numbering import LARGEST_NUMBER
from span_hpo.kernels import LIBSVM_KERNELS

FORMAT = "span_hpo model"
# Version of the format. It grows when older versions of span_hpo cannot read what is written.
VERSION = 3
_SINGLE = 1  # version that had neither thresholds nor ensembles
_SAME_SCALING = 2  # version in which all members of an ensemble had one scaling
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")  # may stand for a character that is no text


def written_vectors(vectors: Any) -> Any:
    """Return support vectors for JSON: as rows, or as the parts of a sparse matrix."""
    if not sparse.issparse(vectors):
        return vectors.tolist()
    return {
        "shape": list(vectors.shape),
        "starts": vectors.indptr.tolist(),
        "features": vectors.indices.tolist(),
        "values": vectors.data.tolist(),
    }


def read_vectors(content: Any, place: str = "support_vectors") -> Any:
    """Return the support vectors that `written_vectors` has written, or raise a ValueError."""
    if not isinstance(content, dict):
        return schema.rows_of_numbers(content, place)
    parts = _SPARSE(content, place)
    starts, features, values = (parts[name] for name in ("starts", "features", "values"))
    shape = tuple(parts["shape"])
    fits = (
        len(starts) == shape[0] + 1
        and starts[0] == 0
        and starts[-1] == len(features) == len(values)
        and (np.diff(starts) >= 0).all()
        and features.max(initial=-1) < shape[1]
    )
    if not fits:
        raise ValueError(f"the parts of `{place}` must fit together, got others")
    vectors = sparse.csr_array((values, features, starts), shape=shape)
    vectors.sum_duplicates()
    return vectors


_SPARSE = schema.record(
    {
        "shape": schema.list_of(schema.whole(LARGEST_NUMBER), at_least=2, at_most=2),
        "starts": schema.whole_numbers,
        "features": schema.whole_numbers,
        "values": schema.numbers,
    }
)
_COLUMN = schema.record(
    {"name": schema.text},
    {
        "categories": schema.different_texts,
        "fill": schema.number_or_text,  # what takes the place of missing values
        "flag": schema.one_of([True, False]),  # whether a feature marks missing values
    },
)
MODEL = schema.record(
    {
        "kernel": schema.one_of(sorted(LIBSVM_KERNELS)),
        "kernel_parameters": schema.mapping_of(schema.number),
        "parameters": schema.mapping_of(schema.plain),
        "labels": schema.labels,
        "n_support": schema.whole_numbers,
        "offsets": schema.numbers,
        "coefficients": schema.rows_of_numbers,
        "support_vectors": read_vectors,
    },
    {
        "scaling": schema.record(
            {"shift": schema.numbers, "factor": schema.numbers},
            {"features": schema.whole_numbers},
        ),
        "sigmoids": schema.list_of(schema.list_of(schema.number, at_least=2, at_most=2)),
        "columns": schema.record(
            {"features": schema.list_of(_COLUMN, at_least=1)}, {"target": schema.text}
        ),
        "threshold": schema.number,
    },
)


ENSEMBLE = schema.record(
    {
        "labels": schema.plain,  # these are checked with each member
        "weights": schema.numbers,
        "members": schema.list_of(schema.plain, at_least=1),
    },
    {"scaling": schema.plain, "columns": schema.plain, "threshold": schema.number},
)
# Fields that all members of an ensemble have in common, but for scalings with a width per feature.
SHARED = ("labels", "scaling", "columns")


def version_of(
    *, has_threshold: bool = False, is_ensemble: bool = False, has_own_scalings: bool = False
) -> int:
    """Return the lowest version of the format that holds a model."""
    if has_own_scalings:
        return VERSION
    return _SAME_SCALING if has_threshold or is_ensemble else _SINGLE


def model_json(content: dict[str, Any]) -> str:
    """Return the fields of a model as the text of a file."""
    whole = {"format": FORMAT, **content}
    return json.dumps(whole, default=plain_number, allow_nan=False)


def read_content(text: str, source: str) -> dict[str, Any]:
    """Return the fields of `MODEL` that a file holds, each in its final form.

    For an ensemble these are its weights and its threshold, and the fields of each of its members.
    Messages name the file `source`.

    Raises
    ------
    ValueError
        If the file is damaged, does not hold a model, or was written by a newer span_hpo. Files of
        all older versions are read.
    """
    try:
        content = json.loads(text, parse_constant=_refused, object_pairs_hook=_without_repetition)
        if _HALF_CHARACTER.search(text):
            json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{source} must be a model in JSON, got a damaged file: {error}."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(
            f"{source} must be a model that Predictor.save has written, got other JSON."
        )
    version = content.get("version")
    if type(version) is not int or version < 1:
        fault = schema.wrong("version", "a whole number of at least 1", version)
        raise ValueError(f"{source} must say which version of the format it has: {fault}.")
    if version > VERSION:
        fault = schema.wrong("version", f"at most {VERSION}", version)
        raise ValueError(f"{source} needs a newer span_hpo, which has written it: {fault}.")
    try:
        found: dict[str, Any] = _ensemble(content) if "members" in content else MODEL(content, "")
    except ValueError as error:
        raise damaged_json(source, error) from error
    return found


def _ensemble(content: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of an ensemble, whose members also get the fields that they share."""
    found = ENSEMBLE(content, "")
    has_own_scalings = "scaling" not in content
    names = [name for name in SHARED if not (name == "scaling" and has_own_scalings)]
    shared = {name: content.get(name) for name in names}
    members = []
    for number, member in enumerate(found["members"]):
        place = f"members[{number}]"
        if not isinstance(member, dict):
            raise schema.wrong(place, "an object with names", member)
        members.append(MODEL({**member, **shared}, place))
    return {
        "members": members,
        "weights": found["weights"],
        "threshold": found["threshold"] or 0.0,
    }


def not_json(source: str, fault: Exception) -> ValueError:
    """Return the error that reports a file that is not JSON."""
    return ValueError(f"{source} must be a model in JSON, got a damaged file: {fault}.")


def damaged_json(source: str, fault: Exception) -> ValueError:
    """Return the error that reports a model in JSON with a wrong or missing field."""
    return ValueError(f"{source} must hold a whole model, got a damaged one: {fault}.")


def plain_number(value: Any) -> Any:
    """Return a number of NumPy as a plain one, which JSON can hold."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"`parameters` and labels must be numbers or text, got {type(value).__name__}.")


def _refused(name: str) -> Any:
    """Refuse NaN and Infinity, which Python reads although JSON does not have them."""
    raise ValueError(f"{name} is no number of JSON")


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, or raise if a name occurs twice, so that it has two values."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in an object")
    return found
