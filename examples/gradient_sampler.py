"""Search one width for each of 64 pixels, in a study of Optuna whose trials follow gradients.

A search that draws points hardly gets anywhere with so many hyperparameters. A `GradientSampler`
draws a few, and then follows the gradient of the leave-one-out loss from the best of them.
"""

import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from span_hpo import ARD, SpanObjective
from span_hpo.integrations.optuna import (
    GradientSampler,
    OptunaObjective,
    best_model,
    enqueue_defaults,
    refine,
)

X, digits = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, digits % 2, train_size=300, random_state=0
)
objective = SpanObjective(
    X_train, y_train, kernel=ARD(), weighting="uniform", metric="smooth_error"
)

optuna.logging.set_verbosity(optuna.logging.WARNING)
for sampler in (optuna.samplers.TPESampler(seed=0), GradientSampler(seed=0)):
    study = optuna.create_study(sampler=sampler)
    enqueue_defaults(study, objective)
    study.optimize(OptunaObjective(objective), n_trials=60)
    error = 1 - best_model(study, objective).score(X_test, y_test)
    name = type(sampler).__name__
    print(f"{name:16s} loss {study.best_value:.4f}, test error {error:.4f}")
    if name == "TPESampler":  # steps from its best trial, as further trials of the study
        refine(study, objective, n_steps=40)
        error = 1 - best_model(study, objective).score(X_test, y_test)
        print(f"{'... refined':16s} loss {study.best_value:.4f}, test error {error:.4f}")

steps = [trial for trial in study.trials if "descent" in trial.user_attrs]
print(f"{len(steps)} of {len(study.trials)} trials were steps along gradients.")
