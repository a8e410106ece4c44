"""Tune class costs on real data and compare the span-rule with what it replaces.

Prints a table and writes `demo.png`: the span-rule and the test error over the grid of costs.
"""

import time
from itertools import product
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import FuncFormatter
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from span_hpo import RBF, Problem, SpanObjective, leave_one_out, solve

PICTURE = Path("demo.png")
POINTS = 17


def timed(function):
    """Return what a function returns, and its seconds."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
scaler = MinMaxScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
gamma = 1 / X.shape[1]

objective = SpanObjective(X_train, y_train, kernel=RBF(gamma=gamma), metric="error")
values = objective.grid(POINTS)
trials = [dict(zip(values, pair, strict=True)) for pair in product(*values.values())]
print(
    f"Wisconsin breast cancer: {len(y_train)} training rows, {len(y_test)} test rows, "
    f"{len(trials)} pairs of class costs, RBF kernel with gamma = 1/{X.shape[1]}."
)

evaluations, seconds = timed(lambda: [objective.evaluate(params) for params in trials])
# Ties of the error go to the smoother one, then to fewer support vectors.
best = min(
    evaluations,
    key=lambda one: (
        one.loss,
        np.mean(1 / (1 + np.exp(4 * one.loo.y * one.loo.decision_values))),
        one.n_support,
    ),
)
per_trial = seconds / len(trials)
print(f"Tuned in {seconds:.1f} s, {1e3 * per_trial:.1f} ms a pair. Best: {best.params}\n")

weights = {label: best.params[f"C_{label}"] for label in (0, 1)}
svc = SVC(C=1.0, gamma=gamma, class_weight=weights)
_, span_seconds = timed(lambda: objective.evaluate(best.params))
refit, refit_seconds = timed(
    lambda: leave_one_out(
        solve(
            Problem(
                np.exp(-gamma * ((X_train[:, None] - X_train) ** 2).sum(axis=2)),
                np.where(y_train == 1, 1, -1),
                np.where(y_train == 1, weights[1], weights[0]),
            )
        ),
        method="refit",
    )
)
scores, cv_seconds = timed(lambda: cross_val_score(svc, X_train, y_train, cv=5))
model, fit_seconds = timed(lambda: objective.fit_model(best.params))

print(f"{'at the best pair':34}{'error':>8}{'seconds':>10}")
for title, error, cost in (
    ("span-rule, one fit", best.loss, span_seconds),
    (f"leave-one-out, {len(y_train)} refits", refit.error, refit_seconds),
    ("5-fold cross-validation, 5 fits", 1 - scores.mean(), cv_seconds),
    ("test rows, final model", 1 - model.score(X_test, y_test), fit_seconds),
):
    print(f"{title:34}{error:8.4f}{cost:10.4f}")

shape = (POINTS, POINTS)
span_rule = np.reshape([one.loss for one in evaluations], shape)
test_error = np.reshape(
    [1 - objective.fit_model(params).score(X_test, y_test) for params in trials], shape
)
names = list(values)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.3), sharey=True, layout="constrained")
levels = np.linspace(0.02, 0.14, 13)
for axis, title, surface in zip(
    axes,
    ("span-rule: one fit a point", "error on the test rows"),
    (span_rule, test_error),
    strict=True,
):
    drawn = axis.contourf(
        values[names[1]], values[names[0]], surface, levels=levels, extend="both", cmap="viridis"
    )
    axis.plot(
        best.params[names[1]],
        best.params[names[0]],
        "o",
        mfc="none",
        mec="red",
        ms=11,
        mew=2,
        label="picked by the span-rule",
    )
    axis.set(title=title, xlabel="cost of the benign class")
    axis.set_xscale("log", base=2)
    axis.set_yscale("log", base=2)
    axis.set_xticks(values[names[1]][::2])
axes[0].set_ylabel("cost of the malignant class")
axes[0].legend(loc="upper left", framealpha=0.9)
figure.colorbar(
    drawn, ax=axes, label="error", format=FuncFormatter(lambda value, _: f"{value:.2f}")
)
figure.savefig(PICTURE, dpi=130)
print(f"\nPicture: {PICTURE}")
