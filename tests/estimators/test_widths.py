"""Widths that are named after columns, and relevances by column."""

import numpy as np
import pandas as pd
import pytest

from span_hpo import ARD, RBF, LooSVC, SpanSearchCV, SpanSVC, feature_relevance
from span_hpo.estimators.widths import kernel_of_columns, relevance_of_columns
from span_hpo.io import Table, learned_encoding
from tests.relevant import RELEVANT, thinned, two_of_twelve

pytestmark = pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")
NAMES = [f"x {letter}" for letter in "abcdefghijkl"]


def towns(count=120, seed=0):
    """Return a table with two columns of numbers and one of three towns, one of which matters."""
    rng = np.random.default_rng(seed)
    town = rng.choice(["Bonn", "Köln", "Ulm"], count)
    frame = pd.DataFrame({"age": rng.uniform(20, 60, count), "town": town})
    frame["noise"] = rng.normal(size=count)
    return frame, np.where((town == "Ulm") ^ (frame["age"] > 50), "yes", "no")


def encoding_of(frame, **settings):
    return learned_encoding(Table.of(frame), list(frame.columns), **settings)


def groups_of(kernel, frame, **settings):
    """Return the features of each group of a kernel that knows its columns, by name."""
    encoding = encoding_of(frame, **settings)
    named = kernel_of_columns(kernel, list(frame.columns), encoding)
    bound = named.bind(encoding.encoded(Table.of(frame)))
    names = encoding.feature_names
    return {name: [names[place] for place in own] for name, own in bound.groups.items()}


def test_names_of_columns():
    """Hyperparameters and relevances have the names of a DataFrame's columns, in any scaling."""
    X, y = two_of_twelve(100)
    frame = pd.DataFrame(X * 10.0 ** np.linspace(-8, 8, 12), columns=NAMES)
    model = SpanSVC("ard").fit(frame, y)
    assert [name for name in model.best_params_ if name != "C"] == [
        f"gamma_{name}".replace(" ", "_") for name in NAMES
    ]
    assert set(model.feature_relevance_) == set(NAMES)
    assert set(list(model.feature_relevance_)[:2]) == {NAMES[place] for place in RELEVANT}
    same = SpanSVC("ard").fit(X, y)
    assert same.feature_relevance_[3] == pytest.approx(model.feature_relevance_["x d"], rel=1e-3)


def test_categories_share_a_width():
    """A column of text has one width for all its categories, and the sum of their relevances."""
    frame, y = towns()
    model = SpanSVC("ard", n_trials=40).fit(frame, y)
    assert set(model.best_params_) == {"gamma_town", "gamma_age", "gamma_noise", "C"}
    relevance = model.feature_relevance_
    assert set(relevance) == {"age", "town", "noise"}
    assert list(relevance)[2] == "noise"
    shares = frame["town"].value_counts(normalize=True)
    spread = (shares * (1 - shares)).sum()
    assert relevance["town"] == pytest.approx(model.best_params_["gamma_town"] * spread)


def test_groups_of_columns():
    """Groups may name columns, number them, or name single categories."""
    frame, _ = towns(30)
    assert groups_of("ard", frame) == {
        "gamma_town": ["town=Bonn", "town=Köln", "town=Ulm"],
        "gamma_age": ["age"],
        "gamma_noise": ["noise"],
    }
    both = ["age", "town=Bonn", "town=Köln", "town=Ulm"]
    assert groups_of(ARD(groups=[["age", "town"]]), frame)["gamma_age"] == both
    assert groups_of(ARD(groups=[[0, 1]]), frame)["gamma_age"] == both
    assert groups_of(ARD(groups={"all": [0, "town"]}), frame)["gamma_all"] == both
    assert groups_of(ARD(groups=[["town=Bonn", "town=Ulm"], ["town=Köln"]]), frame) == {
        "gamma_town=Bonn".replace("=", "_"): ["town=Bonn", "town=Ulm"],
        "gamma_town=Köln": ["town=Köln"],
        "gamma_age": ["age"],
        "gamma_noise": ["noise"],
    }


