import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter

import numpy as np
import pytest
from sklearn.datasets import load_iris

from span_hpo import RBF, Choice, ClassCosts, Float, SigmoidScore, SpanObjective, UniformCost
from tests.cli.program import PROGRAM
from tests.integrations.ray.parts import (
    BUDGETS,
    SAMPLES,
    Logged,
    blas_threads,
    calls,
    moons,
    slow_objective,
)
from tests.places import ROOT
from tests.problems import two_moons
from tests.processes import ended

ray = pytest.importorskip("ray")
from ray.cluster_utils import Cluster  # noqa: E402
from ray.tune.search import BasicVariantGenerator  # noqa: E402

from span_hpo.integrations.ray import (  # noqa: E402
    best_model,
    best_result,
    params_of,
    restored_tuner,
    tuner,
)
from span_hpo.integrations.ray.tuners import SCHEDULER_OF_NAME, SEARCH_OF_NAME  # noqa: E402
from span_hpo.search import SCHEDULERS, SEARCHES  # noqa: E402

# Ray leaves sockets and files to the garbage collector, and uses what its own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    "scheduler",
    [
        "asha",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("hyperband", "median", "none")),
        "pbt",
    ],
)
def test_schedulers(scheduler, cluster, tmp_path):
    """Every trial ends without error, and the best one has the loss that the objective gives."""
    objective = moons(metric="smooth_error")
    results = tuner(
        objective, num_samples=8, scheduler=scheduler, seed=0, storage_path=tmp_path
    ).fit()
    assert len(results) == 8
    assert results.num_errors == 0
    best = best_result(results, objective)
    evaluation = objective.evaluate(params_of(best, objective))
    assert best.metrics["loss"] == pytest.approx(evaluation.loss, abs=1e-12)
    for name in ("n_rows", "loo_error", "n_support", "n_in_bound"):
        assert best.metrics[name] == getattr(evaluation, name, evaluation.loo.error)
    assert best.metrics["seconds"] > 0
    rows = Counter(result.metrics["n_rows"] for result in results)
    assert set(rows) <= {15, 30, 60, 120}
    if scheduler == "none":
        assert rows == {120: 8}
    finished = [r.metrics["loss"] for r in results if r.metrics["n_rows"] == 120]
    assert best.metrics["loss"] == min(finished)
    X, y = two_moons(120)
    assert best_model(results, objective).score(X, y) > 0.8


@pytest.mark.slow
def test_population_has_options_and_ranges(cluster, tmp_path):
    """Population based training exchanges options, and keeps numbers in their range."""
    kernel = RBF(gamma=Choice([0.1, 1.0, 10.0]))
    objective = moons(kernel=kernel, weighting=UniformCost(Float(0.9, 1.1)))
    results = tuner(objective, num_samples=8, scheduler="pbt", seed=0, storage_path=tmp_path).fit()
    assert results.num_errors == 0
    for result in results:
        assert result.config["gamma"] in (0.1, 1.0, 10.0)
        assert 0.9 <= result.config["C"] <= 1.1


@pytest.mark.slow
@pytest.mark.parametrize("search", ["random", "grid", "object"])
def test_searches(search, cluster, tmp_path):
    """Random search begins with the defaults, a grid has all its points, Ray's own may be given."""
    objective = moons(weighting=UniformCost())
    given = BasicVariantGenerator(random_state=1) if search == "object" else search
    results = tuner(
        objective, num_samples=9, search=given, scheduler=None, seed=0, storage_path=tmp_path
    ).fit()
    configs = [result.config for result in results]
    assert len(configs) == 9
    if search == "grid":
        grid = objective.grid(3)
        assert {(c["gamma"], c["C"]) for c in configs} == {
            (gamma, C) for gamma in grid["gamma"] for C in grid["C"]
        }
    if search == "random":
        for start in objective.defaults():
            assert start in configs
    for result in results:
        assert result.metrics["loss"] == pytest.approx(objective(result.config), abs=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("search", ["random", "optuna"])
def test_one_trial_at_a_time(search, cluster, tmp_path):
    """The limit of trials at a time holds for every search: the next begins after the last."""
    results = tuner(
        moons(metric=Logged(str(tmp_path), seconds=0.05)),
        num_samples=6,
        search=search,
        scheduler=None,
        budgets=BUDGETS,
        max_concurrent_trials=1,
        seed=0,
        storage_path=tmp_path,
    ).fit()
    assert len(results) == 6
    assert [rows for rows, _, _ in calls(tmp_path)] == [*BUDGETS] * 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["classes", "scores", "exact", "metrics", "sparse"])
