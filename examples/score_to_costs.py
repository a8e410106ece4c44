"""Turn the confidence with which a row was labelled into the cost of the row.

Annotators who were unsure have overlooked seven of ten positives. Their confidence is the score of
a row, and the sigmoid of the score is its cost. Optuna searches the steepness A, the midpoint B and
the height C of the sigmoid together with the kernel width. The test rows have clean labels.
"""

import numpy as np
import optuna
from sklearn.datasets import make_moons

from span_hpo import SigmoidScore, SpanObjective, UniformCost
from span_hpo.integrations.optuna import OptunaObjective, best_model, best_trial

rng = np.random.default_rng(0)
X, truth = make_moons(400, noise=0.25, random_state=0)
confidence = rng.random(400)
overlooked = (confidence < 0.5) & (rng.random(400) < 0.7)
labels = np.where(overlooked, 0, truth)
X_test, y_test = make_moons(4000, noise=0.25, random_state=1)
print(f"{np.sum(labels != truth)} of {len(truth)} labels are wrong\n")

optuna.logging.set_verbosity(optuna.logging.WARNING)
for title, arguments in {
    "the score is ignored": {"weighting": UniformCost()},
    "costs from the score": {
        "weighting": SigmoidScore(),
        "scores": confidence,
        "metric_weight": confidence,  # doubtful labels also count less in the metric
    },
}.items():
    objective = SpanObjective(X, labels, metric="smooth_error", **arguments)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=0))
    study.optimize(OptunaObjective(objective), n_trials=100)
    error = 1 - best_model(study, objective).score(X_test, y_test)
    found = ", ".join(f"{name} {value:.3g}" for name, value in best_trial(study).params.items())
    print(f"{title}: test error {error:.4f}   ({found})")
