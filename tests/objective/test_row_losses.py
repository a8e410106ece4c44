import pickle
import threading

import numpy as np
import pytest

from span_hpo import SpanObjective, UniformCost
from span_hpo.errors import SolverError
from span_hpo.metrics import unpacked
from span_hpo.objective import MOST_TRIALS
from tests.problems import two_moons


def moons(**settings):
    """Return an objective with two hyperparameters on 40 rows."""
    return SpanObjective(*two_moons(40, noise=0.5), weighting=UniformCost(), **settings)


def points(count):
    """Return different hyperparameters, good and bad ones."""
    return [{"gamma": float(gamma), "C": 1.0} for gamma in np.geomspace(0.01, 100, count)]


@pytest.fixture
def fits(monkeypatch):
    """Count the evaluations."""
    counted = []
    original = SpanObjective.evaluate

    def evaluate(self, params, *args, **kwargs):
        counted.append(dict(params))
        return original(self, params, *args, **kwargs)

    monkeypatch.setattr(SpanObjective, "evaluate", evaluate)
    return counted


@pytest.mark.parametrize("metric", ["error", "balanced_error", "log_loss"])
def test_row_losses_are_those_of_the_evaluation(metric):
    """What is kept is the evaluation's, in compact form."""
    objective = moons(metric=metric)
    evaluation = objective.evaluate(points(3)[1])
    rows = objective.row_losses(points(3)[1])
    assert rows.rank == evaluation.rank
    kept = zip(rows.losses, evaluation.row_losses.values, strict=True)
    for found, expected in kept:
        np.testing.assert_allclose(unpacked(found, len(expected)), expected, rtol=1e-3)
    smooth = unpacked(rows.smooth[0], 40).mean(dtype=float)
    assert smooth == pytest.approx(evaluation.smooth_error, rel=1e-3)
    assert rows.size == sum(part.nbytes for part in (*rows.losses, *rows.smooth))


def test_evaluations_of_all_rows_are_kept(fits):
    """After a search nothing is computed again, except for what a search did not see."""
    objective = moons()
    first, second, third = points(3)
    objective(first)
    objective.evaluate(second, rows=20)
    objective.evaluate(third, loo_method="exact")
    assert len(fits) == 3
    kept = objective.row_losses(first)
    assert len(fits) == 3
    assert [params in objective.kept_rows for params in (first, second, third)] == [1, 0, 0]
    assert dict(reversed(first.items())) in objective.kept_rows
    objective.row_losses(second)
    objective.row_losses(second)
    assert len(fits) == 4
    objective.row_losses(third)
    assert fits[3:] == [second, third]
    assert kept.losses[0].nbytes == 5  # a bit for each row


def test_calls_and_certified_evaluations_keep_the_same():
    """Whether the span-rule proves anything leaves the values as they are, to the last bit."""
    for params in points(8):
        called, certified = moons(), moons()
        called(params)
        certified.evaluate(params)
        one, other = called.row_losses(params), certified.row_losses(params)
        assert one.rank == other.rank
        np.testing.assert_array_equal(one.losses[0], other.losses[0])
        np.testing.assert_array_equal(one.smooth[0], other.smooth[0])


def test_pickles_hold_no_row_losses(fits):
    """Another process computes again what it needs, and gets the same."""
    objective = moons()
    (params,) = points(1)
    empty = len(pickle.dumps(objective))
    known = objective.row_losses(params)
    assert len(pickle.dumps(objective)) == empty
    again = pickle.loads(pickle.dumps(objective)).row_losses(params)
    assert len(fits) == 2
    assert again.rank == known.rank
    np.testing.assert_array_equal(again.losses[0], known.losses[0])


def test_the_best_are_kept(fits):
    """Of more evaluations than may be kept, the worst are dropped, in whatever order they come."""
    objective = moons()
    many = points(MOST_TRIALS + 40)
    order = np.random.default_rng(0).permutation(len(many))
    ranks = {number: objective.evaluate(many[number]).rank for number in order.tolist()}
    fits.clear()
    best = sorted(ranks, key=lambda number: ranks[number])[: MOST_TRIALS // 2]
    for number in best:
        objective.row_losses(many[number])
    assert not fits
    worst = max(ranks, key=lambda number: ranks[number])
    objective.row_losses(many[worst])
    assert len(fits) == 1


def test_threads_keep_and_read():
    """Several threads that evaluate and ask at once agree with one."""
    objective, alone = moons(), moons()
    many, found = points(24), {}

    def work(part):
        for number in range(part, 24, 3):
            objective(many[number])
            found[number] = objective.row_losses(many[number]).rank

    threads = [threading.Thread(target=work, args=(part,)) for part in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == {number: alone.row_losses(many[number]).rank for number in range(24)}


def test_what_has_no_row_losses():
    """A metric that is no mean and a failed fit are errors, not numbers."""
    objective = moons(metric="auc")
    objective(points(1)[0])
    message = "`metric` must be a mean of losses of the rows, .* got auc"
    with pytest.raises(ValueError, match=message):
        objective.row_losses(points(1)[0])
    with pytest.raises(ValueError, match="`params` must name exactly"):
        moons().row_losses({})
    hopeless = SpanObjective(
        np.array([[1e200], [-1e200], [0.0], [2.0]]), [0, 1, 0, 1], kernel="linear"
    )
    with pytest.raises(SolverError):
        hopeless.row_losses({"C_0": 1.0, "C_1": 1.0})
