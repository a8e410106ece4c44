"""Turn a score of each row into its cost: noisy labels, some of them known to be doubtful.

Every third label is flipped at random where the annotators were unsure. Their confidence is the
score; a sigmoid of it, searched together with the kernel width, sets the cost of each row.
"""

import numpy as np
from sklearn.datasets import make_moons

from span_hpo import RBF, Float, SigmoidScore, SpanObjective, UniformCost

rng = np.random.default_rng(1)
X, truth = make_moons(400, noise=0.25, random_state=1)
unsure = rng.random(400) < 0.4
confidence = np.where(unsure, rng.uniform(0.0, 0.5, 400), rng.uniform(0.6, 1.0, 400))
labels = np.where(unsure & (rng.random(400) < 1 / 3), 1 - truth, truth)
X_test, y_test = make_moons(4000, noise=0.25, random_state=2)


def tuned(weighting, **data):
    """Return the best of 150 random trials; doubtful rows count less in the metric too."""
    objective = SpanObjective(
        X,
        labels,
        kernel=RBF(gamma=Float(0.1, 30, log=True)),
        weighting=weighting,
        metric="smooth_error",
        metric_weight=confidence,
        **data,
    )
    draw = np.random.default_rng(0)
    trials = [
        {name: part.sample(draw) for name, part in objective.space.items()} for _ in range(150)
    ]
    return objective.fit_model(min(trials, key=objective))


for title, model in (
    ("one cost for all rows", tuned(UniformCost())),
    ("sigmoid of the confidence", tuned(SigmoidScore(), scores=confidence)),
):
    print(f"{title:28} test error {1 - model.score(X_test, y_test):.4f}")
