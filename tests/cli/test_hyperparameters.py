import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    ImbalanceCost,
    Polynomial,
    PowerScore,
    SigmoidScore,
    SpanSVC,
    UniformCost,
)
from span_hpo.cli.hyperparameters import given_params, kernel_of, weighting_of
from span_hpo.cli.options import ModelSettings
from span_hpo.io import Numbering, Samples, Table, learned_encoding
from span_hpo.runtime import ArgumentError
from tests.cli.program import NOT_FEATURES, call, moons_table


def test_fixed_values_are_not_searched(capsys):
    """With all hyperparameters given there is no study, and the model is that one fit."""
    printed = call(
        *(
            "tune",
            "rows.csv",
            "--target",
            "label",
            *NOT_FEATURES,
            "--C",
            "bad=2",
            "--C",
            "good=0.5",
        ),
        *("--gamma", 3, "--json"),
        capsys=capsys,
    )
    result = json.loads(printed)
    assert (result["trials"], result["storage"], result["best_params"]) == (0, None, {})
    assert not Path("model.journal").exists()
    frame = moons_table()
    encoded = pd.get_dummies(frame[["x", "z", "town"]], columns=["town"], dtype=float)
    model = SpanSVC(RBF(gamma=3.0), ClassCosts({"bad": 2.0, "good": 0.5}))
    assert model.fit(encoded, frame["label"]).loo_error_ == result["loo_error"]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ["gamma", "C"]),
        (("--metric", "balanced_error"), ["gamma", "C", "balance"]),
        (("--metric", "auc", "--balance", 1), ["gamma", "C"]),
        (("--weighting", "imbalance", "--C", 2), ["gamma", "balance"]),
        (("--weighting", "class"), ["gamma", "C_bad", "C_good"]),
        (("--weighting", "uniform"), ["gamma", "C"]),
        (("--score", "trust"), ["gamma", "C_bad", "C_good", "A", "B"]),
        (("--score", "trust", "--weighting", "sigmoid", "--A", 4), ["gamma", "B", "C"]),
        (("--score", "trust", "--weighting", "power", "--C", 2), ["gamma", "tau"]),
        (("--score", "trust", "--weighting", "class*power", "--C", 2), ["gamma", "tau"]),
        (
            ("--score", "trust", "--weighting", "class*knots"),
            ["gamma", "C_bad", "C_good", "share_0", "share_1", "share_2"],
        ),
        (("--weighting", "confidence", "--tau", 2), ["gamma", "C", "bandwidth"]),
        (("--kernel", "linear"), ["C"]),
        (("--kernel", "ard"), [*(f"gamma_{name}" for name in ("town", "trust", "x", "z")), "C"]),
        (
            ("--kernel", "ard", "--share-gamma", "x,z"),
            ["gamma_x", "gamma_town", "gamma_trust", "C"],
        ),
        (("--kernel", "ard", "--gamma", 1), ["C"]),
        (("--kernel", "poly", "--degree", 2, "--C", 1), ["gamma"]),
    ],
)
def test_kernels_and_weightings(options, names, capsys):
    """What is not given is searched."""
    printed = call(
        *("tune", "rows.csv", "--target", "label", "--drop", "clinic", "--trials", 5, "--seed", 0),
        *options,
        "--json",
        capsys=capsys,
    )
    assert sorted(json.loads(printed)["best_params"]) == sorted(names)


def settings_with(**given):
    """Return settings in which only these are given."""
    unset = {field.name: None for field in dataclasses.fields(ModelSettings)}
    return ModelSettings(
        **{**unset, "kernel": "rbf", "metric": "error", "costs": (), "share_gamma": (), **given}
    )


LABELS = np.array(["good", "bad", "bad"])


@pytest.mark.parametrize(
    ("given", "score", "wanted"),
    [
        ({}, None, UniformCost()),
        ({"metric": "mcc"}, None, ImbalanceCost()),
        ({"balance": 1.0, "costs": ("2",)}, None, ImbalanceCost(2.0, 1.0)),
        ({"weighting": "imbalance", "balance": 1.0}, None, ImbalanceCost(balance=1.0)),
        ({"weighting": "class"}, None, ClassCosts()),
        ({"costs": ("2",)}, None, ClassCosts(2.0)),
        ({"costs": ("bad=2", "good=0.5")}, None, ClassCosts({"bad": 2.0, "good": 0.5})),
        ({"weighting": "uniform", "costs": ("3",)}, None, UniformCost(3.0)),
        ({"A": 4.0}, "trust", ClassCosts() * SigmoidScore(A=4.0, C=1.0)),
        ({"weighting": "power", "costs": ("3",)}, "trust", PowerScore(C=3.0)),
    ],
)
def test_weightings_are_those_of_the_library(given, score, wanted):
    """Options make the weighting that a user of Python would write."""
    assert weighting_of(settings_with(**given), score, LABELS) == wanted


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"costs": ("1", "2")}, "--C` must be one number, or LABEL=NUMBER"),
        ({"costs": ("bad=1", "bad=2")}, "--C` must name each of the labels .* once"),
        ({"costs": ("bad=1",), "weighting": "uniform"}, "--C` must be one number for a weighting"),
        ({"tau": 1.0}, "--tau` must not be given for the weighting uniform"),
        ({"weighting": "class*groups"}, "--group` must name a column for the weighting class.grou"),
        ({"weighting": "knots"}, "--score` must name a column for the weighting knots"),
    ],
)
def test_wrong_combinations_are_named(given, message):
    """What does not go together is refused, with the option that is wrong."""
    with pytest.raises(ArgumentError, match=message):
        weighting_of(settings_with(**given), None, LABELS)


