"""The comparison of one width with other classifiers: its rows, its estimates, its table."""

import os
import subprocess
import sys
import time
from itertools import product

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from benchmarks.harness.data import load
from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.search import ard
from span_hpo import Problem, leave_one_out, solve
from tests.benchmarks.data_sets import stored, with_data
from tests.benchmarks.results import lines_of, rows_of

SMALL = "ida_thyroid"


@with_data
def test_rows_of_an_official_split_are_those_of_the_harness():
    """Features are scaled to [0, 1] on the training rows, as in the tables of the papers."""
    rows, split = ard.rows_of("ida_heart", 2), load("ida_heart", 2)
    np.testing.assert_allclose(rows.X_train, split.X_train, atol=1e-12)
    np.testing.assert_allclose(rows.X_test, split.X_test, atol=1e-12)
    np.testing.assert_array_equal(rows.y_train, split.y_train)
    np.testing.assert_array_equal(rows.y_test, split.y_test)


@with_data
def test_noise_is_added_to_the_rows_of_banana():
    """The first two features are banana's, and the others are as large in both classes."""
    rows, split = ard.rows_of(ard.NOISE, 1), load("ida_banana", 1)
    assert rows.X_train.shape == (400, 42)
    np.testing.assert_allclose(rows.X_test[:, :2], split.X_test, atol=1e-12)
    noise = np.vstack([rows.X_train, rows.X_test])[:, 2:]
    y = np.concatenate([rows.y_train, rows.y_test])
    gaps = (noise[y > 0].mean(axis=0) - noise[y < 0].mean(axis=0)) / noise.std(axis=0)
    assert np.abs(gaps).max() < 4 * np.sqrt(1 / (y > 0).sum() + 1 / (y < 0).sum())
    correlations = np.corrcoef(noise.T)[~np.eye(40, dtype=bool)]
    assert np.abs(correlations).max() < 5 / np.sqrt(len(noise))
    assert rows.names == ["x0", "x1", *(f"noise{number}" for number in range(40))]


@with_data
def test_noise_differs_between_splits_but_not_between_runs():
    """Each split has its own noise, which a later run draws again."""
    first = ard.rows_of(ard.NOISE, 0).X_train
    other = ard.rows_of(ard.NOISE, 1).X_train
    assert not np.isclose(first[:, 2:], other[:, 2:]).all(axis=1).any()
    ard.rows_of.cache_clear()
    np.testing.assert_array_equal(ard.rows_of(ard.NOISE, 0).X_train, first)


@with_data
def test_drawn_rows_have_the_shares_of_the_classes():
    """All rows of spambase are used once, 1,000 of them for training, as many spam as in all."""
    rows, y = ard.rows_of(ard.DRAWN, 0), stored("spambase")["y"]
    assert len(rows.y_train) == 1000
    assert len(rows.y_train) + len(rows.y_test) == len(y)
    assert (rows.y_train > 0).sum() + (rows.y_test > 0).sum() == (y > 0).sum()
    assert abs((rows.y_train > 0).mean() - (y > 0).mean()) < 1e-3
    assert (ard.rows_of(ard.DRAWN, 1).y_train != rows.y_train).any()


@with_data
@pytest.mark.slow
def test_a_run_has_every_installed_method(tmp_path):
    """Each method is tested on the same rows, and only searches report their points."""
    rows = ard.run(Options(datasets=[SMALL], folder=tmp_path)).rows
    assert [row["method"] for row in rows] == ard.installed()
    counts = {row["method"]: row["evaluations"] for row in rows}
    counts.pop("bbai", None)
    assert list(counts.values()) == ["60", "150", "150", "49", "", ""]
    for row in rows:
        assert (row["n_train"], row["n_features"]) == ("140", "5")
        assert 0 <= float(row["test_error"]) < 0.2
        assert 0 <= float(row["seconds"]) < 60


