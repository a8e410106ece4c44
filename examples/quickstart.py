"""Tune class costs and kernel width on real data, then predict: the shortest useful program."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from span_hpo import SpanObjective

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
scaler = MinMaxScaler().fit(X_train)

objective = SpanObjective(scaler.transform(X_train), y_train)
rng = np.random.default_rng(0)
trials = [{name: part.sample(rng) for name, part in objective.space.items()} for _ in range(100)]
best = min(trials, key=objective)  # one fit per trial: no folds, no noise
model = objective.fit_model(best)

print("best parameters:", {name: round(value, 4) for name, value in best.items()})
print(f"leave-one-out error {objective(best):.4f} (optimistic: it was selected)")
print(f"test error          {1 - model.score(scaler.transform(X_test), y_test):.4f}")
