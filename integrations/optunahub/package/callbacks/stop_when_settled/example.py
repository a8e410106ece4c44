"""Stop a study when its last 40 finished trials have brought no better value."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """Return a value that is the same for many hyperparameters."""
    x = trial.suggest_float("x", -5, 5)
    return float(round(x**2))


# A copy on this machine is loaded by
# optunahub.load_local_module("callbacks/stop_when_settled", registry_root="package").
module = optunahub.load_module("callbacks/stop_when_settled")
study = optuna.create_study()
study.optimize(objective, n_trials=1000, callbacks=[module.StopWhenSettled(patience=40)])
print(f"{len(study.trials)} trials, best value {study.best_value}")
