"""Few errors or a small model: the trade-off between error and number of support vectors.

The number of support vectors is no metric, since metrics see leave-one-out values only. It is part
of an `Evaluation`, however, so that a function of a trial can return both. With one direction,
`max_support` sets a limit instead.
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
    """Return what a small and good model has little of."""
    evaluation = objective.evaluate(suggest_params(trial, objective))
    return evaluation.loss, evaluation.n_support


study.optimize(error_and_size, n_trials=150)
print("Pareto front\nsupport vectors   leave-one-out error")
front = {tuple(trial.values) for trial in study.best_trials}  # equal pairs are shown once
for error, n_support in sorted(front, reverse=True):
    print(f"{n_support:15.0f}{error:22.4f}")

LIMIT = 120
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(OptunaObjective(objective, max_support=LIMIT), n_trials=100)
best = best_trial(study)
support = best.user_attrs["n_support"]
print(f"\nat most {LIMIT} support vectors: leave-one-out error {best.value:.4f} with {support}")