def test_flags_of_missing_values_have_widths_of_their_own():
    """Whether a value is missing may matter more than the value; a column is their sum."""
    frame, y = towns()
    frame.loc[::4, "age"] = np.nan
    groups = groups_of("ard", frame, impute="indicator")
    assert groups["gamma_age"] == ["age"]
    assert groups["gamma_age_is_missing"] == ["age is missing"]
    model = SpanSVC("ard", n_trials=10, impute="indicator").fit(frame, y)
    parts = feature_relevance(model.objective_, model.best_params_)
    whole = model.feature_relevance_
    assert whole["age"] == pytest.approx(parts["age"] + parts["age is missing"])
    assert set(whole) == {"age", "town", "noise"}


def test_numbers_without_names():
    """Arrays, also those with filled-in values, and sparse rows have numbered columns."""
    X, y = two_of_twelve(60)
    holes = X.copy()
    holes[::7, 2] = np.nan
    for rows, settings in ((holes, {"impute": "median"}), (thinned(X), {})):
        model = SpanSVC("ard", n_trials=5, **settings).fit(rows, y)
        assert list(model.best_params_)[:2] == ["gamma_0", "gamma_1"]
        assert set(model.feature_relevance_) == set(range(12))


def test_groups_of_an_estimator():
    """Columns of one group have one width, and each its own relevance."""
    X, y = two_of_twelve(80)
    frame = pd.DataFrame(X, columns=NAMES)
    pixels = {"pixels": NAMES[4:8]}
    model = SpanSVC(ARD(groups=pixels), n_trials=10).fit(frame, y)
    assert next(iter(model.best_params_)) == "gamma_pixels"
    assert len(model.best_params_) == 1 + 8 + 1
    spread = model.scaler_.transform(X).var(axis=0)
    for place in range(4, 8):
        expected = model.best_params_["gamma_pixels"] * spread[place]
        assert model.feature_relevance_[NAMES[place]] == pytest.approx(expected)


def test_fixed_widths():
    """LooSVC takes fixed widths, and has relevances by name and a file as well."""
    X, y = two_of_twelve(80)
    gamma = np.where(np.isin(np.arange(12), RELEVANT), 3.0, 0.0)
    frame = pd.DataFrame(X, columns=NAMES)
    model = LooSVC(C=2.0, kernel=ARD(gamma=gamma)).fit(frame, y)
    small = LooSVC(C=2.0, kernel=RBF(gamma=3.0)).fit(X[:, RELEVANT], y)
    np.testing.assert_allclose(
        model.decision_function(frame), small.decision_function(X[:, RELEVANT]), atol=1e-8
    )
    assert model.loo_error_ == small.loo_error_
    spread = X[:, 3].var()
    assert model.feature_relevance_["x d"] == pytest.approx(3 * spread)
    assert [model.feature_relevance_[name] for name in NAMES[:3]] == [0.0, 0.0, 0.0]
    values = model.as_predictor().decision_function(X)
    np.testing.assert_allclose(values, model.decision_function(frame), atol=1e-9)


def test_candidates_of_a_search():
    """SpanSearchCV compares kernels with fixed widths, and its best model has relevances."""
    X, y = two_of_twelve(80)
    frame = pd.DataFrame(X, columns=NAMES)
    gamma = np.where(np.isin(np.arange(12), RELEVANT), 3.0, 0.0).tolist()
    grid = {"kernel": ["rbf", ARD(gamma=gamma)], "C": [1.0, 10.0]}
    search = SpanSearchCV(LooSVC(), grid).fit(frame, y)
    assert search.best_params_["kernel"] == ARD(gamma=gamma)
    alone = LooSVC(**search.best_params_).fit(frame, y)
    assert 1 - search.best_score_ == pytest.approx(alone.loo_error_)
    first = list(search.best_estimator_.feature_relevance_)[:2]
    assert set(first) == {NAMES[place] for place in RELEVANT}


