"""Let an SVM compete with one of FLAML's own learners in one run of AutoML.

The SVM is judged by the leave-one-out estimate of a single fit, and the other learner by held-out
rows.
"""

import logging

from flaml import AutoML
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from span_hpo.integrations.flaml import LooMetric, SpanLearner

logging.getLogger("flaml").setLevel(logging.ERROR)
X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y % 2, train_size=600, random_state=0)

automl = AutoML()
automl.add_learner("span", SpanLearner)
automl.fit(
    X_train,
    y_train,
    task="classification",
    estimator_list=["span", "lgbm"],
    metric=LooMetric("error"),
    eval_method="holdout",
    max_iter=40,
    time_budget=20,
    verbose=0,
    seed=0,
    n_jobs=1,
)
for name, loss in automl.best_loss_per_estimator.items():
    print(f"{name:6} error {loss:.4f}")
config = ", ".join(f"{name} {value:.3g}" for name, value in automl.best_config.items())
print(f"chosen {automl.best_estimator}: {config}")
print(f"test error {1 - (automl.predict(X_test) == y_test).mean():.4f}")
