"""Tune class costs and kernel width with Optuna, then predict.

The task is to distinguish odd digits from even ones.
"""

import numpy as np
import optuna
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import (
    OptunaObjective,
    best_model,
    best_trial,
    honest_estimate,
)

X, digits = load_digits(return_X_y=True)
y = np.where(digits % 2, "odd", "even")
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, train_size=600, random_state=0, stratify=y
)

objective = SpanObjective(X_train, y_train)  # searches gamma, C_even and C_odd
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(OptunaObjective(objective), n_trials=60)  # one fit per trial: no folds, no noise
model = best_model(study, objective)  # a fitted scikit-learn SVC

best, honest = best_trial(study), honest_estimate(study, objective)
print("best parameters:", {name: round(value, 4) for name, value in best.params.items()})
print(f"leave-one-out error   {best.value:.4f} (optimistic, because it was selected)")
print(f"honest estimate       {honest.error:.4f} (corrected for the selection)")
print(f"test accuracy, tuned  {model.score(X_test, y_test):.4f}")
print(f"test accuracy, SVC()  {SVC().fit(X_train, y_train).score(X_test, y_test):.4f}")