@with_data
@pytest.mark.slow
def test_an_isotropic_search_expects_the_leave_one_out_error(monkeypatch):
    """By either metric, the estimate is the error by `leave_one_out` of the chosen model."""
    rows = ard.rows_of(SMALL, 0)
    models = []
    fit_model = ard.SpanObjective.fit_model

    def kept(objective, params):
        models.append(params)
        return fit_model(objective, params)

    monkeypatch.setattr(ard.SpanObjective, "fit_model", kept)
    for method in ("isotropic, smooth error", "isotropic, error"):
        found = ard.METHODS[method](rows.X_train, rows.y_train, rows.names)
        params = models.pop()
        K = rbf_kernel(rows.X_train, gamma=params["gamma"])
        costs = np.where(rows.y_train > 0, params["C_1"], params["C_-1"])
        solution = solve(Problem(K, rows.y_train, costs))
        values = leave_one_out(solution).decision_values
        assert found.estimate == np.mean(rows.y_train * values <= 0)
        K_test = rbf_kernel(rows.X_test, rows.X_train, gamma=params["gamma"])
        expected = np.sign(K_test @ (rows.y_train * solution.alpha) + solution.b)
        # One row may change sides: the model is fitted with another tolerance.
        assert (found.predict(rows.X_test) != expected).sum() <= 1


def test_without_bbai_the_others_are_measured(monkeypatch, capsys):
    """What cannot be imported is left out with the reason, and the rest stays in order."""
    monkeypatch.setitem(sys.modules, "bbai.glm", None)
    assert ard.installed() == [name for name in ard.METHODS if name != "bbai"]
    assert "bbai is left out because it is not installed" in capsys.readouterr().out


@with_data
def test_bbai_expects_the_error_of_refits():
    """With its penalty, refits of scikit-learn without each row make about as many errors."""
    glm = pytest.importorskip("bbai.glm")
    rows = ard.rows_of(SMALL, 0)
    found = ard.METHODS["bbai"](rows.X_train, rows.y_train, rows.names)
    penalty = glm.LogisticRegression().fit(rows.X_train, rows.y_train).C_
    model = LogisticRegression(C=penalty, max_iter=10_000)
    refits = cross_val_predict(model, rows.X_train, rows.y_train, cv=LeaveOneOut())
    errors = np.sum(refits != rows.y_train)
    assert abs(found.estimate * len(refits) - errors) <= 1
    assert set(found.predict(rows.X_test)) == {-1.0, 1.0}


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_time_includes_processes_that_were_started():
    """A process that computes for this one counts, as that of bbai does."""
    work = "import time\nwhile time.process_time() < 0.15: pass\nprint(flush=True); input()"
    before, own = ard._cpu_seconds(), time.process_time()
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        other.stdout.readline()
        passed = ard._cpu_seconds() - before - (time.process_time() - own)
        other.communicate(b"\n")
    assert passed >= 0.15 - 2 / os.sysconf("SC_CLK_TCK")


def test_committed_figures_are_complete():
    """Every method has a row for every split, on the same number of rows and features."""
    rows = read_rows(RESULTS / "ard.csv")
    keys = [(row["dataset"], row["split"], row["method"]) for row in rows]
    assert sorted(keys) == sorted(
        (name, str(split), method)
        for (name, splits), method in product(ard.SPLITS.items(), ard.METHODS)
        for split in range(splits)
    )
    for name in ard.DATASETS:
        assert (
            len({(row["n_train"], row["n_features"]) for row in rows_of("ard.csv", dataset=name)})
            == 1
        )
    for row in rows:
        assert 0 <= float(row["test_error"]) < 0.55  # banana has 55 % of one class
        assert row["estimate"] == "" or 0 <= float(row["estimate"]) < 0.5
        # The clock of bbai's process ticks 100 times a second.
        assert float(row["seconds"]) > 0 or row["method"] == "bbai"


def test_the_table_follows_from_the_csv():
    """Cells are means over the splits, and the least of a line is in bold."""
    lines = lines_of(ard.table())
    for name in ard.DATASETS:
        cells = lines[name][4:]
        errors = [
            np.mean(
                [
                    float(row["test_error"])
                    for row in rows_of("ard.csv", dataset=name, method=method)
                ]
            )
            for method in ard.METHODS
        ]
        assert [cell.strip("*") for cell in cells] == [f"{error:.4f}" for error in errors]
        bold = [cell.strip("*") for cell in cells if cell.startswith("**")]
        assert set(bold) == {f"{min(errors):.4f}"}
    sets = np.array([[float(c.strip("*")) for c in lines[name][4:]] for name in ard.DATASETS])
    overall = [float(cell) for cell in lines["mean over the sets"][4:]]
    np.testing.assert_allclose(overall, sets.mean(axis=0), atol=1.01e-4)
