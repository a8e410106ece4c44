"""Replace GridSearchCV by SpanSearchCV: the same candidates, one fit for each, and no folds."""

import time

from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from span_hpo import SpanSearchCV

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=0.5, random_state=0)
pipeline = make_pipeline(StandardScaler(), SVC())
grid = {
    "svc__C": [0.1, 1, 10, 100, 1000],
    "svc__gamma": [1e-4, 1e-3, 1e-2, "scale", 0.1],
    "svc__class_weight": [None, "balanced"],
}

searches = {
    "GridSearchCV": GridSearchCV(pipeline, grid, cv=5),
    "SpanSearchCV": SpanSearchCV(pipeline, grid, search="grid"),
}
for name, search in searches.items():
    start = time.process_time()
    search.fit(X_train, y_train)
    seconds = time.process_time() - start
    print(
        f"{name}: {seconds:.2f} s, best score {search.best_score_:.4f}, "
        f"test score {search.score(X_test, y_test):.4f}, {search.best_params_}"
    )

best = searches["SpanSearchCV"]
results, i = best.cv_results_, best.best_index_
print(f"standard error of the best score: {results['std_test_score'][i]:.4f}")
low, high = best.honest_interval_
print(f"error to expect on new rows: {best.honest_error_:.4f}, from {low:.4f} to {high:.4f}")
print(f"support vectors: {results['n_support'][i]:.0f} of {len(y_train)} rows")
