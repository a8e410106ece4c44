"""Use a classifier that tunes itself in a pipeline, gives probabilities and doubts labels.

Some labels of the training rows are flipped. Every training row is judged by the model of all
other rows, so that you can check the rows whose labels the others contradict.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.feature_selection import VarianceThreshold
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from span_hpo import SpanSVC

X, digits = load_digits(return_X_y=True)
X, y = X[np.isin(digits, [3, 5, 8])], digits[np.isin(digits, [3, 5, 8])]
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=300, random_state=0)
rng = np.random.default_rng(0)
flipped = rng.choice(300, 12, replace=False)
noisy = y_train.copy()
noisy[flipped] = [
    rng.choice([label for label in (3, 5, 8) if label != y]) for y in y_train[flipped]
]

model = make_pipeline(VarianceThreshold(), SpanSVC(n_trials=40, random_state=0))
model.fit(X_train, noisy)
svc = model[-1]
print("chosen", ", ".join(f"{name} {value:.3g}" for name, value in svc.best_params_.items()))
low, high = svc.loo_bounds_
print(f"leave-one-out error {svc.loo_error_:.4f}, proven to be between {low:.4f} and {high:.4f}")
print(f"test accuracy {model.score(X_test, y_test):.4f}", end="")
print(f", log loss of the probabilities {log_loss(y_test, model.predict_proba(X_test)):.4f}")

found = svc.suspects_[:12]
print(f"\n{len(set(found) & set(flipped))} of the first 12 suspects are flipped labels")

cleaned = np.setdiff1d(np.arange(300), found)
again = make_pipeline(VarianceThreshold(), SpanSVC(n_trials=40, random_state=0))
again.fit(X_train[cleaned], noisy[cleaned])
print(f"test accuracy without the suspects {again.score(X_test, y_test):.4f}")
