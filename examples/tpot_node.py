"""Let TPOT evolve a pipeline around an SVM that estimates its own error.

Every candidate is fitted once to all training rows and scored by the leave-one-out error of its
SVM, without folds. Install TPOT with ``pip install tpot``.
"""

import numpy as np
import tpot
from ConfigSpace import ConfigurationSpace, Float
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from span_hpo import AllRows, LooSVC, loo_scorer

if __name__ == "__main__":
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y % 2, train_size=400, random_state=0)
    space = ConfigurationSpace(
        {"C": Float("C", (0.01, 1000.0), log=True), "gamma": Float("gamma", (1e-4, 1.0), log=True)}
    )
    svm = tpot.search_spaces.nodes.EstimatorNode(method=LooSVC, space=space)
    scalers = tpot.config.get_search_space(["StandardScaler", "PCA", "Passthrough"])
    search = tpot.TPOTEstimator(
        search_space=tpot.search_spaces.pipelines.SequentialPipeline([scalers, svm]),
        scorers=[loo_scorer("accuracy")],
        scorers_weights=[1],
        classification=True,
        cv=AllRows(),
        population_size=8,
        generations=2,
        n_jobs=1,
        verbose=0,
        random_state=0,
    )
    search.fit(X_train, y_train)
    print(search.fitted_pipeline_)
    print(f"leave-one-out error {search.fitted_pipeline_[-1].loo_error_:.4f}", end=", ")
    print(f"test error {1 - np.mean(search.predict(X_test) == y_test):.4f}")
