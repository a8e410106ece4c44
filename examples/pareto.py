"""Trade the error of a model against its number of support vectors.

The number of support vectors is not a metric, because metrics see only leave-one-out values. But it
is part of an `Evaluation`, so that an objective function of your own can return both. In a study
with one direction, `max_support` limits the number instead.
"""

import optuna
from sklearn.datasets import load_digits

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial, suggest_params

X, digits = load_digits(return_X_y=True)
objective = SpanObjective(X[:600] / 16, digits[:600] % 2)  # even or odd

optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    directions=["minimize", "minimize"], sampler=optuna.samplers.TPESampler(seed=0)
)


def error_and_size(trial):
    """Return the loss and the number of support vectors of a trial."""
    evaluation = objective.evaluate(suggest_params(trial, objective))
    return evaluation.loss, evaluation.n_support


study.optimize(error_and_size, n_trials=150)
print("Pareto front\nsupport vectors   leave-one-out error")
front = {tuple(trial.values) for trial in study.best_trials}  # equal pairs are printed once
for error, n_support in sorted(front, reverse=True):
    print(f"{n_support:15.0f}{error:22.4f}")

LIMIT = 120
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(OptunaObjective(objective, max_support=LIMIT), n_trials=100)
best = best_trial(study)
support = best.user_attrs["n_support"]
print(f"\nat most {LIMIT} support vectors: leave-one-out error {best.value:.4f} with {support}")