@pytest.mark.parametrize("scale", ["minmax", None])
def test_features_of_very_different_size(scale):
    """A feature of 1e8 is scaled by default; without scaling it decides alone, and no number fails.

    The range of all widths follows from the median distance, so that unscaled small features have
    no width at which they matter.
    """
    X, y = two_of_twelve(80)
    X[:, 0] *= 1e8
    model = SpanSVC("ard", n_trials=30, scale=scale).fit(X, y)
    assert np.isfinite(list(model.feature_relevance_.values())).all()
    first = list(model.feature_relevance_)[:2]
    assert (set(first) == set(RELEVANT)) == (scale == "minmax")
    values = model.as_predictor().decision_function(X)
    np.testing.assert_allclose(values, model.decision_function(X), atol=1e-6)


def test_rows_left_out_of_the_scaling():
    """With `scale_inside`, rows that define the scaling are refitted with the widths found."""
    X, y = two_of_twelve(60)
    model = SpanSVC("ard", n_trials=10, scale_inside=True).fit(X, y)
    low, high = model.loo_bounds_
    assert low == high == model.loo_error_


@pytest.mark.parametrize("kernel", ["rbf", RBF(gamma=1.0), "linear", ARD(columns=["a"])])
def test_other_kernels_are_returned(kernel):
    """Kernels without widths of features, and those that know their columns, do not change."""
    found = kernel_of_columns(kernel, ["a", "a"])
    assert type(found) is type(kernel_of_columns(kernel, None))
    if not isinstance(kernel, str):
        assert found is kernel


def test_one_feature_and_a_constant_one():
    """One feature has one width; a constant feature has relevance 0."""
    X, y = two_of_twelve(60)
    alone = SpanSVC("ard", n_trials=8).fit(X[:, [3]], y)
    assert list(alone.feature_relevance_) == [0]
    X[:, 5] = 7.0
    model = SpanSVC("ard", n_trials=8).fit(X, y)
    assert list(model.feature_relevance_.items())[-1] == (5, 0.0)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (ARD(groups=[["age", "age"]]), "`groups` must name each column once, got column 'age'"),
        (ARD(groups=[["town"], ["town"]]), "`groups` must name each column once, got .*'town'"),
        (ARD(groups=[["town"], ["town=Ulm"]]), "got column 'town=Ulm' twice"),
        (ARD(groups=[[3]]), r"`groups` must hold columns of `X`, numbers from 0 to 2 .*got 3\."),
        (ARD(groups=[["city"]]), "`groups` must hold columns of `X`.*got 'city'"),
        (ARD(groups=[[]]), "`groups` must have at least one column in each"),
        (ARD(groups=["town"]), "`groups` must hold lists of columns, got 'town'"),
        (ARD(groups="town"), "`groups` must be a list of lists of columns, got 'town'"),
    ],
)
def test_bad_groups(kernel, message):
    """Groups of a table with categories are refused as those of numbers are."""
    frame, y = towns(30)
    with pytest.raises((ValueError, TypeError), match=message):
        SpanSVC(kernel, n_trials=2).fit(frame, y)


def test_equal_names_are_refused():
    """Two columns of one name cannot both name a width."""
    X, y = two_of_twelve(40)
    with pytest.raises(ValueError, match=r"columns of different names.*got 'a' twice"):
        kernel_of_columns("ard", ["a", "b", "a"])
    with pytest.raises(ValueError, match="'a'"):
        SpanSVC("ard").fit(pd.DataFrame(X[:, :3], columns=["a", "b", "a"]), y)


def test_names_are_told_apart_from_numbers():
    """A kernel that does not know the names gets them afterwards, unless they are not unique."""
    X, y = two_of_twelve(40)
    model = LooSVC(kernel=ARD(gamma=1.0)).fit(X, y)
    found = relevance_of_columns(model.objective_, {}, None, NAMES)
    assert set(found) == set(NAMES)
    again = relevance_of_columns(model.objective_, {}, None, ["a"] * 12)
    assert set(again) == set(range(12))