def test_groups_have_costs_of_their_own(capsys):
    """With --group, each of its values has a ratio, and the name of the column is printed."""
    options = ("--target", "label", "--group", "clinic", "--weighting", "class*groups")
    printed = call("tune", "rows.csv", *options, "--trials", 5, "--json", capsys=capsys)
    names = sorted(json.loads(printed)["best_params"])
    ratios = [name for name in names if name.startswith("ratio_")]
    assert len(ratios) >= 2
    assert names == sorted(["gamma", "C_bad", "C_good", "shrinkage", *ratios])


SAMPLES = Samples(np.zeros((3, 2)), LABELS)


def test_kernels_are_those_of_the_library():
    """Options make the kernel that a user of Python would write."""
    given = {"kernel": "poly", "degree": 2, "coef0": 0.5}
    assert kernel_of(settings_with(**given), SAMPLES) == Polynomial(degree=2, coef0=0.5)
    assert given_params(settings_with(**given, costs=("2",))) == {
        "degree": 2,
        "coef0": 0.5,
        "C": "2",
    }


def table_samples():
    """Return the rows of a table with four columns, one of them with three towns."""
    frame = moons_table(30)[["x", "z", "town", "trust"]]
    encoding = learned_encoding(Table.of(frame), list(frame.columns))
    X = encoding.encoded(Table.of(frame))
    return Samples(X, moons_table(30)["label"].to_numpy(), columns=encoding)


@pytest.mark.parametrize(
    ("shared", "groups"),
    [
        ((), {"gamma_town": [2, 3, 4], "gamma_x": [0], "gamma_z": [1], "gamma_trust": [5]}),
        (("x,z",), {"gamma_x": [0, 1], "gamma_town": [2, 3, 4], "gamma_trust": [5]}),
        (("t*",), {"gamma_town": [2, 3, 4, 5], "gamma_x": [0], "gamma_z": [1]}),
        (("[xz]", "t*"), {"gamma_x": [0, 1], "gamma_town": [2, 3, 4, 5]}),
    ],
)
def test_columns_that_share_a_width(shared, groups):
    """Names and patterns choose columns, and a category brings all of its features."""
    samples = table_samples()
    kernel = kernel_of(settings_with(kernel="ard", share_gamma=shared), samples).bind(samples.X)
    assert {name: list(own) for name, own in kernel.groups.items()} == groups


def test_numbered_features_have_their_numbers():
    """Widths of features in LIBSVM's format are called as the file numbers the features."""
    X = np.random.default_rng(0).normal(size=(4, 3))
    numbering = Numbering(np.array([0, 6, 10]), 20)
    samples = Samples(X, np.array([0, 1, 0, 1]), numbering=numbering)
    kernel = kernel_of(settings_with(kernel="ard"), samples).bind(X)
    assert list(kernel.space) == ["gamma_1", "gamma_7", "gamma_11"]
    few = kernel_of(settings_with(kernel="ard", share_gamma=("1*",)), samples).bind(X)
    assert {name: list(own) for name, own in few.groups.items()} == {
        "gamma_1": [0, 2],
        "gamma_7": [1],
    }
    assert kernel_of(settings_with(kernel="ard", gamma=2.0), samples) == ARD(
        2.0, columns=("1", "7", "11")
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"share_gamma": ("x",)}, "--share-gamma` must not be given for the kernel rbf, got 'x'"),
        (
            {"kernel": "ard", "share_gamma": ("x,y",)},
            "--share-gamma` must name columns that are features, among 'x', 'z', .*, got 'y'",
        ),
        ({"kernel": "ard", "share_gamma": ("x,*",)}, "must name each column once, got .*'x' twice"),
        ({"kernel": "ard", "degree": 2}, "--degree` must not be given for the kernel ard, got 2"),
    ],
)
def test_wrong_columns_are_named(given, message):
    """Columns that are not there, or twice, and options of other kernels are refused."""
    samples = table_samples()
    with pytest.raises(ValueError, match=message):
        kernel_of(settings_with(**given), samples).bind(samples.X)
