"""Search a cost and a width in a few fits by the gradient of a radius-margin bound."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from span_hpo import RadiusMargin, SpanObjective, minimize

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

leave_one_out = SpanObjective(X_train, y_train, weighting="uniform", metric="smooth_error")
searches = {
    "bound of the SVM": (RadiusMargin(X_train, y_train), "bfgs-projected"),
    "bound of the L2-SVM": (RadiusMargin(X_train, y_train, bound="l2"), "bfgs-projected"),
    "leave-one-out": (leave_one_out, "adam"),
}
print("minimised             evaluations        C     gamma  test accuracy")
for title, (objective, method) in searches.items():
    found = minimize(objective, method=method)
    model = objective.fit_model(found.params)
    accuracy = np.mean(model.predict(X_test) == y_test)
    C, gamma = found.params["C"], found.params["gamma"]
    print(f"{title:20}  {found.n_evaluations:11}  {C:7.3g}  {gamma:8.3g}  {accuracy:13.4f}")
