import warnings

import numpy as np
import pytest
from sklearn.utils.multiclass import type_of_target

from span_hpo.io.targets import checked_labels

RNG = np.random.default_rng(0)
MPG = np.array([repr(mpg) for mpg in RNG.uniform(9, 47, 398).round(1).tolist()])
PRICES = RNG.integers(1000, 40_000, 200)


@pytest.mark.parametrize(
    "labels", [MPG, PRICES, np.char.replace(MPG, ".", ",")], ids=["mpg", "prices", "commas"]
)
def test_quantities_are_refused(labels):
    """Many different numbers are no classes, unless the user insists."""
    count = len(np.unique(labels))
    message = (
        f"column 'y' must hold classes, got {count} different numbers from .* in {len(labels)} "
        "rows, which look like a quantity. An SVM of classes cannot predict quantities: name "
        "another column, divide the numbers into classes, or use `classify` if each number is a"
    )
    with pytest.raises(ValueError, match=message):
        checked_labels(labels, "column 'y'")
    with pytest.warns(UserWarning, match=f"column 'y' holds {count} classes with 1 row "):
        assert checked_labels(labels, "column 'y'", classify=True) is labels


def test_scikit_learn_refuses_the_same_decimals():
    """What scikit-learn calls continuous is refused as a column of a file too."""
    assert type_of_target(MPG.astype(float)) == "continuous"


@pytest.mark.parametrize(
    "labels",
    [
        np.array([0, 1]),
        np.array([1, 2, 3]),
        np.arange(10).repeat(3),
        np.array(["0.5", "1.5"] * 2),
        np.array(["1.0", "1.5", "2.0"] * 20),
        np.array([f"c{i}" for i in range(20)]),
    ],
    ids=["two rows", "three rows", "digits", "halves", "steps", "names"],
)
def test_classes_are_accepted(labels):
    """Few classes need no words, even where every row has its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert checked_labels(labels, "column 'y'") is labels


def test_many_classes_are_counted():
    """Above 20 classes the smallest and the largest one are shown."""
    labels = np.array([f"c{i:02}" for i in range(21)] * 3 + ["c20"])
    message = (
        "column 'y' holds 21 classes with 3 rows of 'c00' to 4 rows of 'c20'. Each trial makes a "
        "fit for each of the 210 pairs"
    )
    with pytest.warns(UserWarning, match=message):
        checked_labels(labels, "column 'y'")


def test_too_many_classes_are_refused():
    """More than 100 texts look like names, unless the user insists."""
    labels = np.array([f"c{i:03}" for i in range(101)] * 2)
    message = (
        "column 'y' must hold from 2 to 100 classes, got 101, the first of which is 'c000'. Name "
        "another column, or use `classify` to insist"
    )
    with pytest.raises(ValueError, match=message):
        checked_labels(labels, "column 'y'")
    with pytest.warns(UserWarning, match="holds 101 classes"):
        checked_labels(labels, "column 'y'", classify=True)


def test_one_class_is_refused():
    """There is nothing to tell apart."""
    with pytest.raises(ValueError, match="column 'y' must hold two classes or more, got only 'x'"):
        checked_labels(np.array(["x", "x"]), "column 'y'", classify=True)
