import pickle

import optuna
import pytest
from optuna.trial import TrialState

from span_hpo import Polynomial, SpanObjective
from span_hpo.integrations.optuna import (
    OptunaObjective,
    best_model,
    best_trial,
    honest_estimate,
    search_space,
)
from span_hpo.selection import honest_estimate_of
from tests.integrations.optuna.parts import study_of
from tests.problems import two_moons


def test_ties_go_to_the_smoother_then_to_the_smaller_model():
    """Equal losses are common with the metric "error"."""
    study = study_of()

    def add(value, smooth_error, n_support, constraint=0.0):
        study.add_trial(
            optuna.create_trial(
                value=value,
                user_attrs={"smooth_error": smooth_error, "n_support": n_support},
                constraints={"n_support": constraint},
            )
        )

    add(0.2, 0.1, 3)
    add(0.1, 0.3, 3)
    add(0.1, 0.2, 9)
    add(0.1, 0.2, 5)
    add(0.1, 0.2, 5)
    add(0.1, 0.1, 2, constraint=1.0)
    assert best_trial(study).number == 3


def test_rank_of_evaluations_follows_the_same_rule(objective):
    """`Evaluation.rank` is what `best_trial` sorts by."""
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=20)
    evaluations = [objective.evaluate(trial.params) for trial in study.trials]
    best = min(evaluations, key=lambda evaluation: evaluation.rank)
    assert best.params == best_trial(study).params


def test_a_study_of_failures_tells_why():
    """Without a single model the reason of the last failure is named."""
    objective = SpanObjective(*two_moons(40), kernel=Polynomial(gamma=1e200))
    study = study_of()
    study.optimize(OptunaObjective(objective), n_trials=2)
    with pytest.raises(ValueError, match=r"0 of them complete. The last failure: .*overflow"):
        best_trial(study)


def test_trials_of_something_else_are_named(objective):
    """A study of other parameters gives no model."""
    study = study_of()
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(ValueError, match=r"`trial` must have the parameters \['gamma', "):
        best_model(study, objective)
    study = study_of(direction="maximize")
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1), n_trials=1)
    with pytest.raises(ValueError, match="`study` must minimise, got maximize"):
        best_trial(study)
    with pytest.raises(TypeError, match="`objective` must be a SpanObjective, got Study"):
        search_space(study)
    assert search_space(OptunaObjective(objective)) == search_space(objective)


def kept_estimate(study, objective):
    """Return the estimate as numbers that can be compared."""
    estimate = honest_estimate(study, objective)
    return estimate.error, estimate.interval, estimate.optimistic, estimate.n_trials


def test_honest_estimate_is_the_same_in_another_process():
    """An objective that has kept nothing, as after a resume, gives the same number."""
    objective, study = SpanObjective(*two_moons(80, noise=0.5)), study_of()
    study.optimize(OptunaObjective(objective), n_trials=25)
    found = kept_estimate(study, objective)
    assert found[2:] == (study.best_value, 25)
    assert found[0] > study.best_value
    again = pickle.loads(pickle.dumps(objective))
    assert kept_estimate(study, again) == found
    assert kept_estimate(study, OptunaObjective(again)) == found


def test_only_complete_and_feasible_trials_on_all_rows_count():
    """Pruned, failed, running and infeasible trials are outside of the estimate."""
    objective = SpanObjective(*two_moons(80, noise=0.5))
    study = study_of(pruner=optuna.pruners.MedianPruner(n_startup_trials=2))
    function = OptunaObjective(objective, budgets=(0.25, 0.5, 1.0), max_support=55)
    study.optimize(function, n_trials=40)
    study.add_trial(optuna.create_trial(state=TrialState.FAIL))
    study.ask(search_space(objective))
    states = {trial.state for trial in study.trials}
    assert states == {
        TrialState.COMPLETE,
        TrialState.PRUNED,
        TrialState.FAIL,
        TrialState.RUNNING,
    }
    complete = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    feasible = [trial for trial in complete if trial.constraints["n_support"] <= 0]
    assert 0 < len(feasible) < len(complete)
    points = [trial.params for trial in feasible]
    ranks = [objective.evaluate(point).rank for point in points]
    expected = honest_estimate_of(objective, points, ranks)
    assert kept_estimate(study, objective) == (
        expected.error,
        expected.interval,
        best_trial(study).value,
        len(feasible),
    )


def test_what_has_no_honest_estimate(objective):
    """Metrics that are no means, and studies without trials on all rows, say so."""
    study = study_of()
    with pytest.raises(ValueError, match="`study` must have a trial that is complete"):
        honest_estimate(study, objective)
    study.optimize(OptunaObjective(objective, budgets=(0.25, 0.5)), n_trials=2)
    with pytest.raises(ValueError, match="`study` must have a trial on all 80 rows, got 2"):
        honest_estimate(study, objective)
    with pytest.raises(ValueError, match="auc has none"):
        honest_estimate(study, SpanObjective(*two_moons(80), metric="auc"))
    with pytest.raises(ValueError, match="must have the same data and losses in all its trials"):
        honest_estimate(study, SpanObjective(*two_moons(60)))
