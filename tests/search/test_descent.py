"""Searches by gradients."""

import itertools
import json
import math
import subprocess
import sys

import numpy as np
import pytest

from span_hpo import (
    ARD,
    RBF,
    Float,
    Int,
    Linear,
    RadiusMargin,
    SpanObjective,
    UniformCost,
    minimize,
)
from span_hpo.errors import SolverError
from span_hpo.objective import ValueAndGradient
from tests.problems import two_moons

METHODS = ("adam", "l-bfgs", "bfgs-projected")


def objective_of(count=60, noise=0, seed=0, **options):
    X, y = two_moons(count, seed=seed)
    X = np.column_stack([X, np.random.default_rng(seed).normal(size=(count, noise))])
    return SpanObjective(X, y, **{"metric": "smooth_error", **options})


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("weighting", ["uniform", "class"])
def test_it_is_as_good_as_a_fine_grid(method, weighting):
    """A search comes within 0.01 of the best loss of a fine grid in at most 60 evaluations."""
    objective = objective_of(weighting=weighting)
    found = minimize(objective, method=method)
    points = [
        dict(zip(objective.space, values, strict=True))
        for values in itertools.product(*objective.grid(7).values())
    ]
    assert found.loss <= min(map(objective, points)) + 0.01
    assert found.loss == pytest.approx(objective(found.params), abs=1e-9)
    assert found.n_evaluations <= 60


@pytest.mark.parametrize("method", ["l-bfgs", "bfgs-projected"])
def test_the_minimum_of_a_bound_has_no_slope(method):
    """At the minimum of a bound, no slope leads to lower values within the box."""
    X, y = two_moons(60)
    objective = RadiusMargin(X, y, bound="l2")
    found = minimize(objective, method=method, max_evaluations=100)
    slopes = objective.value_and_gradient(found.params).gradient
    for name, part in objective.space.items():
        value = found.params[name]
        slope = slopes[name] * value / found.value  # of the logarithms
        at_low, at_high = math.isclose(value, part.low), math.isclose(value, part.high)
        assert abs(slope) < 1e-3 or (at_low and slope > 0) or (at_high and slope < 0)


def test_it_is_the_same_in_every_run():
    """The same seed gives the same path, and another seed a different one from the same point."""
    objective = objective_of(noise=3, kernel=ARD())
    first, second = (minimize(objective, n_starts=3, max_evaluations=20) for _ in range(2))
    assert first.path == second.path
    other = minimize(objective, n_starts=3, max_evaluations=20, seed=1)
    assert other.path != first.path
    assert other.path[0] == first.path[0]


def test_it_is_the_same_in_another_process():
    """A search has the same values in every process."""
    code = """
import json, numpy as np
from span_hpo import ARD, SpanObjective, minimize
rng = np.random.default_rng(0)
X = rng.normal(size=(50, 5)); y = (X[:, 0] + 0.3 * rng.normal(size=50) > 0).astype(int)
found = minimize(SpanObjective(X, y, kernel=ARD(), metric="smooth_error"), max_evaluations=25)
print(json.dumps([step.value for step in found.path]))
"""
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", code], stdout=-1, check=True).stdout)
        for _ in range(2)
    ]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("most", [1, 2, 7, 30])
def test_it_makes_no_more_evaluations_than_allowed(method, most):
    """No method makes more evaluations than it is allowed, and Adam uses all of them."""
    found = minimize(objective_of(noise=2, kernel=ARD()), method=method, max_evaluations=most)
    assert 1 <= found.n_evaluations <= most
    if method == "adam":
        assert found.n_evaluations == most
        assert found.reason == "All evaluations have been used."


def test_a_start_is_where_it_begins():
    """A search with a start evaluates the start first, and explores nothing before it."""
    objective = objective_of()
    start = {"C_-1.0": 3.0, "C_1.0": 0.7, "gamma": 2.5}
    start = {name: start.get(name, 1.0) for name in objective.space}
    found = minimize(objective, start, max_evaluations=10)
    assert found.path[0].params == pytest.approx(start)
    assert found.n_evaluations == 10


def test_several_starts_share_the_first_one_and_keep_the_best():
    """A search with several starts explores as with one, evaluates more, and keeps the best."""
    objective = objective_of(noise=4, kernel=ARD())
    one = minimize(objective, max_evaluations=24)
    many = minimize(objective, max_evaluations=24, n_starts=4)
    explored = 24 - 17  # 4 with equal and 3 with aligned widths
    assert many.path[:explored] == one.path[:explored]
    assert many.n_evaluations > one.n_evaluations
    least = min(step.value for step in many.path)
    assert many.comparison.apart.value == least
    chosen = many.comparison.apart if many.comparison.is_worth_it else many.comparison.alike
    assert (many.value, many.params) == (chosen.value, chosen.params)


