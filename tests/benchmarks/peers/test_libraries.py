"""Other packages in the same search: what each says of its pick is checked."""

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from benchmarks.harness.data import load
from benchmarks.peers.libraries import FOLDS, PEERS, Task
from span_hpo import RBF, SpanObjective
from tests.benchmarks.data_sets import with_data

# How far the error of other folds may be: twice the standard error of 0.1 on 400 rows.
NOISE = 0.03


def search(key, task):
    """Let an installed peer search, skip another."""
    try:
        PEERS[key].load()
    except ImportError as error:
        pytest.skip(f"{key}: {error}")
    return PEERS[key].search(task)


def cross_validated_error(task, point):
    return 1 - cross_val_score(task.svc(point), task.X, task.y, cv=FOLDS).mean()


@pytest.fixture(scope="module")
def split():
    return load("ida_waveform")


@pytest.fixture(scope="module")
def task(split):
    X = split.X_train
    return Task(X, split.y_train, 1 / X.shape[1], [0.25, 4.0, 64.0])


@with_data
@pytest.mark.parametrize("key", ["grid_search", "optuna_search"])
def test_folds_of_scikit_learn_give_the_loss(key, task):
    """The loss of the pick is what cross_val_score finds there."""
    found = search(key, task)
    assert found.loss == pytest.approx(cross_validated_error(task, found.picked), abs=1e-12)
    assert found.picked in found.visited


@with_data
def test_grid_search_picks_the_least_error(task):
    """No point of the grid has a lower cross-validated error than the pick."""
    found = search("grid_search", task)
    errors = [cross_validated_error(task, point) for point in task.points]
    assert found.loss == pytest.approx(min(errors), abs=1e-12)
    assert found.visited == task.points


@with_data
@pytest.mark.parametrize("key", ["libsvm", "dlib"])
def test_other_folds_give_about_the_same_loss(key, task):
    """The error at the pick is that of scikit-learn's folds up to the noise of folds."""
    found = search(key, task)
    assert found.loss == pytest.approx(cross_validated_error(task, found.picked), abs=NOISE)
    assert found.visited == task.points


@with_data
@pytest.mark.parametrize("key", ["libsvm", "dlib"])
def test_costs_reach_the_right_class(key, task):
    """If a row of one class costs next to nothing, all of that class are errors and no others."""

    class OnePoint(Task):
        points = None

    share = np.mean(task.y > 0)
    one = OnePoint(task.X, task.y, task.gamma, task.costs)
    for OnePoint.points, error in (([(1e-6, 1.0)], share), ([(1.0, 1e-6)], 1 - share)):
        assert search(key, one).loss == pytest.approx(error, abs=1e-9)


@with_data
@pytest.mark.parametrize(
    ("key", "settings"),
    [
        ("span_rule", {}),
        ("span_smooth", {"metric": "smooth_error"}),
        ("span_exact", {"loo_method": "exact"}),
    ],
)
def test_ours_picks_the_least_loss(key, settings, task):
    """No point of the grid has a lower loss than the pick of our objective."""
    objective = SpanObjective(task.X, task.y, kernel=RBF(gamma=task.gamma), **settings)
    found = search(key, task)
    losses = {point: objective({"C_1": point[0], "C_-1": point[1]}) for point in task.points}
    assert found.loss == losses[found.picked] == min(losses.values())


@with_data
def test_opencv_leaves_the_model_of_the_costs_it_names(split, task):
    """Its model predicts what scikit-learn's does with the picked costs, and has equal weights."""
    found = search("opencv", task)
    C_pos, C_neg = found.picked
    assert C_pos == C_neg
    assert C_pos in task.costs
    assert found.loss is None
    ours = task.svc(found.picked).fit(task.X, task.y).predict(split.X_test)
    assert np.mean(found.predict(split.X_test) == ours) > 0.999


@with_data
def test_liquidsvm_finds_a_model_of_about_the_same_error(split, task):
    """Without an offset, its error and its model are about those of scikit-learn at the pick."""
    found = search("liquidsvm", task)
    assert found.loss == pytest.approx(cross_validated_error(task, found.picked), abs=2 * NOISE)
    error = np.mean(found.predict(split.X_test) != split.y_test)
    ours = task.svc(found.picked).fit(task.X, task.y).predict(split.X_test)
    assert error == pytest.approx(np.mean(ours != split.y_test), abs=NOISE)


@with_data
def test_liquidsvm_visits_the_costs_of_the_grid_at_equal_weights(task):
    """Its grid holds the diagonal of the others' and is as large."""
    visited = search("liquidsvm", task).visited
    assert len(visited) == len(task.points)
    equal = [C_pos for C_pos, C_neg in visited if C_pos == pytest.approx(C_neg)]
    assert equal == pytest.approx(task.costs)
