import numpy as np
import pytest

from span_hpo import (
    ClassCosts,
    GroupCosts,
    ImbalanceCost,
    KnotScore,
    LabelConfidence,
    PowerScore,
    SigmoidScore,
    SpanObjective,
    SpanSVC,
    UniformCost,
)
from span_hpo.weighting.names import WEIGHTINGS, as_weighting
from tests.problems import two_moons

WRITTEN = {
    "class": ClassCosts(),
    "uniform": UniformCost(),
    "imbalance": ImbalanceCost(),
    "sigmoid": SigmoidScore(),
    "power": PowerScore(),
    "knots": KnotScore(),
    "groups": GroupCosts(),
    "confidence": LabelConfidence(),
    "class*sigmoid": ClassCosts() * SigmoidScore(C=1.0),
    "class*power": ClassCosts() * PowerScore(C=1.0),
    "class*knots": ClassCosts() * KnotScore(C=1.0),
    "class*groups": ClassCosts() * GroupCosts(C=1.0),
    "class*confidence": ClassCosts() * LabelConfidence(C=1.0),
}


@pytest.mark.parametrize("word", WEIGHTINGS)
def test_words_stand_for_weightings(word):
    """An objective and an estimator take each word for the weighting that it stands for."""
    assert as_weighting(word) == WRITTEN[word]
    X, y = two_moons(40)
    scores = np.linspace(0.1, 1.0, len(y))
    groups = np.arange(len(y)) % 3
    by_word, written = (
        SpanObjective(X, y, scores=scores, groups=groups, weighting=weighting)
        for weighting in (word, WRITTEN[word])
    )
    assert by_word.space == written.space
    assert by_word.description() == written.description()
    weight = np.linspace(0.5, 2.0, len(y))
    model = SpanSVC(weighting=word, n_trials=2, random_state=0)
    model.fit(X, y, scores=scores, groups=groups, sample_weight=weight)
    assert sorted(model.best_params_) == sorted(written.space)
    assert model.weighting == word  # arguments of the constructor are kept as they are


@pytest.mark.filterwarnings("ignore::span_hpo.ScalingWarning")  # few rows
def test_what_is_no_weighting_is_named():
    """Unknown words list the known ones, and objects without costs are rejected."""
    assert as_weighting(None) == ClassCosts()
    given = UniformCost()
    assert as_weighting(given) is given
    with pytest.raises(ValueError, match=r"`weighting` must be one of .*'uniform'.*, got 'costs'"):
        SpanSVC(weighting="costs").fit(*two_moons(20))
    with pytest.raises(TypeError, match="`weighting` must have `space`"):
        as_weighting(UniformCost)
