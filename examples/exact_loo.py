"""Compute the leave-one-out error of one fit by an estimate, by proofs and by brute force."""

import time

import numpy as np
from sklearn.datasets import load_breast_cancer

from span_hpo import RBF, Problem, leave_one_out, solve

X, labels = load_breast_cancer(return_X_y=True)
X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
y = np.where(labels == 1, 1.0, -1.0)
K = RBF(gamma=2.0)(X)
solution = solve(Problem(K, y, np.where(y > 0, 50.0, 20.0)))
for method in ("exact", "stopping"):
    leave_one_out(solution, method=method)  # loads the code before it is timed

print(
    f"{len(y)} rows, {solution.n_support} support vectors, {solution.n_in_bound} of them in-bound"
)
print("method     errors   proven rows   error bounds        seconds")
for method in ("span", "exact", "stopping", "refit"):
    start = time.perf_counter()
    loo = leave_one_out(solution, method=method)
    seconds = time.perf_counter() - start
    low, high = loo.error_bounds
    print(
        f"{method:9}  {round(loo.error * len(y)):6}   {loo.certified.sum():11}   "
        f"[{low:.4f}, {high:.4f}]   {seconds:8.4f}"
    )
