import json

import numpy as np
import pytest
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel

from span_hpo import (
    RBF,
    Choice,
    ClassCosts,
    Float,
    Linear,
    Polynomial,
    SigmoidScore,
    SpanObjective,
    UniformCost,
)
from span_hpo.objective.description import check_same, described
from tests.problems import two_moons

DIFFERENT = [
    RBF(gamma=0.5),
    RBF(gamma=1.0),
    RBF(gamma=Float(0.5, 1.0)),
    Linear(),
    Polynomial(degree=2, gamma=0.5),
    Polynomial(degree=3, gamma=0.5),
    UniformCost(0.5),
    UniformCost(1.0),
    ClassCosts([1.0, 2.0]),
    ClassCosts({"a": 1.0, "b": 2.0}),
    ClassCosts() * SigmoidScore(C=1.0),
    ClassCosts() * SigmoidScore(C=2.0),
]


def test_different_parts_have_different_descriptions():
    """The type, the fixed values and what is searched tell parts from each other."""
    texts = [json.dumps(described(part), sort_keys=True) for part in DIFFERENT]
    assert len(set(texts)) == len(DIFFERENT)


@pytest.mark.parametrize("part", DIFFERENT)
def test_a_description_survives_a_file(part):
    """JSON gives back what was written, so that a storage can be compared with."""
    assert json.loads(json.dumps(described(part))) == described(part)


def test_ranges_may_change_between_runs():
    """What is searched counts as searched, wherever its range ends."""
    for one, other in (
        (RBF(gamma=Float(0.1, 1)), RBF(gamma=Float(0.2, 5, log=True))),
        (UniformCost(Float(1, 2)), UniformCost(Choice([1.0, 3.0]))),
    ):
        assert described(one) == described(other)


def test_an_object_of_ones_own_is_described_by_its_type():
    """Nothing is asked of a user's rule but the name of its type."""

    class Own:
        space = {}  # noqa: RUF012  what a user would write

    assert described(Own()) == {"type": "Own"}


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"metric": "auc"}, "metrics was ['error'], got ['auc']"),
        ({"loo_method": "exact"}, "loo_method was 'span', got 'exact'"),
        ({"kernel": RBF(gamma=2.0)}, "kernel was {'type': 'RBF', 'gamma': 1.0}, got"),
        ({"weighting": UniformCost(2.0)}, "weighting was {'type': 'UniformCost', 'C': 1.0}, got"),
        ({"kernel": RBF(np.float32(2))}, "kernel was {'type': 'RBF', 'gamma': 1.0}, got"),
        ({"scaling": "standard"}, "scaling was None, got 'standard'"),
        ({"metric_weight": np.arange(40.0)}, "metric weights was None, got '19.5, 27.333'"),
    ],
)
def test_objectives_that_differ_are_told_apart(change, named):
    """The first difference is named with both of its sides; equal descriptions pass."""
    X, y = two_moons(40)
    settings = {"kernel": RBF(gamma=1.0), "weighting": UniformCost(1.0)}
    known = SpanObjective(X, y, **settings).description()
    check_same("`study`", known, SpanObjective(X.copy(), y, **settings).description())
    with pytest.raises(ValueError, match="`study` must have the same data and losses") as caught:
        check_same("`study`", known, SpanObjective(X, y, **{**settings, **change}).description())
    assert named in str(caught.value)


def test_other_data_are_told_apart():
    """Other features, other labels and another number of rows are other objectives."""
    X, y = two_moons(40)
    known = SpanObjective(X, y).description()
    for other_X, other_y, name in (
        (X[:38], y[:38], "rows"),
        (1.01 * X, y, "mean size of the features"),
        (X, np.roll(y, 1), "checksum of the labels"),
        (np.hstack([X, X]), y, "features"),
    ):
        with pytest.raises(ValueError, match=f"in all its trials, but {name} was"):
            check_same("`study`", known, SpanObjective(other_X, other_y).description())


def test_functions_are_told_apart():
    """Kernels that are different functions make different objectives."""
    X, y = two_moons(40)

    def described_by(kernel):
        return SpanObjective(X, y, kernel=kernel).description()

    assert described_by(linear_kernel) == described_by(linear_kernel)
    assert described_by(linear_kernel) != described_by(rbf_kernel)


def test_metric_weights_that_are_dropped_are_noticed():
    """An objective without weights is another one than with weights, in both directions."""
    X, y = two_moons(40)
    weighted = SpanObjective(X, y, metric_weight=np.arange(40.0)).description()
    plain = SpanObjective(X, y).description()
    assert plain == SpanObjective(X, y, metric_weight=np.ones(40)).description()
    for known, now in ((weighted, plain), (plain, weighted)):
        with pytest.raises(ValueError, match="but metric weights was"):
            check_same("`study`", known, now)


def test_a_function_of_a_script_is_the_same_in_a_spawned_process():
    """The name of a function counts, not the module, which spawned processes call otherwise."""

    def kernel(A, B):
        return A @ B.T

    here = described(kernel)
    kernel.__module__ = "__mp_main__"
    assert described(kernel) == here
