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
from matplotlib.colors import BoundaryNorm
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import cross_val_score, train_test_split
from sklearn.preprocessing import MinMaxScaler
from sklearn.svm import SVC

from span_hpo import RBF, SpanObjective

PICTURE = Path("demo.png")
POINTS = 17


def timed(function):
    """Return what a function returns, and its seconds."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start


X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant, 1 is benign
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
scaler = MinMaxScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)
kernel = RBF(gamma=1 / X.shape[1])

objective = SpanObjective(X_train, y_train, kernel=kernel, metric=("error", "smooth_error"))
values = objective.grid(POINTS)
trials = [dict(zip(values, pair, strict=True)) for pair in product(*values.values())]
print(
    f"Wisconsin breast cancer: {len(y_train)} training rows, {len(y_test)} test rows,\n"
    f"{len(trials)} pairs of class costs, RBF kernel with gamma = 1/{X.shape[1]}.\n"
)
evaluations, seconds = timed(lambda: [objective.evaluate(params) for params in trials])
on_paths = [one for one in evaluations if one.loo.n_undefined]
times = [one.seconds for one in evaluations]
print(
    f"Tuned in {seconds:.1f} s: {1e3 * np.median(times):.1f} ms a pair in the median, "
    f"{max(times):.1f} s the slowest.\nAt {len(on_paths)} pairs some rows have no span and follow "
    "their dual paths; the first of them\ncompiles these, once, if Numba is installed.\n"
)
# Ties of the error go to the lower smooth error, then to fewer support vectors.
best = min(evaluations, key=lambda one: (*one.losses.values(), one.n_support))
costs = {label: best.params[f"C_{label}"] for label in (0, 1)}
svc = SVC(C=1.0, gamma=kernel.gamma, class_weight=costs)
brute_force = SpanObjective(X_train, y_train, kernel=kernel, loo_method="refit")

_, span_seconds = timed(lambda: objective.evaluate(best.params))
refit, refit_seconds = timed(lambda: brute_force.evaluate(best.params))
scores, cv_seconds = timed(lambda: cross_val_score(svc, X_train, y_train, cv=5))
model = objective.fit_model(best.params)
accuracy, test_seconds = timed(lambda: model.score(X_test, y_test))
picked = f"picked: malignant {costs[0]:g}, benign {costs[1]:g}"
print(f"{picked:43}{'error':>8}{'seconds':>10}")
for title, error, cost in (
    ("span-rule, one fit (optimistic: selected)", best.loss, span_seconds),
    (f"leave-one-out, {len(y_train)} refits", refit.loss, refit_seconds),
    ("5-fold cross-validation, 5 fits", 1 - scores.mean(), cv_seconds),
    ("test rows", 1 - accuracy, test_seconds),
):
    print(f"{title:43}{error:8.4f}{cost:10.4f}")

span_rule = [one.loss for one in evaluations]
test_error = [1 - objective.fit_model(params).score(X_test, y_test) for params in trials]
print(f"\nLeast test error on the grid {min(test_error):.4f}, median {np.median(test_error):.4f}.")

names = list(values)
figure, axes = plt.subplots(1, 2, figsize=(9.5, 4.4), sharey=True, layout="constrained")
steps = [0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7]
colours = plt.get_cmap("viridis")
for axis, title, surface in zip(
    axes, ("span-rule", "error on the test rows"), (span_rule, test_error), strict=True
):
    drawn = axis.pcolormesh(
        np.log2(values[names[1]]),
        np.log2(values[names[0]]),
        np.reshape(surface, (POINTS, POINTS)),
        cmap=colours,
        norm=BoundaryNorm(steps, colours.N),
    )
    for params, mark, label in (
        (best.params, "o", "picked by the span-rule"),
        (trials[int(np.argmin(test_error))], "s", "least test error"),
    ):
        x, height = np.log2(params[names[1]]), np.log2(params[names[0]])
        axis.plot(x, height, mark, mfc="none", mec="red", ms=11, mew=2, label=label)
    axis.set(title=title, xlabel="log₂ cost of the benign class", xticks=range(-6, 11, 2))
axes[0].set_ylabel("log₂ cost of the malignant class")
axes[0].legend(loc="upper left", framealpha=0.95)
figure.colorbar(drawn, ax=axes, label="error", ticks=steps, spacing="uniform", format="%.2f")
figure.savefig(PICTURE, dpi=130)
print(f"Picture: {PICTURE.resolve()}")
