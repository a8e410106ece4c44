"""Public addresses of the data sets, and what each of them must hold.

The addresses are those that public code uses; they are not verified by a download. Three things to
know:

- The IDA collection is one MATLAB file with a struct per data set: distinct rows ``x``, classes
  ``t`` and row numbers ``train`` and ``test`` from 1, one line per realisation. That follows its
  README and a public reader. The first ten realisations are kept.
- UCI packs the Parkinson data as RAR inside ZIP, which needs one of the programs `EXTRACTORS`.
- Rows are in the order of the source. Where training rows are drawn, another order gives other
  splits than the project's own files.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.harness.readers import (
    Arrays,
    read_bank,
    read_digits,
    read_parkinson,
    read_postal_digits,
    read_realisations,
    read_svmlight,
)

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
_LIBSVM_CLASSES = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass"
_OPENML = "https://www.openml.org/data/download"
_UCI = "https://archive.ics.uci.edu/static/public"
_IDA = "https://github.com/tdiethe/gunnar_raetsch_benchmark_datasets/raw/master/benchmarks.mat"


@dataclass(frozen=True)
class Source:
    """Where a data set comes from and what it must hold.

    Attributes
    ----------
    urls
        Addresses of the files; if there are two, the first holds the training rows.
    read
        Function that returns the arrays from the contents of the files.
    rows, features
        Shape of ``X``.
    classes
        Number of rows of each class.
    train_rows
        Number of training rows of each official split; 0 if there is none.
    train_classes
        Number of training rows of each class in the first split; None if it is not known.
    """

    urls: tuple[str, ...]
    read: Callable[[list[bytes]], Arrays]
    rows: int
    features: int
    classes: Mapping[int, int]
    train_rows: int = 0
    train_classes: Mapping[int, int] | None = None


def _libsvm(
    files: Sequence[str],
    features: int,
    classes: Mapping[int, int],
    train_classes: Mapping[int, int] | None = None,
    *,
    positive: int = 1,
) -> Source:
    """Return a data set of the LIBSVM page; of two files the first holds the training rows."""
    return Source(
        tuple(f"{_LIBSVM}/{file}" for file in files),
        partial(
            read_svmlight,
            n_features=features,
            positive=positive,
            training_first=train_classes is not None,
        ),
        sum(classes.values()),
        features,
        classes,
        sum(train_classes.values()) if train_classes else 0,
        train_classes,
    )


def _ida(name: str, rows: int, train_rows: int, features: int, positive: int) -> Source:
    """Return a data set of the IDA collection."""
    return Source(
        (_IDA,),
        partial(read_realisations, name=name),
        rows,
        features,
        {-1: rows - positive, 1: positive},
        train_rows,
    )


def _digits(
    urls: tuple[str, ...],
    read: Callable[[list[bytes]], Arrays],
    features: int,
    counts: Sequence[int],
    train_counts: Sequence[int],
) -> Source:
    """Return a data set of ten classes, given the number of all and of training rows of each."""
    return Source(
        urls,
        read,
        sum(counts),
        features,
        dict(enumerate(counts)),
        sum(train_counts),
        dict(enumerate(train_counts)),
    )


SOURCES: dict[str, Source] = {
    "breast_cancer": _libsvm(["breast-cancer"], 10, {-1: 444, 1: 239}, positive=4),
    "mushrooms": _libsvm(["mushrooms"], 112, {-1: 4208, 1: 3916}),
    "skin_nonskin": _libsvm(["skin_nonskin"], 3, {-1: 194198, 1: 50859}),
    "splice": _libsvm(["splice", "splice.t"], 60, {-1: 1527, 1: 1648}, {-1: 483, 1: 517}),
    "a1a": _libsvm(["a1a", "a1a.t"], 123, {-1: 24720, 1: 7841}, {-1: 1210, 1: 395}),
    "ijcnn1": _libsvm(
        ["ijcnn1.bz2", "ijcnn1.t.bz2"], 22, {-1: 128126, 1: 13565}, {-1: 45137, 1: 4853}
    ),
    "mnist": _digits(
        (f"{_OPENML}/52667/mnist_784.arff",),
        partial(read_digits, n_train=60000),
        784,
        (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958),
        (5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949),
    ),
    "usps": _digits(
        (f"{_LIBSVM_CLASSES}/usps.bz2", f"{_LIBSVM_CLASSES}/usps.t.bz2"),
        partial(read_postal_digits, n_features=256),
        256,
        (1553, 1269, 929, 824, 852, 716, 834, 792, 708, 821),
        (1194, 1005, 731, 658, 652, 556, 664, 645, 542, 644),
    ),
    "parkinson_speech": Source(
        (f"{_UCI}/301/parkinson+speech+dataset+with+multiple+types+of+sound+recordings.zip",),
        read_parkinson,
        1040,
        26,
        {-1: 520, 1: 520},
    ),
    "bank_marketing": Source(
        (f"{_UCI}/222/bank+marketing.zip",), read_bank, 41188, 62, {-1: 36548, 1: 4640}
    ),
    "ida_banana": _ida("banana", 5300, 400, 2, 2376),
    "ida_breast_cancer": _ida("breast_cancer", 277, 200, 9, 81),
    "ida_diabetis": _ida("diabetis", 768, 468, 8, 268),
    "ida_flare_solar": _ida("flare_solar", 1066, 666, 9, 589),
    "ida_german": _ida("german", 1000, 700, 20, 300),
    "ida_heart": _ida("heart", 270, 170, 13, 120),
    "ida_image": _ida("image", 2310, 1300, 18, 1320),
    "ida_ringnorm": _ida("ringnorm", 7400, 400, 20, 3664),
    "ida_thyroid": _ida("thyroid", 215, 140, 5, 65),
    "ida_titanic": _ida("titanic", 2201, 150, 3, 711),
    "ida_twonorm": _ida("twonorm", 7400, 400, 20, 3703),
    "ida_waveform": _ida("waveform", 5000, 400, 21, 1647),
}