class Valley:
    """``x^2``, without a gradient to the left of -1, where a false valley is deeper."""

    def __init__(self):
        self.space = {"x": Float(-5.0, 5.0)}
        self.visited = []

    def value_and_gradient(self, params):
        x = params["x"]
        self.visited.append(x)
        if x < -1:
            return ValueAndGradient(x - 9, None, None, "a cliff")
        return ValueAndGradient(x**2, {"x": 2 * x}, None)


def test_starts_without_a_gradient_are_given_up():
    """However low a start without a gradient is, the others are followed to their ends."""
    valley = Valley()
    found = minimize(valley, {"x": 0.5}, n_starts=12, seed=3, max_evaluations=20)
    starts = [x for x in valley.visited if x < -1]
    assert starts
    assert len(starts) == len(set(starts))
    assert found.reason == "All evaluations have been used."
    assert min(abs(x) for x in valley.visited) < 0.5


@pytest.mark.parametrize("method", METHODS)
def test_the_start_is_named_where_it_has_no_gradient(method):
    """Every method says that it is the start that has no gradient."""
    found = minimize(Valley(), {"x": -2.0}, method=method)
    assert found.reason == "There is no gradient at the start: a cliff"


def test_whole_numbers_are_held_at_the_start():
    """A whole number keeps its value at the start, while real numbers move."""
    from span_hpo import Polynomial

    X, y = two_moons(40)
    kernel = Polynomial(degree=Int(1, 4), gamma=Float(0.1, 2.0, log=True), coef0=1.0)
    objective = SpanObjective(X, y, kernel=kernel, metric="smooth_error")
    start = {**objective.defaults()[0], "degree": 3}
    found = minimize(objective, start, max_evaluations=8)
    assert {step.params["degree"] for step in found.path} == {3}
    assert len({step.params["gamma"] for step in found.path}) > 1


@pytest.mark.parametrize("method", METHODS)
def test_a_start_without_a_gradient_is_named(method):
    """All support vectors are bounded where costs are tiny."""
    X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    objective = SpanObjective(X, y, kernel="linear", weighting="uniform", metric="smooth_error")
    found = minimize(objective, {"C": 0.02}, method=method)
    assert "no gradient" in found.reason.lower()
    assert found.params == pytest.approx({"C": 0.02})
    assert found.path[0].reason.startswith("The fit has 0 in-bound support vectors")


def test_tiny_costs_are_left_by_the_walk():
    """With weights of rows that add up to 1, the default costs have no gradient."""
    X, y = two_moons(60)

    class Share:
        space = {}  # noqa: RUF012

        def costs(self, data, params):
            return np.full(len(data), 1 / len(data))

    objective = SpanObjective(
        X, y, weighting=UniformCost(Float(1e-4, 1e5, log=True)) * Share(), metric="smooth_error"
    )
    assert minimize(objective).loss < 0.6 * objective.evaluate(objective.defaults()[-1]).loss


def test_several_classes_and_many_duplicates():
    """A search on three classes with many duplicates of rows finds a finite loss."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.integers(3, size=(30, 3)).astype(float), 3, axis=0)
    y = np.repeat(rng.integers(3, size=30), 3)
    found = minimize(SpanObjective(X, y, kernel=ARD(), metric="smooth_error"), max_evaluations=20)
    assert math.isfinite(found.loss)


def test_features_of_any_size():
    """Widths over ten orders of magnitude are found where the walk begins at the median."""
    X, y = two_moons(60)
    scale = np.array([1e-5, 1e5])
    plain = minimize(objective_of(weighting="uniform"))
    scaled = SpanObjective(X * 1e6, y, weighting="uniform", metric="smooth_error")
    assert minimize(scaled).loss == pytest.approx(plain.loss, abs=0.003)
    uneven = SpanObjective(X * scale, y, kernel=ARD(), metric="smooth_error")
    assert math.isfinite(minimize(uneven, max_evaluations=20).loss)


def test_it_finds_the_features_that_matter():
    """The class is the sign of a product of two of twenty features: isotropic models fail."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 20))
    y = X[:, 0] * X[:, 1] > 0
    train, test = slice(0, 300), slice(300, 600)
    objective = SpanObjective(X[train], y[train], kernel=ARD(), metric="smooth_error")
    found = minimize(objective)
    widths = [found.params[f"gamma_{k}"] for k in range(20)]
    assert set(np.argsort(widths)[-2:]) == {0, 1}
    error = np.mean(objective.fit_model(found.params).predict(X[test]) != y[test])
    equal = SpanObjective(X[train], y[train], kernel=RBF(), metric="smooth_error")
    isotropic = equal.fit_model(minimize(equal).params)
    assert error < 0.12 < 0.2 < np.mean(isotropic.predict(X[test]) != y[test])


def test_rows_and_metric_are_passed_on():
    """A search evaluates the metric and the number of rows that it is given."""
    objective = objective_of(count=100)
    found = minimize(objective, max_evaluations=6, rows=40, metric="hinge")
    assert found.evaluation.n_rows == 40
    expected = objective.value_and_gradient(found.params, 40, metric="hinge")
    assert found.loss == pytest.approx(expected.loss)


