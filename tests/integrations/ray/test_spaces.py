from collections import Counter

import numpy as np
import pytest

from span_hpo import RBF, Choice, Float, Int, Polynomial, UniformCost
from tests.integrations.ray.parts import moons

pytest.importorskip("ray")
from span_hpo.integrations.ray import params_of, search_space
from span_hpo.integrations.ray.spaces import config_params, nearest_config

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_domains(cluster):
    """Ray's domains have the ranges of the space; options and steps are equally likely."""
    space = {
        "width": Float(0.5, 2.0, step=0.5),
        "gamma": Float(0.1, 10.0, log=True),
        "degree": Int(1, 5),
        "odd": Int(1, 9, step=2),
        "kind": Choice([RBF(0.5), RBF(1.0)]),
    }

    class Everything:
        def __init__(self):
            self.space = space

        def costs(self, data, params):
            return np.ones(len(data))

    objective = moons(kernel="linear", weighting=Everything())
    domains = search_space(objective)
    rng = np.random.default_rng(0)
    drawn = [
        {name: domain.sample(random_state=rng) for name, domain in domains.items()}
        for _ in range(300)
    ]
    result = [params_of(_Configured(config), objective) for config in drawn]
    assert {params["width"] for params in result} == {0.5, 1.0, 1.5, 2.0}
    assert {params["degree"] for params in result} == {1, 2, 3, 4, 5}
    odd = Counter(params["odd"] for params in result)
    assert set(odd) == {1, 3, 5, 7, 9}
    assert max(odd.values()) < 2 * min(odd.values())
    assert {params["kind"] for params in result} == set(space["kind"].options)
    assert all(0.1 <= params["gamma"] <= 10.0 for params in result)
    logs = np.log([params["gamma"] for params in result])
    assert abs(logs.mean()) < 0.3
    with pytest.raises(ValueError, match="`config` must have the parameters"):
        params_of(_Configured({"gamma": 1.0}), objective)


class _Configured:
    def __init__(self, config):
        self.config = config


def test_numbers_are_moved_into_their_range():
    """Below and above a range the nearest end counts, between steps the nearest step."""
    objective = moons(
        kernel=Polynomial(degree=Int(2, 5), gamma=Float(0.1, 1.0, log=True), coef0=1.0),
        weighting=UniformCost(Choice([1.0, 100.0])),
    )
    inside = {"degree": 3, "gamma": 0.5, "C": 100.0}
    assert nearest_config(objective, inside) == inside
    for degree, gamma, expected in ((0, 5.0, (2, 1.0)), (9, 0.01, (5, 0.1)), (3.6, 0.2, (4, 0.2))):
        moved = nearest_config(objective, {"degree": degree, "gamma": gamma, "C": 1.0})
        assert (moved["degree"], moved["gamma"]) == expected
        assert type(moved["degree"]) is int
        assert moved["C"] == 1.0


def test_configurations_are_read_back():
    """Options that are not plain have labels in a configuration, and are themselves in a fit."""
    options = [RBF(0.5), RBF(1.0)]
    objective = moons(kernel="linear", weighting=_ByKind(options))
    labels = search_space(objective)["kind"].categories
    assert all(isinstance(label, str) for label in labels)
    for label, option in zip(labels, options, strict=True):
        assert config_params(objective, {"kind": label})["kind"] is option
    with pytest.raises(ValueError, match=r"`config` must have one of .* as `kind`, got 'rbf'"):
        config_params(objective, {"kind": "rbf"})


class _ByKind:
    def __init__(self, options):
        self.space = {"kind": Choice(options)}

    def costs(self, data, params):
        return np.ones(len(data))
