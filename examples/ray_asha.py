"""Search on all cores with Ray Tune, which stops half of the trials at each budget of rows.

To run the same program on a cluster, call ``ray.init(address="auto")``.
"""

import tempfile
from collections import Counter

import ray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from span_hpo import SpanObjective
from span_hpo.integrations.ray import best_model, best_result, tuner

X, digits = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, digits >= 5, train_size=1000, random_state=0
)
objective = SpanObjective(X_train, y_train, metric="smooth_error")

ray.init(include_dashboard=False, log_to_driver=False)
with tempfile.TemporaryDirectory() as folder:
    results = tuner(objective, num_samples=48, scheduler="asha", seed=0, storage_path=folder).fit()
    rows = Counter(result.metrics["n_rows"] for result in results)
    print("number of trials by rows that they have seen:", dict(sorted(rows.items())))
    best = best_result(results, objective)
    model = best_model(results, objective)
ray.shutdown()
print("best", ", ".join(f"{name} {value:.3g}" for name, value in best.config.items()))
print(f"leave-one-out error {best.metrics['loo_error']:.4f}", end=", ")
print(f"test error {1 - model.score(X_test, y_test):.4f}")