def test_the_same_number_as_outside(kind, cluster, tmp_path):
    """Several classes, scores, exact values, several metrics and sparse rows work as outside."""
    X, y = load_iris(return_X_y=True)
    if kind == "classes":
        objective = SpanObjective(X, y)
    elif kind == "scores":
        scores = np.random.default_rng(0).random(120)
        weighting = ClassCosts() * SigmoidScore(C=1.0)
        objective = moons(scores=scores, weighting=weighting)
    elif kind == "exact":
        objective = moons(loo_method="exact", metric="auc")
    elif kind == "metrics":
        objective = moons(metric=("error", "log_loss"))
    else:
        from scipy.sparse import csr_array

        objective = SpanObjective(csr_array(np.maximum(X - 3, 0)), y)
    results = tuner(
        objective, num_samples=4, scheduler=None, search="random", seed=0, storage_path=tmp_path
    ).fit()
    assert results.num_errors == 0
    for result in results:
        evaluation = objective.evaluate(params_of(result, objective))
        assert result.metrics["loss"] == pytest.approx(evaluation.loss, abs=1e-12)
        for name, loss in evaluation.losses.items():
            assert result.metrics["losses"][name] == pytest.approx(loss, abs=1e-12)


@pytest.mark.parametrize("cpus", [1, 2])
def test_blas_has_the_cores_of_the_trial(cpus, cluster, tmp_path):
    """Outside of fits, which use one thread, BLAS has as many as the trial has cores."""
    objective = moons(metric=blas_threads)
    results = tuner(
        objective,
        num_samples=1,
        scheduler=None,
        search="random",
        cpus_per_trial=cpus,
        storage_path=tmp_path,
    ).fit()
    assert next(iter(results)).metrics["loss"] == cpus


def test_killed_worker_resumes_its_trial(cluster, tmp_path):
    """SIGKILL inside a trial: it goes on after its last report, and all trials finish."""
    log = tmp_path / "log"
    log.mkdir()
    objective = moons(metric=Logged(str(log), kill_at=120))
    results = tuner(
        objective,
        num_samples=4,
        scheduler=None,
        budgets=BUDGETS,
        search="random",
        seed=0,
        max_concurrent_trials=1,
        storage_path=tmp_path,
    ).fit()
    assert (log / "killed").exists()
    assert results.num_errors == 0
    assert [result.metrics["n_rows"] for result in results] == [120] * 4
    made = calls(log)
    assert Counter(rows for rows, _, _ in made) == dict.fromkeys(BUDGETS, 4)  # nothing twice
    assert len({pid for _, _, pid in made}) == 2


