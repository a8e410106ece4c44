import itertools
import pickle
import time

import numpy as np
import pytest

from span_hpo import SpanObjective, UniformCost
from span_hpo.calibration import calibrated, loo_sigmoids
from span_hpo.metrics import METRICS
from span_hpo.objective import MOST_TRIALS
from span_hpo.selection import (
    check_is_mean,
    ensemble_of,
    honest_ensemble,
    honest_estimate,
    honest_estimate_of,
)
from tests.problems import two_moons
from tests.selection.tables import table_of

MEANS = ["error", "balanced_error", "smooth_error", "hinge", "span_functional", "log_loss", "brier"]


def searched(count=30, **settings):
    """Return an objective, points and their ranks."""
    objective = SpanObjective(*two_moons(60, noise=0.5), weighting=UniformCost(), **settings)
    rng = np.random.default_rng(0)
    points = [
        {"gamma": float(np.exp(rng.normal())), "C": float(np.exp(rng.normal()))}
        for _ in range(count)
    ]
    return objective, points, [objective.evaluate(point).rank for point in points]


def test_the_estimate_of_an_ensemble_is_that_of_its_arrays():
    """Row losses and leave-one-out probabilities of all points are what it is computed from."""
    objective, points, ranks = searched()
    evaluations = [objective.evaluate(point, complete=True) for point in points]
    found = np.stack(
        [
            calibrated(loo_sigmoids(one.loo, one.metric_weight), one.loo.decision_values)
            for one in evaluations
        ]
    )
    y, rows = objective.data.y, np.arange(len(objective.data))
    f = np.stack([one.loo.decision_values for one in evaluations])
    smooth = 1 / (1 + np.exp(4 * y * f))
    expected = honest_ensemble(
        table_of(y * f <= 0),
        table_of(smooth),
        np.array([one.n_support for one in evaluations]),
        found,
        objective.data.codes,
        np.ones(len(rows)),
    )
    estimate = honest_estimate_of(objective, points, ranks, ensemble=True)
    assert estimate.error == pytest.approx(expected.error)
    assert estimate.optimistic == pytest.approx(
        ensemble_of(objective, sorted_points(points, ranks)).loo_error
    )
    hinge = SpanObjective(objective.data.X, y, metric="hinge")
    with pytest.raises(ValueError, match=r"for an honest estimate of an ensemble, got hinge"):
        honest_estimate_of(hinge, points, ranks, ensemble=True)


def sorted_points(points, ranks):
    """Return the points, best first."""
    return [points[number] for number in np.lexsort(np.array(ranks).T[::-1])]


def test_estimate_of_the_errors_of_a_search():
    """It is that of the table of errors, which is made here from the evaluations."""
    objective, points, ranks = searched()
    found = honest_estimate_of(objective, points, ranks)
    evaluations = [objective.evaluate(point) for point in points]
    margins = np.array([e.loo.y * e.loo.decision_values for e in evaluations])
    tables = table_of(margins <= 0), table_of(1 / (1 + np.exp(4 * margins)))
    n_support = np.array([evaluation.n_support for evaluation in evaluations])
    expected = honest_estimate(*tables, n_support, np.ones(60))
    assert found.error == expected.error
    assert found.interval == expected.interval
    assert found.optimistic == min(ranks)[0] == expected.optimistic
    assert (found.n_trials, found.n_rows, found.loss_name) == (30, 60, "error")


@pytest.mark.parametrize("metric", MEANS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_mean_has_an_estimate(metric, classes):
    """With weights and with several classes, it is close to the losses of the good trials."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(45, 2))
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=45), np.linspace(-0.5, 0.5, classes - 1))
    objective = SpanObjective(
        X, y, weighting=UniformCost(), metric=metric, metric_weight=rng.uniform(0.5, 2, 45)
    )
    points = [{"gamma": gamma, "C": C} for gamma in (0.1, 0.5, 2.0) for C in (0.1, 1.0, 10.0)]
    ranks = [objective.evaluate(point).rank for point in points]
    found = honest_estimate_of(objective, points, ranks)
    losses = sorted(rank[0] for rank in ranks)
    assert found.optimistic == losses[0]
    assert losses[0] - 0.02 <= found.error <= losses[-1]
    assert found.interval[0] < found.error < found.interval[1]
    assert found.loss_name == metric


def test_other_metrics_have_none():
    """Metrics that are no means, and functions of users, are refused by name."""
    names = [name for name in METRICS if name not in MEANS]
    for metric in (*names, lambda y, f: 0.5):
        objective = SpanObjective(*two_moons(20), metric=metric)
        name = metric if isinstance(metric, str) else "<lambda>"
        with pytest.raises(ValueError, match=f"`metric` must be a mean of .*; {name} has none"):
            honest_estimate_of(objective, [], [])
    check_is_mean(SpanObjective(*two_moons(20)))


@pytest.mark.parametrize("ensemble", [False, True])
@pytest.mark.parametrize(("name", "wrong"), [("seed", -1), ("seed", "a"), ("level", 2)])
def test_wrong_settings_are_named_before_the_fits(name, wrong, ensemble, monkeypatch):
    """No trial is evaluated again for an estimate that cannot be made."""
    objective, points, ranks = searched()

    def refuse(*arguments, **settings):
        raise AssertionError("a trial was evaluated")

    monkeypatch.setattr(SpanObjective, "evaluate", refuse)
    monkeypatch.setattr(SpanObjective, "evaluate_all", refuse)
    with pytest.raises(ValueError, match=f"`{name}` must be .*, got"):
        honest_estimate_of(objective, points, ranks, ensemble=ensemble, **{name: wrong})


def test_no_points():
    """Without a trial there is nothing to estimate."""
    with pytest.raises(ValueError, match="`points` must hold at least one trial on all rows"):
        honest_estimate_of(SpanObjective(*two_moons(20)), [], [])


def test_the_best_of_very_many_points_count():
    """Points that are worse than hundreds of others change nothing but the number of trials."""
    objective, points, ranks = searched(MOST_TRIALS + 60)
    best = sorted(range(len(points)), key=lambda number: (ranks[number], number))[:MOST_TRIALS]
    kept = sorted(best)
    all_of_them = honest_estimate_of(objective, points, ranks)
    some = honest_estimate_of(
        objective, [points[number] for number in kept], [ranks[number] for number in kept]
    )
    assert all_of_them.error == some.error
    assert (all_of_them.n_trials, some.n_trials) == (MOST_TRIALS + 60, MOST_TRIALS)


def test_long_computations_are_reported(monkeypatch):
    """What takes long to evaluate again is said once; what is kept takes no time."""
    objective, points, ranks = searched(5)
    lines = []
    honest_estimate_of(objective, points, ranks, report=lines.append)
    seconds = itertools.count(0.0, 20.0)  # every look at the clock comes 20 seconds after the last
    monkeypatch.setattr(time, "perf_counter", lambda: next(seconds))
    again = pickle.loads(pickle.dumps(objective))
    again(points[3])
    honest_estimate_of(objective, points, ranks, report=lines.append)
    assert not lines
    honest_estimate_of(again, points, ranks, report=lines.append)
    (line,) = lines
    assert line.startswith("The honest estimate evaluates 4 trials of other processes again, ")
