import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from span_hpo import (
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
        (("--kernel", "linear"), ["C"]),
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
    return ModelSettings(**{**unset, "kernel": "rbf", "metric": "error", "costs": (), **given})


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
    ],
)
def test_wrong_combinations_are_named(given, message):
    """What does not go together is refused, with the option that is wrong."""
    with pytest.raises(ArgumentError, match=message):
        weighting_of(settings_with(**given), None, LABELS)


def test_kernels_are_those_of_the_library():
    """Options make the kernel that a user of Python would write."""
    given = {"kernel": "poly", "degree": 2, "coef0": 0.5}
    assert kernel_of(settings_with(**given)) == Polynomial(degree=2, coef0=0.5)
    assert given_params(settings_with(**given, costs=("2",))) == {
        "degree": 2,
        "coef0": 0.5,
        "C": "2",
    }
