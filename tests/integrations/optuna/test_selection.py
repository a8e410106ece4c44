import optuna
import pytest

from span_hpo import Polynomial, SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_model, best_trial, search_space
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
