"""Tune an SVM on real data with Optuna, and compare what its one fit per trial says with refits.

Prints a table and writes `demo.png`: the search, and leave-one-out error against test error.
"""

import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, best_trial, enqueue_defaults

PICTURE = Path("demo.png")
TRIALS = 150
TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)


def timed(function):
    """Return what a function returns, and its seconds."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant, 1 is benign
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
scaler = MinMaxScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

objective = SpanObjective(X_train, y_train)  # the width of an RBF kernel and a cost for each class
print(
    f"Wisconsin breast cancer: {len(y_train)} training rows, {len(y_test)} test rows.\n"
    f"{TRIALS} trials over {', '.join(objective.space)}; with Numba the first one compiles, once.\n"
)
optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
enqueue_defaults(study, objective)
_, seconds = timed(
    lambda: study.optimize(OptunaObjective(objective), n_trials=TRIALS, show_progress_bar=True)
)
spent = [trial.user_attrs["seconds"] for trial in study.trials]
print(f"\nSearched in {seconds:.1f} s; {1e3 * np.median(spent):.1f} ms a fit in the median.\n")

best = best_trial(study)
gamma, costs = best.params["gamma"], {label: best.params[f"C_{label}"] for label in (0, 1)}
_, span_seconds = timed(lambda: objective(best.params))
exact = SpanObjective(X_train, y_train, loo_method="exact")
exact(best.params)  # builds the kernel matrix
proven, exact_seconds = timed(lambda: exact(best.params))
brute_force = SpanObjective(X_train, y_train, loo_method="refit")
refit, refit_seconds = timed(lambda: brute_force(best.params))
svc = SVC(C=1.0, gamma=gamma, class_weight=costs)
scores, cv_seconds = timed(lambda: cross_val_score(svc, X_train, y_train, cv=5))
accuracy, test_seconds = timed(lambda: objective.fit_model(best.params).score(X_test, y_test))
picked = f"gamma {gamma:.3g}, malignant {costs[0]:.3g}, benign {costs[1]:.3g}"
print(f"{picked:43}{'error':>8}{'seconds':>10}")
for title, error, cost in (
    ("span-rule, one fit (optimistic: selected)", best.value, span_seconds),
    ("exact leave-one-out, proven from one fit", proven, exact_seconds),
    (f"leave-one-out, {len(y_train)} refits", refit, refit_seconds),
    ("5-fold cross-validation, 5 fits", 1 - scores.mean(), cv_seconds),
    ("test rows", 1 - accuracy, test_seconds),
):
    print(f"{title:43}{error:8.4f}{cost:10.4f}")

losses = np.array([trial.value for trial in study.trials])
test_errors = np.array(
    [1 - objective.fit_model(trial.params).score(X_test, y_test) for trial in study.trials]
)
untuned = 1 - SVC().fit(X_train, y_train).score(X_test, y_test)
print(f"\nTest error of SVC() as it comes {untuned:.4f}, of the median trial ", end="")
print(f"{np.median(test_errors):.4f}, of the best one for the test rows {test_errors.min():.4f}.")

figure, (search, scatter) = plt.subplots(1, 2, figsize=(10, 4.3), layout="constrained")
numbers = np.arange(1, len(losses) + 1)
search.plot(numbers, losses, ".", color="0.75", label="a trial")
search.step(numbers, np.minimum.accumulate(losses), where="post", label="best so far")
search.plot(best.number + 1, best.value, "o", mfc="none", mec="red", ms=11, mew=2, label="picked")
search.set(title="The search", xlabel="trial", ylabel="leave-one-out error (span-rule)")
search.set(yscale="log")
search.legend(loc="upper right", framealpha=0.95)
ends = [0.8 * min(losses.min(), test_errors.min()), 1.2 * max(losses.max(), test_errors.max())]
scatter.plot(ends, ends, color="0.6", lw=1, label="equal")
scatter.plot(losses, test_errors, ".", label="a trial")
scatter.plot(best.value, 1 - accuracy, "o", mfc="none", mec="red", ms=11, mew=2, label="picked")
scatter.set(title="What one fit says, and what the test rows say", xscale="log", yscale="log")
scatter.set(xlabel="leave-one-out error (span-rule)", ylabel="error on the test rows")
for axis in (search.yaxis, scatter.xaxis, scatter.yaxis):
    axis.set_ticks(TICKS, [f"{tick:g}" for tick in TICKS])
    axis.set_ticks([], minor=True)
scatter.legend(loc="upper left", framealpha=0.95)
figure.savefig(PICTURE, dpi=130)
print(f"Picture: {PICTURE.resolve()}")
