"""Give scikit-learn's own grid search leave-one-out errors instead of folds.

The model, the grid and the search are those of scikit-learn. Every candidate takes one fit on all
rows.
"""

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from span_hpo import AllRows, LooSVC, loo_scorer

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=300, random_state=0)

pipeline = make_pipeline(StandardScaler(), LooSVC())  # instead of SVC()
grid = {"loosvc__C": [0.1, 1, 10, 100, 1000], "loosvc__gamma": ["scale", 1e-4, 1e-3, 1e-2, 0.1]}
search = GridSearchCV(pipeline, grid, scoring=loo_scorer("accuracy"), cv=AllRows())
search.fit(X_train, y_train)

model = search.best_estimator_[-1]
low, high = model.loo_bounds_
print(f"chosen {search.best_params_}")
print(f"leave-one-out error {model.loo_error_:.4f} +- {model.loo_standard_error_:.4f}", end=", ")
print(f"the exact one is between {low:.4f} and {high:.4f}")
print(f"test error {1 - search.best_estimator_.score(X_test, y_test):.4f}")
