from types import SimpleNamespace

import numpy as np
import pytest

from tests.integrations.ray.parts import moons

pytest.importorskip("ray")
from span_hpo.integrations.ray import (
    best_model,
    best_result,
    finished_results,
    honest_estimate,
    params_of,
)
from span_hpo.selection import honest_estimate_of

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_without_results():
    """Where no trial has seen all rows there is no best one."""
    with pytest.raises(ValueError, match="must have a trial that has seen all 120 rows, got 0"):
        best_result([], moons())


def result(config=None, error=None, **metrics):
    """Return what stands for one trial of a run."""
    return SimpleNamespace(config=config, error=error, metrics=metrics or None)


def test_ties_go_to_the_smoother_then_to_the_smaller_model():
    """Only trials that have seen all rows count, and the earliest of equal ones."""
    results = [
        result(loss=0.0, n_rows=60, smooth_error=0.0, n_support=1),  # not all rows
        result(loss=0.2, n_rows=120, smooth_error=0.1, n_support=3),
        result(loss=0.1, n_rows=120, smooth_error=0.3, n_support=3),
        result(loss=0.1, n_rows=120, smooth_error=0.2, n_support=9),
        result(loss=0.1, n_rows=120, smooth_error=0.2, n_support=5),
        result(loss=0.1, n_rows=120, smooth_error=0.2, n_support=5),
        result(error="lost"),
    ]
    assert best_result(results, moons()) is results[4]


def test_finished_results_have_said_so():
    """Trials that were stopped or are complete have ended; failed ones and others have not."""
    done, running, failed = result(done=True), result(done=False), result(error="lost")
    assert finished_results([running, done, failed]) == [done]


def test_errors_are_counted_and_the_last_one_is_told():
    """Without a best result the message says how many trials failed, and why the last did."""
    results = [result(error="first"), result(loss=0.1, n_rows=60), result(error="too narrow")]
    message = "got 3 trials, 2 of them with errors. The last one: too narrow"
    with pytest.raises(ValueError, match=message):
        best_result(results, moons())


def test_the_best_model_has_the_parameters_of_the_best_result():
    """It is the model that the objective fits with that configuration."""
    objective = moons()
    configs = objective.defaults()[:2]
    results = [
        result(config=config, loss=loss, n_rows=120)
        for config, loss in zip(configs, (0.2, 0.1), strict=True)
    ]
    assert params_of(results[1], objective) == configs[1]
    X = objective.data.X
    np.testing.assert_array_equal(
        best_model(results, objective).decision_function(X),
        objective.fit_model(configs[1]).decision_function(X),
    )
    with pytest.raises(ValueError, match="`config` must have the parameters"):
        params_of(result(config={"C": 1.0}), objective)


def test_honest_estimate_of_results():
    """It counts the results on all rows, and is that of their configurations."""
    objective = moons()
    rng = np.random.default_rng(0)
    found = []
    for _ in range(12):
        config = {name: float(np.exp(rng.normal())) for name in objective.space}
        figures = objective.evaluate(config).figures()
        found.append(result(config=config, loss=objective(config), **figures))
    rows = objective.evaluate(found[0].config, rows=60)
    few = result(config=found[0].config, loss=0.0, **rows.figures())
    estimate = honest_estimate([few, *found, result(error="lost")], moons())
    configs = [one.config for one in found]
    expected = honest_estimate_of(objective, configs, [objective.evaluate(c).rank for c in configs])
    assert (estimate.error, estimate.n_trials) == (expected.error, 12)
    assert estimate.optimistic == best_result(found, objective).metrics["loss"]
    with pytest.raises(ValueError, match="must have a trial that has seen all 120 rows"):
        honest_estimate([few], objective)
    with pytest.raises(ValueError, match="auc has none"):
        honest_estimate(found, moons(metric="auc"))
