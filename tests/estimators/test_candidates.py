"""What a search may try: lists, distributions and dimensions."""

import numpy as np
import optuna
import pytest
from scipy import stats
from sklearn.model_selection import ParameterGrid, ParameterSampler

from span_hpo import Choice, Float, Int
from span_hpo.estimators.candidates import (
    DrawnSpace,
    checked_distributions,
    checked_n_iter,
    drawn_space,
    grid_candidates,
    random_candidates,
)

LISTS = {"C": [1, 10.0], "gamma": np.array([0.1, 1.0]), "class_weight": [None, {0: 2.0}]}
NAMES = ["C", "gamma", "class_weight", "svc__C", "svc"]


def test_a_grid_is_that_of_scikit_learn():
    """All combinations come in the order of ``ParameterGrid``, also of several dictionaries."""
    parts = checked_distributions([LISTS, {"C": (5,)}], NAMES)
    assert grid_candidates(parts) == list(ParameterGrid([LISTS, {"C": (5,)}]))


@pytest.mark.parametrize("count", [3, 100])
def test_random_candidates_are_those_of_scikit_learn(count):
    """The same seed gives the candidates of ``ParameterSampler``, with or without replacement."""
    distributions = {**LISTS, "C": stats.loguniform(0.1, 10)}
    for given, most in ((LISTS, 8), (distributions, count)):
        found = random_candidates(checked_distributions(given, NAMES), count, 3)
        assert found == list(ParameterSampler(given, min(count, most), random_state=3))


def test_dimensions_are_drawn_at_random():
    """Our dimensions and Optuna's distributions have no `rvs`, but can be drawn as well."""
    space = {
        "C": Float(0.1, 10.0, log=True),
        "degree": Int(1, 3),
        "gamma": optuna.distributions.FloatDistribution(0.0, 1.0),
        "kernel": Choice(["rbf", "poly"]),
    }
    found = random_candidates(checked_distributions(space, [*space]), 200, 0)
    assert found == random_candidates([space], 200, 0)
    assert {one["kernel"] for one in found} == {"rbf", "poly"}
    assert {one["degree"] for one in found} == {1, 2, 3}
    assert 0.35 < np.mean([one["C"] < 1 for one in found]) < 0.65
    assert all(0 <= one["gamma"] <= 1 for one in found)


@pytest.mark.parametrize(
    ("distribution", "dimension"),
    [
        (stats.loguniform(0.1, 10), Float(0.1, 10.0, log=True)),
        (stats.loguniform(1, 10, scale=2), Float(2.0, 20.0, log=True)),
        (stats.uniform(2, 3), Float(2.0, 5.0)),
        (stats.randint(1, 5), Int(1, 4)),
        (stats.randint(1, 5, loc=2), Int(3, 6)),
        (optuna.distributions.IntDistribution(1, 9, step=2), Int(1, 9, step=2)),
        ([1, 2], Choice([1, 2])),
    ],
)
def test_distributions_become_their_dimensions(distribution, dimension):
    """What is uniform, log-uniform or a list is translated exactly, shifted and scaled ones too."""
    space = DrawnSpace.of({"C": distribution})
    assert space.dimensions == {"C": dimension}
    assert space.candidate({"C": 3}) == {"C": 3}


@pytest.mark.parametrize(
    "distribution", [stats.norm(3, 2), stats.loguniform(1, 10, loc=3), stats.poisson(4)]
)
def test_other_distributions_are_drawn_by_their_quantiles(distribution):
    """Uniform quantiles give values of the distribution; those of counts are whole numbers."""
    space = DrawnSpace.of({"C": distribution})
    part = space.dimensions["C"]
    rng = np.random.default_rng(0)
    drawn = [space.candidate({"C": part.sample(rng)})["C"] for _ in range(500)]
    assert np.isfinite([space.value("C", end) for end in (part.low, part.high)]).all()
    if hasattr(distribution, "pmf"):
        assert all(isinstance(value, int) for value in drawn)
        assert abs(np.mean(drawn) - distribution.mean()) < 0.3
    else:
        assert stats.kstest(drawn, distribution.cdf).pvalue > 0.01


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ([], ValueError, "at least one dictionary, because an empty list has no candidates"),
        (3, TypeError, "`param_distributions` must be a dictionary .*, got 3"),
        ([3], TypeError, "must hold dictionaries .*, got 3 in the list"),
        ({"C": []}, ValueError, "at least one value for 'C', got none"),
        ({"C": np.array([])}, ValueError, "at least one value for 'C', got none"),
        ({"C": 3.0}, TypeError, "a list of values or a distribution .*, got 3.0 for 'C'"),
        ({"kernel": "rbf"}, ValueError, "must name parameters of the estimator, got 'kernel'"),
        ({"C": "rbf"}, TypeError, "got 'rbf' for 'C'"),
        ({"C": np.eye(2)}, TypeError, "a list of values or a distribution"),
        ({"svc__c": [1]}, ValueError, "got 'svc__c'. Did you mean 'svc__C'?"),
        ({3: [1]}, TypeError, "must have names as keys, got 3"),
    ],
)
def test_what_cannot_be_searched_is_refused(given, kind, message):
    """One sentence says what is wrong with the lists, the names or the whole."""
    with pytest.raises(kind, match=message):
        checked_distributions(given, NAMES)


def test_parameters_of_a_step_that_is_searched_are_allowed():
    """A step may be replaced by one that has other parameters."""
    given = {"svc": ["passthrough"], "svc__anything": [1]}
    assert checked_distributions(given, NAMES) == [given]


def test_each_search_names_the_one_to_use_instead():
    """A grid takes lists only, and samplers take one dictionary of distributions with quantiles."""

    class Drawn:
        def rvs(self, random_state=None):
            return 1.0

    with pytest.raises(ValueError, match=r"got scipy's loguniform for 'C'. Use search='random'"):
        grid_candidates([{"C": stats.loguniform(1, 2)}])
    with pytest.raises(ValueError, match=r"got Float\(.*\) for 'C'. Use search='random' or 'tpe'"):
        grid_candidates([{"C": Float(1, 2)}])
    with pytest.raises(ValueError, match=r"one dictionary for search='tpe', got a list of 2. Use"):
        drawn_space([LISTS, LISTS], "tpe")
    with pytest.raises(
        ValueError, match=r"a method `ppf` for search='qmc', .* Use search='random'"
    ):
        drawn_space([{"C": Drawn()}], "qmc")
    assert random_candidates([{"C": Drawn()}], 2, 0) == [{"C": 1.0}] * 2


@pytest.mark.parametrize("count", [0, -1, 2.5, True, None])
def test_the_number_of_candidates_is_checked(count):
    """At least one candidate is tried."""
    with pytest.raises(ValueError, match="`n_iter` must be a whole number of at least 1"):
        checked_n_iter(count)