@pytest.mark.slow
def test_killed_driver_is_restored(cluster, tmp_path):
    """SIGKILL of the driver: the restored run has all its trials, and repeats no finished one."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.integrations.ray.parts", str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TUNE_GLOBAL_CHECKPOINT_S": "1"},  # how often Ray notes what is done
    )
    try:
        deadline = time.monotonic() + 90
        while not (tmp_path / "calls").exists() or len(calls(tmp_path)) < 12:
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
        time.sleep(1.0)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    time.sleep(1.5)  # its workers notice that they are orphans
    before = calls(tmp_path)
    objective = slow_objective(tmp_path)
    with pytest.raises(ValueError, match="rows was 120, got 100"):
        restored_tuner(tmp_path / "run", SpanObjective(*two_moons(100)))
    results = restored_tuner(tmp_path / "run", objective).fit()
    assert len(results) == SAMPLES
    assert results.num_errors == 0
    assert [result.metrics["n_rows"] for result in results] == [120] * SAMPLES
    for result in results:
        expected = moons()(params_of(result, objective))
        assert result.metrics["loss"] == pytest.approx(expected, abs=1e-12)
    after = Counter((rows, mark) for rows, mark, _ in calls(tmp_path))
    assert len(after) == 3 * SAMPLES
    repeated = sum(after.values()) - len(after)
    assert repeated <= 12  # of two trials that were running, and two that had just finished
    assert len(before) >= 12


@pytest.mark.slow
def test_node_of_a_cluster_is_removed(tmp_path):
    """Three nodes, one is taken away in the middle: every trial finishes, no result is lost."""
    found = subprocess.run(
        [sys.executable, ROOT / "examples" / "ray_cluster.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert found.returncode == 0, found.stderr[-3000:]
    assert "removed a node" in found.stdout
    finished, trials, errors = re.search(
        r"(\d+) of (\d+) trials finished, (\d+) errors", found.stdout
    ).groups()
    assert finished == trials
    assert errors == "0"
    assert "same loss outside the cluster: True" in found.stdout


BAD = {
    "objective": ({"objective": "x"}, TypeError, "`objective` must be a SpanObjective"),
    "scheduler": ({"scheduler": "ashaa"}, ValueError, "`scheduler` must be one of"),
    "search": ({"search": "optna"}, ValueError, "`search` must be one of"),
    "decreasing": ({"budgets": (80, 40, 120)}, ValueError, "`budgets` must increase"),
    "not all": ({"budgets": (0.25, 0.5)}, ValueError, "`budgets` must end with all 120 rows"),
    "few": ({"budgets": (1, 120)}, ValueError, "`budgets` must have at least"),
    "samples": ({"num_samples": 0}, ValueError, "`num_samples` must be"),
    "cpus": ({"cpus_per_trial": 0}, ValueError, "`cpus_per_trial` must be"),
    "pbt": ({"scheduler": "pbt", "search": "optuna"}, ValueError, '`search` must be "random"'),
    "failures": ({"max_failures": 0.5}, ValueError, "`max_failures` must be"),
}


def test_every_name_has_its_scheduler_and_search():
    """The adapter makes exactly the schedulers and searches that have names."""
    assert tuple(SCHEDULER_OF_NAME) == SCHEDULERS
    assert tuple(SEARCH_OF_NAME) == SEARCHES


@pytest.mark.parametrize("case", BAD)
def test_bad_arguments_are_named(case):
    """Errors come before anything is started."""
    settings, kind, message = BAD[case]
    was_running = ray.is_initialized()
    with pytest.raises(kind, match=message):
        tuner(**{"objective": moons(), **settings})
    assert ray.is_initialized() == was_running


def test_objective_that_cannot_travel():
    """An objective that cannot be pickled is refused before anything is started."""
    lock = threading.Lock()
    with pytest.raises(TypeError, match="cannot be pickled"):
        tuner(moons(metric=lambda y, f: 0.0 if lock else 1.0))
    with pytest.raises(ValueError, match="`path` must be the folder of a run"):
        restored_tuner("/nowhere", moons())


@pytest.mark.slow
def test_command_line(tmp_path):
    """`tune --engine ray` joins a cluster, prints what Optuna's engine does, and can be resumed."""
    X, y = two_moons(120)
    rows = "".join(f"{a},{b},{label}\n" for (a, b), label in zip(X, y, strict=True))
    (tmp_path / "rows.csv").write_text("a,b,label\n" + rows)

    def tune_rows(*options, code=0):
        common = ("tune", "rows.csv", "--target", "label", "--seed", "0", "--json")
        found = ended([*PROGRAM, *common, *options], tmp_path)
        assert found.returncode == code, found.stderr
        assert "Traceback" not in found.stderr
        return json.loads(found.stdout) if code == 0 else found.stderr

    command = ("--engine", "ray", "--scheduler", "asha", "--trials", "12", "--out", "by_ray")
    running = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    try:
        by_ray = tune_rows(*command, "--address", running.address)
    finally:
        running.shutdown()
    by_optuna = tune_rows("--trials", "12", "--out", "by_optuna")
    assert set(by_ray) == set(by_optuna)
    assert by_ray["trials"] == 12
    scaled = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    objective = SpanObjective(scaled, y, weighting="uniform")
    assert by_ray["best_loss"] == pytest.approx(objective(by_ray["best_params"]), abs=1e-12)
    assert "exists already" in tune_rows(*command, code=2)
    again = tune_rows(*command, "--resume")
    assert again["best_params"] == by_ray["best_params"]
    low, high = by_ray["honest_interval"]
    assert low < again["honest_error"] == by_ray["honest_error"] < high
    assert "metrics was ['error'], got ['auc']" in tune_rows(
        *command, "--resume", "--metric", "auc", code=2
    )
    tune_rows(*command, "--force", "--budgets", "0.25,0.5", code=2)
    assert (tmp_path / "by_ray.ray" / "by_ray").is_dir()  # wrong input has not deleted it
    assert "--pruner must not be given" in tune_rows(
        *command, "--resume", "--pruner", "median", code=2
    )
    assert "none answers" in tune_rows(
        "--engine", "ray", "--address", "127.0.0.1:1", "--out", "nowhere", code=2
    )
