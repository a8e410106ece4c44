"""Fitted models that the tests of files share."""

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import MinMaxScaler

from span_hpo import RBF, Linear, Polynomial, SpanObjective, UniformCost

KERNELS = [RBF(gamma=0.7), Linear(), Polynomial(gamma=0.5, coef0=1.5, degree=2)]
SETS = {"two": load_breast_cancer, "three": load_iris, "ten": load_digits}


def fitted(kernel, which, count=200):
    """Return features, labels and a fitted model of a set with two, three or ten classes."""
    X, labels = SETS[which](return_X_y=True)
    chosen = np.random.default_rng(0).permutation(len(X))[:count]
    X, labels = MinMaxScaler().fit_transform(X)[chosen], labels[chosen]
    objective = SpanObjective(X, labels, kernel=kernel, weighting=UniformCost(C=3.0))
    return X, labels, objective.fit_model({})


def signed_values(model, X):
    """Return scikit-learn's decision values of the pairs, positive for the second class."""
    model.set_params(decision_function_shape="ovo")
    values = model.decision_function(X)
    return values if len(model.classes_) == 2 else -values
