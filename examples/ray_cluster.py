"""Search on a cluster of three nodes, one of which disappears during the search.

The nodes are simulated on this machine, with one core each. Trials of the lost node continue on
another node after their last report.
"""

import tempfile
import threading
import time
from pathlib import Path

import ray
from ray import tune
from ray.cluster_utils import Cluster
from sklearn.datasets import load_digits

from span_hpo import SpanObjective
from span_hpo.integrations.ray import best_result, params_of, tuner

X, y = load_digits(return_X_y=True)
objective = SpanObjective(X[:500] / 16, y[:500] % 2, metric="smooth_error")

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
ray.init(address=cluster.address, log_to_driver=False)
print(f"{len(ray.nodes())} nodes, {ray.cluster_resources()['CPU']:.0f} cores")


class Tally(tune.Callback):
    """Write a line for every finished trial."""

    def __init__(self, file):
        self.file = file

    def on_trial_complete(self, iteration, trials, trial, **info):
        """Write the line; Ray calls this method."""
        with self.file.open("a") as lines:
            lines.write(f"{trial}\n")


def remove_one(file):
    """Remove a node when a third of the trials have finished and others are running."""
    while not file.exists() or len(file.read_text().splitlines()) < 10:
        time.sleep(0.1)
    cluster.remove_node(nodes[0])
    print(f"removed a node after {len(file.read_text().splitlines())} trials")


with tempfile.TemporaryDirectory() as folder:
    finished = Path(folder) / "finished.txt"
    threading.Thread(target=remove_one, args=(finished,), daemon=True).start()
    results = tuner(
        objective,
        num_samples=30,
        seed=0,
        scheduler=None,
        budgets=(0.125, 0.25, 0.5, 1.0),
        storage_path=folder,
        callbacks=[Tally(finished)],
        max_failures=10,  # Ray may send a trial to a node that it does not yet know to be gone
    ).fit()
    best = best_result(results, objective)
    complete = sum(result.metrics["n_rows"] == 500 for result in results)
    print(f"{complete} of {len(results)} trials finished, {results.num_errors} errors")
    params = params_of(best, objective)
    print("best", ", ".join(f"{name} {value:.3g}" for name, value in params.items()), end="")
    print(f": loss {best.metrics['loss']:.4f}")
    print("same loss outside the cluster:", abs(objective(params) - best.metrics["loss"]) < 1e-12)
ray.shutdown()
cluster.shutdown()
