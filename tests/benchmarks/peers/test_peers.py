"""Other packages in the same search: each is asked what it says of itself, and believed if so."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

from benchmarks.harness.data import data_folder, load
from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.peers import peers
from benchmarks.peers.libraries import FOLDS, PEERS, Task, importer
from span_hpo import RBF, SpanObjective

with_data = pytest.mark.skipif(data_folder() is None, reason="SPAN_HPO_DATA names no folder")

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
def test_quick_run_has_a_row_for_every_installed_peer(tmp_path, capsys, monkeypatch):
    """Who is installed is measured; who is not is told, with the reason, and has no row."""
    absent = replace(PEERS["dlib"], title="Absent", load=importer("no_such_package_of_anyone"))
    monkeypatch.setitem(PEERS, "absent", absent)
    found = peers.run(Options(quick=True, folder=tmp_path))
    told = capsys.readouterr().out
    assert "Absent is left out, dlib is not installed: No module named 'no_such" in told
    measured = [row["peer"] for row in found.rows]
    for key, peer in PEERS.items():
        assert (key in measured) != (f"{peer.title} is left out" in told), key
    assert {"span_rule", "span_smooth", "span_exact", "grid_search", "halving"} <= set(measured)
    assert {row["dataset"] for row in found.rows} == {peers.DATASETS[0]}
    for row in found.rows:
        assert int(row["points"]) == 9
        assert 0 < float(row["test_error"]) < 1


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


def test_table_has_what_the_csv_has(tmp_path):
    """Cells are figures of the CSV by the fit of the grid's or of own points; no row, no figure."""
    path = tmp_path / "peers.csv"
    path.write_text(
        "dataset,peer,cpu_per_point_ms,svc_fit_ms,test_error\n"
        "one,grid_search,21.0,2.0,0.25\n"
        "one,libsvm,1.5,4.0,0.12345\n"
        "one,liquidsvm,1.5,100.0,0.75\n"
        "two,libsvm,10.0,10.0,0.5\n"
    )
    lines = peers.table(path).splitlines()
    assert lines[0] == "| point / `SVC.fit` (test error) | one | two |"
    cells = {line.split(" | ")[0].strip("| "): line.strip("| ").split(" | ")[1:] for line in lines}
    assert cells["`GridSearchCV`"] == ["7.00 (0.2500)", "not installed"]
    assert cells["LIBSVM `-v 5`"] == ["0.50 (0.1235)", "1.00 (0.5000)"]
    assert cells["liquidSVM"] == ["0.01 (0.7500)", "not installed"]
    assert cells["dlib"] == ["not installed", "not installed"]
    assert cells["`SVC.fit`, median, ms"] == ["3", "10"]
    assert len(lines) == 2 + len(PEERS) + 1


def test_committed_figures_belong_together():
    """The CSV has all data sets, known peers only, and ratios that follow from its times."""
    rows = read_rows(RESULTS / "peers.csv")
    assert {row["dataset"] for row in rows} == set(peers.DATASETS)
    assert {row["peer"] for row in rows} <= set(PEERS)
    for row in rows:
        number = {name: float(row[name]) for name in row if row[name].replace(".", "", 1).isdigit()}
        assert number["points"] == len(peers.COSTS) ** 2
        per_point = 1e3 * number["cpu_seconds"] / number["points"]
        assert number["cpu_per_point_ms"] == pytest.approx(per_point, rel=1e-3)
        assert number["ratio_to_fit"] == pytest.approx(per_point / number["svc_fit_ms"], rel=2e-3)
        fits = number["cpu_seconds"] / number["fits_seconds"]
        assert number["ratio_to_fits"] == pytest.approx(fits, rel=2e-3)
