from typing import ClassVar

import numpy as np
import pytest

from span_hpo import (
    RBF,
    Choice,
    ClassCosts,
    Linear,
    SigmoidScore,
    SpanObjective,
    SpanSVC,
    UniformCost,
)
from tests.problems import two_moons

X, Y = two_moons(60)


def test_an_objective_is_printed_in_a_few_lines():
    """The lines name rows, loss, kernel, weighting, and each range with its legend."""
    labels = np.where(Y > 0, "a b", "a/b")
    objective = SpanObjective(
        X,
        labels,
        kernel=RBF(gamma=Choice([0.5, 2.0])),
        weighting=ClassCosts() * SigmoidScore(C=1.0, B=0.5),
        metric=("auc", "error"),
        loo_method="exact",
        scores=np.linspace(0, 1, 60),
    )
    assert repr(objective).splitlines() == [
        "SpanObjective on 60 rows with 2 features",
        "  classes    30 of a b, 30 of a/b",
        "  loss       1 - auc and error, proven along dual paths",
        "  kernel     RBF",
        "  weighting  ClassCosts * SigmoidScore(B=0.5, C=1.0, floor=0.01)",
        "  gamma      one of [0.5, 2.0]",
        "  C_0        from 0.01562 to 1024 on a log scale (cost of class 'a b')",
        "  C_1        from 0.01562 to 1024 on a log scale (cost of class 'a/b')",
        "  A          from 1 to 10",
    ]
    assert "<table>" in objective._repr_html_()


def test_an_objective_is_described_in_sentences():
    """The paragraph says what is minimised, on which rows and over what."""
    objective = SpanObjective(X, Y, kernel="linear", weighting="uniform", metric="f1")
    assert objective.in_words() == (
        'The objective is the loss "1 - f1" of the leave-one-out predictions, estimated by the '
        "span-rule, of a support vector machine with the kernel Linear and the weighting "
        "UniformCost. There are 60 rows with 2 features: 30 of -1.0, 30 of 1.0. The search covers "
        "C from 0.01562 to 1024 on a log scale."
    )
    fixed = SpanObjective(X, Y, kernel=RBF(gamma=0.5), weighting=UniformCost(2.0))
    assert "RBF(gamma=0.5)" in fixed.in_words()
    assert fixed.in_words().endswith("Nothing is searched.")


def test_weights_of_rows_are_mentioned():
    """The weighting of an estimator that was fitted with weights says so."""
    model = SpanSVC(RBF(gamma=1.0), UniformCost(1.0)).fit(X, Y, sample_weight=np.arange(60))
    assert "weighting  UniformCost(C=1.0) * sample weights" in repr(model.objective_)


@pytest.mark.parametrize("kernel", [Linear(), lambda X, Z: X @ Z.T])
def test_parts_of_users_have_names_too(kernel):
    """A kernel that is a function and a weighting of a user are shown by their types."""

    class Own:
        space: ClassVar = {}

        def costs(self, data, params):
            return np.ones(len(data))

    objective = SpanObjective(X, Y, kernel=kernel, weighting=Own())
    assert "weighting  Own" in repr(objective)
    assert type(objective.kernel).__name__ in repr(objective)