def test_timeout_ends_the_search():
    """A search whose time is up after its first evaluation ends there, and says so."""
    found = minimize(objective_of(count=200, noise=5, kernel=ARD()), timeout=1e-6)
    assert found.n_evaluations == 1
    assert found.reason == "The time is up."


def test_progress_bar(capsys):
    """A progress bar is shown on standard error only if it is asked for."""
    minimize(objective_of(count=30), max_evaluations=5, progress_bar=True)
    assert "minimize" in capsys.readouterr().err
    minimize(objective_of(count=30), max_evaluations=5)
    assert capsys.readouterr().err == ""


class Interrupted:
    """An objective that is interrupted after some evaluations."""

    def __init__(self, objective, after):
        self.objective, self.after = objective, after

    def __getattr__(self, name):
        return getattr(self.objective, name)

    def value_and_gradient(self, params, **options):
        if self.after == 0:
            raise KeyboardInterrupt
        self.after -= 1
        return self.objective.value_and_gradient(params, **options)


@pytest.mark.parametrize("method", METHODS)
def test_ctrl_c_keeps_what_was_found(method):
    """An interrupted search warns, and returns what its finished evaluations have found."""
    with pytest.warns(UserWarning, match="interrupted after 12 evaluations"):
        found = minimize(Interrupted(objective_of(), 12), method=method)
    assert found.n_evaluations == 12
    assert found.reason == "The search was interrupted."


def test_ctrl_c_in_the_first_evaluation_is_raised():
    """An interruption of the first evaluation is raised, because there is nothing to return."""
    with pytest.raises(KeyboardInterrupt):
        minimize(Interrupted(objective_of(), 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "newton"}, "`method` must be one of"),
        ({"method": None}, "`method` must be one of"),
        ({"penalty": -1.0}, "`penalty`"),
        ({"penalty": math.nan}, "`penalty`"),
        ({"n_starts": 0}, "`n_starts`"),
        ({"n_starts": 2, "method": "l-bfgs"}, "`n_starts` must be 1"),
        ({"max_evaluations": 0}, "`max_evaluations`"),
        ({"timeout": 0}, "`timeout`"),
        ({"seed": -1}, "`seed`"),
        ({"metric": "error"}, "error"),
        ({"metric": "nonsense"}, "nonsense"),
        ({"start": {"C": 1.0}}, "gamma"),
        ({"start": {"C": 1.0, "gamma": 1.0, "delta": 2.0}}, "delta"),
        ({"start": {"C": 1e9, "gamma": 1.0}}, "`start` must have a value within"),
    ],
)
def test_wrong_arguments_are_named(options, message):
    """A wrong argument is refused, and the error names it or its value."""
    with pytest.raises((TypeError, ValueError), match=message):
        minimize(objective_of(weighting="uniform"), **options)


def test_a_metric_without_a_derivative_is_named():
    """A metric without a derivative is refused, and the error names the metric."""
    with pytest.raises(ValueError, match="auc"):
        minimize(objective_of(metric="auc"))


def test_a_kernel_without_a_derivative_is_named():
    """A kernel without a derivative is refused, and the error says that it needs one."""
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Own(RBF):
        def gradient(self, statistic, K, weights, **values):
            return super(RBF, self).gradient(statistic, K, weights, **values)

        def total_gradient(self, *args, **values):
            return super(RBF, self).total_gradient(*args, **values)

    with pytest.raises(ValueError, match="`kernel` must have a derivative"):
        minimize(objective_of(kernel=Own()), max_evaluations=3)


def test_a_space_without_real_numbers_is_refused():
    """A search is refused where the objective has no real number to move."""
    with pytest.raises(ValueError, match="at least one real number"):
        minimize(objective_of(kernel=Linear(), weighting=UniformCost(1.0)))


def test_an_objective_without_centres_needs_a_start():
    """An objective without centres is refused without a start, and minimised from one."""

    class Bowl:
        space = {"a": Float(-3.0, 3.0)}  # noqa: RUF012

        def value_and_gradient(self, params):
            from span_hpo import ValueAndGradient

            a = params["a"]
            return ValueAndGradient((a - 1) ** 2, {"a": 2 * (a - 1)}, None)

    with pytest.raises(ValueError, match="`start` must be given"):
        minimize(Bowl())
    for method in METHODS:
        found = minimize(Bowl(), {"a": -2.0}, method=method, max_evaluations=80)
        assert found.params["a"] == pytest.approx(1.0, abs=0.02)


def test_a_first_fit_that_fails_is_an_error():
    """A search whose first fit fails raises the error of the solver."""
    X, y = two_moons(30)
    objective = SpanObjective(X * 1e160, y, kernel="linear", metric="smooth_error")
    with pytest.raises(SolverError, match="overflow"):
        minimize(objective, objective.defaults()[0])
