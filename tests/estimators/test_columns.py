"""DataFrames with text and missing values, in a classifier and on the command line."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score

from span_hpo import RBF, Predictor, SpanSVC, UniformCost
from span_hpo.io import IMPUTE, read_samples
from tests.problems import two_moons

FIXED = {"kernel": RBF(gamma=0.5), "weighting": UniformCost(1.0)}


def mixed_frame(rows=80, share=0.1):
    """Return rows with numbers, text, categories and truth values, some missing, and labels."""
    X, y = two_moons(rows)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": X[:, 0],
            "z": X[:, 1],
            "town": rng.choice(["a", "b", "c"], rows),
            "code": pd.Categorical(rng.integers(3, size=rows)),
            "flag": rng.random(rows) < 0.5,
        }
    )
    for name in ("x", "town"):
        frame.loc[rng.random(rows) < share, name] = None
    return frame, pd.Series(np.where(y > 0, "yes", "no"), name="label")


@pytest.mark.parametrize("impute", IMPUTE)
def test_frames_are_encoded_as_files(impute, tmp_path):
    """The same rows as a DataFrame and as a file give the same features and the same model."""
    frame, y = mixed_frame()
    frame.assign(label=y).to_csv(tmp_path / "rows.csv", index=False)
    samples = read_samples(tmp_path / "rows.csv", target="label", category=["code"], impute=impute)
    model = SpanSVC(**FIXED, impute=impute).fit(frame, y)
    assert model.encoding_ == samples.columns
    by_file = SpanSVC(**FIXED).fit(samples.X, samples.y)
    np.testing.assert_array_equal(
        model.decision_function(frame), by_file.decision_function(samples.X)
    )


def test_frames_without_gaps_need_no_impute(tmp_path):
    """Text and categories are encoded, and the model file predicts for DataFrames."""
    frame, y = mixed_frame(share=0.0)
    model = SpanSVC(**FIXED).fit(frame, y)
    assert model.encoding_.feature_names == [
        *("x", "z", "town=a", "town=b", "town=c", "code=0", "code=1", "code=2", "flag"),
    ]
    assert (model.n_features_in_, list(model.feature_names_in_)) == (5, list(frame.columns))
    model.as_predictor().save(tmp_path / "model.json")
    loaded = Predictor.load(tmp_path / "model.json")
    assert loaded.columns.target == "label"
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_allclose(loaded.predict_proba(frame), model.predict_proba(frame))
    assert cross_val_score(SpanSVC(**FIXED), frame, y, cv=3).mean() > 0.7


def test_frames_of_numbers_stay_as_they_are():
    """A DataFrame of numbers is fitted like its array, without an encoding."""
    X, y = load_iris(return_X_y=True, as_frame=True)
    model = SpanSVC(**FIXED).fit(X, y)
    assert model.encoding_ is None
    other = SpanSVC(**FIXED).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(model.decision_function(X), other.decision_function(X.to_numpy()))


@pytest.mark.parametrize("impute", ["median", "most_frequent"])
def test_arrays_are_filled_as_by_scikit_learn(impute):
    """NaN in an array is filled in as `SimpleImputer` does, in training rows and new rows."""
    X, y = load_iris(return_X_y=True)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = SpanSVC(**FIXED, impute=impute).fit(X[::2], y[::2])
    imputer = SimpleImputer(strategy=impute).fit(X[::2])
    other = SpanSVC(**FIXED).fit(imputer.transform(X[::2]), y[::2])
    want = other.decision_function(imputer.transform(X))
    np.testing.assert_array_equal(model.decision_function(X), want)
    filled = imputer.transform(X)
    np.testing.assert_array_equal(
        model.decision_function(sparse.csr_array(filled)), other.decision_function(filled)
    )


def test_missing_values_are_named():
    """Without `impute` all columns with missing values are named, in `fit` and in `predict`."""
    frame, y = mixed_frame()
    message = r"got none in 'x' \(\d+ of 80 rows, .*\), 'town' .* impute=\"median\", or leave these"
    with pytest.raises(ValueError, match=message):
        SpanSVC(**FIXED).fit(frame, y)
    X, labels = two_moons(40)
    model = SpanSVC(**FIXED).fit(X, labels)
    X[[3, 5], 1] = np.nan
    with pytest.raises(
        ValueError, match=r"got none in 'x1' \(2 of 40 rows, .* row 4\)\. Fill in Na"
    ):
        SpanSVC(**FIXED).fit(X, labels)
    message = (
        r"`X` must have a value \(not NaN\) in every cell, got none in 'x1' \(2 of 40 rows, .* row "
        r"4\)\. Fill them in, or fit with `impute`\.$"
    )
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_rows_without_weight_teach_nothing():
    """Medians and categories come from the rows of the fit only."""
    frame, y = mixed_frame(share=0.0)
    weight = np.ones(len(y))
    weight[:2] = 0.0
    frame.loc[0, "x"], frame.loc[1, "town"] = 1e6, "elsewhere"
    model = SpanSVC(**FIXED, impute="median").fit(frame, y, sample_weight=weight)
    assert model.encoding_ == SpanSVC(**FIXED, impute="median").fit(frame[2:], y[2:]).encoding_


def test_frames_must_have_the_columns_of_the_fit():
    """Columns are compared by name, as by other estimators of scikit-learn."""
    frame, y = mixed_frame(share=0.0)
    model = SpanSVC(**FIXED).fit(frame, y)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"town": "city"}))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.drop(columns="town"))
    with pytest.warns(UserWarning, match="categories that do not occur in the training rows: d"):
        model.predict(frame.assign(town="d"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"impute": "mean"}, r"`impute` must be one of \['median', .*, None\], got 'mean'"),
        (
            {"impute": "median", "kernel": "precomputed"},
            "`impute` must be None for a precomputed kernel, got 'median'",
        ),
    ],
)
def test_wrong_settings_are_named(settings, message):
    """What cannot be filled in is refused by name."""
    X, y = two_moons(30)
    with pytest.raises(ValueError, match=message):
        SpanSVC(**{**FIXED, **settings}).fit(X @ X.T, y)


def test_timestamps_get_advice():
    """Columns of dates cannot be features, and the message says what can be made of them."""
    frame, y = mixed_frame(share=0.0)
    frame["day"] = pd.date_range("2024-01-01", periods=len(y))
    with pytest.raises(ValueError, match=r"column 'day' of `X` .* Replace timestamps by numbers"):
        SpanSVC(**FIXED).fit(frame, y)
    frame["day"] = frame["day"].astype(str)
    with pytest.raises(ValueError, match=r"got timestamps such as '2024-01-01'"):
        SpanSVC(**FIXED).fit(frame, y)
