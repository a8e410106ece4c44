"""What one pair of class costs costs to judge, and what is picked, by other packages and by ours.

Every peer searches the class costs C+ and C- of an SVM with the RBF kernel and gamma = 1/d on the
training rows, in one process on one thread. `cpu_seconds` is CPU time of the whole search without
imports and compilation: each peer first searches the corners of the grid. Right after it
scikit-learn's ``SVC.fit`` is timed at every point the search has visited; on small sets both are
repeated, for every peer alike, and the least time counts. `svc_fit_ms` is the median of these fits
and `fits_seconds` their sum. `ratio_to_fit` is the mean CPU time of a point in median fits;
`ratio_to_fits`, a sum by a sum, is how many fits at the same points a point is worth. `loss` is
what the peer thinks of its pick; `test_error` is that of its own model if it leaves one, else of an
``SVC`` with the costs it picked, fitted on all training rows.

- `span_rule`, `span_smooth`, `span_exact`: `SpanObjective` on the grid, metric "error",
  "smooth_error", and "error" by ``loo_method="exact"``. One fit a point, on a kernel matrix that is
  formed once and counted. Takes a cost per row.
- `grid_search`: ``GridSearchCV(SVC, cv=5)``, without the final fit. Five fits and five predictions
  a point, from nothing: no kernel matrix, no start is kept. Takes costs per row, not as a
  hyperparameter.
- `halving`: ``HalvingGridSearchCV``, the same folds, on all points with few rows and on few points
  with more. Its cost is divided by all points of the grid, few of which ever see all rows.
- `optuna_search`: ``OptunaSearchCV``, five folds, as many trials of TPE as the grid has points, in
  the same ranges. It goes where errors are low, so its points, and the fits it is compared with,
  are others than the grid's. Its cost contains the sampler's.
- `libsvm`: ``svm_train`` with ``-v 5``: five fits a point in C++, on sparse rows that are converted
  once; where zeros are scattered, as in splice, its products of rows are slow (without zeros, by
  adding 1 to all features, a fit there takes a third). Folds are drawn anew for every point, so
  points are compared with noise. No costs per row. Built with OpenMP: without a limit of threads
  its CPU time can be a hundred times more.
- `dlib`: ``cross_validate_trainer`` of ``svm_c_trainer_radial_basis``: five fits a point in C++;
  folds are blocks of rows in the given order. No costs per row.
- `opencv`: ``SVM.trainAuto`` searches C for given class weights: one call for each diagonal of the
  grid visits all points, five fits each, and ends with a fit of all rows. The tolerance is
  LIBSVM's, 1e-3. It does not tell the error it finds, so it cannot choose between class weights:
  the model is that of equal weights. Single precision; no costs per row.
- `liquidsvm`: liquidSVM's ``SVM`` in its ROC scenario, five folds. Its grid is costs times class
  weights, as many as the grid has, over the same range of costs and ratios from 2^-8 to 2^8: not
  the same points. Its SVM has *no offset*, so it is another model. It keeps the kernel matrix of a
  fold and starts every fit from the one before; points are cheap because they come as a grid. Its
  model is the vote of the folds, each with its own best cost for the weight that is picked: a fit
  of all rows (``RETRAIN_METHOD=0``) predicts one class only in version 1.0.1. No costs per row.

A peer that cannot be imported is left out with a message, and has no row.
"""

import contextlib
import functools
import importlib
import io
import math
import sys
import sysconfig
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from statistics import median
from types import ModuleType
from typing import Any

import numpy as np
import optuna
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # adds the next name
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.svm import SVC

from benchmarks.harness.data import load
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import (
    RESULTS,
    Options,
    ResultFile,
    combinations,
    complete_csv,
    read_rows,
)
from span_hpo import RBF, SpanObjective
from span_hpo.runtime import FloatArray
from span_hpo.weighting import COST_RANGE

DATASETS = ["ida_banana", "ida_waveform", "ida_image", "splice"]
OPTIONS = ("jobs", "quick")
COSTS: list[float] = COST_RANGE.grid(9)  # of either class: 2^(k/2 - 6), k = 0, 4...32
QUICK_COSTS: list[float] = COST_RANGE.grid(3)
FOLDS = 5
_SEED = 0
_REPEATS = 3  # of a search and its fits on a small set, of any peer; the least time counts
_MANY_ROWS = 1000  # from here on once: a search takes seconds
_TOLERANCE = 1e-3  # of OpenCV's fits, as in LIBSVM
_MANY_STEPS = 10_000_000  # of OpenCV's fits: the tolerance ends them
_VALIDATION_ERROR = 7  # column of what liquidSVM returns of its training

Costs = tuple[float, float]  # C+ and C-


@dataclass(frozen=True, eq=False)
class Task:
    """What a peer is given: rows, the width of the kernel, and the costs of either class."""

    X: FloatArray
    y: FloatArray
    gamma: float
    costs: list[float]

    @property
    def points(self) -> list[Costs]:
        """All pairs of costs."""
        return list(product(self.costs, self.costs))

    def svc(self, point: Costs) -> SVC:
        """Return scikit-learn's model with these costs, not fitted."""
        return SVC(C=1.0, gamma=self.gamma, class_weight=_class_weight(point))


@dataclass(frozen=True, eq=False)
class Found:
    """What a search ends with.

    Attributes
    ----------
    picked
        Costs of the model that is selected.
    visited
        Costs of every point that was judged.
    loss
        What the peer thinks of its pick; None if it does not tell.
    predict
        The peer's own model, if it leaves one: features to labels.
    """

    picked: Costs
    visited: list[Costs]
    loss: float | None
    predict: Callable[[FloatArray], FloatArray] | None = None


@dataclass(frozen=True)
class Peer:
    """A search, the package it comes from, and how that is imported.

    Attributes
    ----------
    title
        How tables call it.
    distribution
        Name of the package for pip.
    search
        Function of a task.
    load
        Imports what the search needs, or raises ImportError.
    on_grid
        Whether it visits the points of the grid, and not others.
    """

    title: str
    distribution: str
    search: Callable[[Task], Found]
    load: Callable[[], Any]
    on_grid: bool = True


def run(options: Options) -> ResultFile:
    """Measure every installed peer that is not in the CSV yet."""
    names = options.datasets or (DATASETS[:1] if options.quick else DATASETS)
    costs = QUICK_COSTS if options.quick else COSTS
    points = combinations(dataset=names, peer=installed())
    # One process: two at a time would share the caches of the machine.
    return complete_csv(
        options.folder / "peers.csv",
        points,
        functools.partial(measure, costs=costs),
        columns=[
            "rows",
            "points",
            "repeats",
            "cpu_seconds",
            "cpu_per_point_ms",
            "svc_fit_ms",
            "fits_seconds",
            "ratio_to_fit",
            "ratio_to_fits",
            "loss",
            "test_error",
            "C_pos",
            "C_neg",
            "version",
        ],
    )


def installed() -> list[str]:
    """Return the keys of the peers that can be imported; say of the others why not."""
    keys = []
    for key, peer in PEERS.items():
        try:
            peer.load()
        except ImportError as error:
            print(f"{peer.title} is left out, {peer.distribution} is not installed: {error}")
        else:
            keys.append(key)
    return keys


def measure(point: Mapping[str, Any], costs: list[float]) -> dict[str, Any]:
    """Let one peer search one data set, then fit scikit-learn's model wherever it was."""
    split, peer = load(point["dataset"]), PEERS[point["peer"]]
    task = Task(split.X_train, split.y_train, 1 / split.X_train.shape[1], costs)
    peer.search(Task(task.X, task.y, task.gamma, [costs[0], costs[-1]]))  # loads and compiles
    repeats = _REPEATS if len(task.y) < _MANY_ROWS else 1
    found, seconds, fits = _timed(peer, task)
    for _ in range(repeats - 1):
        _, again, fits_again = _timed(peer, task)
        seconds, fits = min(seconds, again), list(map(min, fits, fits_again))
    predict = found.predict or task.svc(found.picked).fit(task.X, task.y).predict
    per_point = seconds / len(found.visited)
    return {
        "rows": len(task.y),
        "points": len(found.visited),
        "repeats": repeats,
        "cpu_seconds": round(seconds, 5),
        "cpu_per_point_ms": round(1e3 * per_point, 5),
        "svc_fit_ms": round(1e3 * median(fits), 5),
        "fits_seconds": round(sum(fits), 5),
        "ratio_to_fit": round(per_point / median(fits), 4),
        "ratio_to_fits": round(seconds / sum(fits), 4),
        "loss": "" if found.loss is None else found.loss,
        "test_error": float(np.mean(predict(split.X_test) != split.y_test)),
        "C_pos": found.picked[0],
        "C_neg": found.picked[1],
        "version": metadata.version(peer.distribution),
    }


def table(path: Path = RESULTS / "peers.csv") -> str:
    """Return the cost of a point and the test error of every peer, from the CSV.

    Peers that visit the grid share one time of a fit, the median of theirs: the machine may have
    been busy during the fits of one of them.
    """
    rows = {(row["dataset"], row["peer"]): row for row in read_rows(path)}
    names = list(dict.fromkeys(dataset for dataset, _ in rows))
    fits = {
        name: median(
            float(row["svc_fit_ms"])
            for (dataset, key), row in rows.items()
            if dataset == name and PEERS[key].on_grid
        )
        for name in names
    }
    lines = [
        [peer.title, *(_cost_and_error(peer, rows.get((name, key)), fits[name]) for name in names)]
        for key, peer in PEERS.items()
    ]
    lines.append(["`SVC.fit`, median, ms", *(f"{fit:.3g}" for fit in fits.values())])
    return markdown_table(["point / `SVC.fit` (test error)", *names], lines)


def _cost_and_error(peer: Peer, row: Mapping[str, str] | None, grid_fit_ms: float) -> str:
    if row is None:
        return "not installed"
    fit = grid_fit_ms if peer.on_grid else float(row["svc_fit_ms"])
    return f"{float(row['cpu_per_point_ms']) / fit:.2f} ({float(row['test_error']):.4f})"


def _class_weight(point: Costs) -> dict[int, float]:
    C_pos, C_neg = point
    return {1: C_pos, -1: C_neg}


def _timed(peer: Peer, task: Task) -> tuple[Found, float, list[float]]:
    """Return what is found, the CPU time of the search, and that of a fit wherever it was."""
    start = time.process_time()
    found = peer.search(task)
    seconds = time.process_time() - start
    return found, seconds, [_fit_seconds(task, point) for point in found.visited]


def _fit_seconds(task: Task, point: Costs) -> float:
    svc = task.svc(point)
    start = time.process_time()
    svc.fit(task.X, task.y)
    return time.process_time() - start


def _least(points: list[Costs], losses: list[float]) -> Found:
    """Return the first of the points with the least loss."""
    best = int(np.argmin(losses))
    return Found(points[best], points, float(losses[best]))


def _span(task: Task, **settings: Any) -> Found:
    """Search by leave-one-out values; ties go where `Evaluation.rank` puts them."""
    objective = SpanObjective(task.X, task.y, kernel=RBF(gamma=task.gamma), **settings)
    evaluations = [
        objective.evaluate({"C_1": C_pos, "C_-1": C_neg}, certify=False)
        for C_pos, C_neg in task.points
    ]
    best = min(evaluations, key=lambda evaluation: evaluation.rank)
    return Found((best.params["C_1"], best.params["C_-1"]), task.points, best.loss)


def _scikit_learn(task: Task, search: Callable[..., Any], **settings: Any) -> Found:
    weights = [_class_weight(point) for point in task.points]
    found = search(
        SVC(gamma=task.gamma), {"class_weight": weights}, cv=FOLDS, refit=False, **settings
    ).fit(task.X, task.y)
    picked = found.best_params_["class_weight"]
    return Found((picked[1], picked[-1]), task.points, 1 - float(found.best_score_))


class TwoCostSVC(SVC):  # type: ignore[misc]  # not typed
    """``SVC`` whose class costs are two numbers, as `OptunaSearchCV` needs.

    Parameters
    ----------
    gamma
        Of the RBF kernel.
    C_pos, C_neg
        Cost of a row of class +1 and -1.
    """

    def __init__(self, gamma: float = 1.0, C_pos: float = 1.0, C_neg: float = 1.0) -> None:
        super().__init__(gamma=gamma)
        self.C_pos = C_pos
        self.C_neg = C_neg

    def fit(self, X: FloatArray, y: FloatArray) -> "TwoCostSVC":
        """Fit with a cost for each row, that of its class."""
        super().fit(X, y, np.where(y > 0, self.C_pos, self.C_neg))
        return self


def _optuna_search(task: Task) -> Found:
    integration = importlib.import_module("optuna_integration.sklearn")
    costs = optuna.distributions.FloatDistribution(task.costs[0], task.costs[-1], log=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # Experimental, and built on a part of Optuna that is deprecated.
        warnings.simplefilter("ignore")
        found = integration.OptunaSearchCV(
            TwoCostSVC(gamma=task.gamma),
            {"C_pos": costs, "C_neg": costs},
            cv=FOLDS,
            n_trials=len(task.points),
            random_state=_SEED,
            refit=False,
        ).fit(task.X, task.y)
    visited = [(trial.params["C_pos"], trial.params["C_neg"]) for trial in found.trials_]
    return Found(visited[found.best_index_], visited, 1 - found.best_score_)


def _libsvm(task: Task) -> Found:
    svmutil = importlib.import_module("libsvm.svmutil")
    problem = svmutil.svm_problem(task.y, task.X)
    settings = f"-q -v {FOLDS} -g {task.gamma!r}"
    with contextlib.redirect_stdout(io.StringIO()):  # it prints every accuracy
        losses = [
            1 - svmutil.svm_train(problem, f"{settings} -w1 {C_pos!r} -w-1 {C_neg!r}") / 100
            for C_pos, C_neg in task.points
        ]
    return _least(task.points, losses)


def _dlib(task: Task) -> Found:
    dlib = importlib.import_module("dlib")
    X = dlib.vectors()
    X.extend([dlib.vector(row) for row in task.X.tolist()])
    y = dlib.array(task.y.tolist())
    trainer = dlib.svm_c_trainer_radial_basis()
    trainer.gamma = task.gamma
    share = float(np.mean(task.y > 0))
    losses = []
    for C_pos, C_neg in task.points:
        trainer.c_class1, trainer.c_class2 = C_pos, C_neg
        right = dlib.cross_validate_trainer(trainer, X, y, FOLDS)
        losses.append(1 - share * right.class1_accuracy - (1 - share) * right.class2_accuracy)
    return _least(task.points, losses)


def _opencv(task: Task) -> Found:
    """Search one diagonal of the grid after the other; the last one has equal weights."""
    cv2 = _load_opencv()
    X, y, n = task.X.astype(np.float32), task.y.astype(np.int32), len(task.costs)
    step = task.costs[1] / task.costs[0]
    as_given = cv2.ml.ParamGrid_create(1, 1, 0)
    for shift in sorted(range(1 - n, n), key=abs, reverse=True):
        negative = [task.costs[i] for i in range(n) if 0 <= i + shift < n]
        model = cv2.ml.SVM_create()
        model.setType(cv2.ml.SVM_C_SVC)
        model.setKernel(cv2.ml.SVM_RBF)
        model.setGamma(task.gamma)
        model.setClassWeights(np.array([1.0, step**shift]))  # of -1 and of +1
        model.setTermCriteria((cv2.TERM_CRITERIA_EPS, _MANY_STEPS, _TOLERANCE))
        # The end of a grid does not belong to it.
        costs = cv2.ml.ParamGrid_create(negative[0], negative[-1] * math.sqrt(step), step)
        model.trainAuto(X, cv2.ml.ROW_SAMPLE, y, FOLDS, costs, *5 * [as_given], balanced=True)
    C = model.getC()

    def predict(X: FloatArray) -> FloatArray:
        labels: FloatArray = model.predict(X.astype(np.float32))[1][:, 0]
        return labels

    return Found((C, C), task.points, None, predict)


def _load_opencv() -> ModuleType:
    """Import OpenCV for one thread; version 5 has no SVM."""
    cv2 = importlib.import_module("cv2")
    if not hasattr(cv2, "ml"):
        raise ImportError(f"OpenCV {cv2.__version__} has no module `ml`, versions before 5 have.")
    cv2.setNumThreads(1)
    return cv2


def _liquidsvm(task: Task) -> Found:
    """Search weights w and costs C, where C+ = C w and C- = C (1 - w)."""
    ratios = np.array(task.costs) / task.costs[len(task.costs) // 2]
    weights = ratios / (1 + ratios)
    costs = 2 * np.array(task.costs)  # equal weights are halves
    model = _load_liquidsvm().SVM(
        task.X,
        task.y,
        scenario="ROC",
        threads=1,
        folds=FOLDS,
        random_seed=_SEED,
        gammas=[1 / math.sqrt(task.gamma)],  # its kernel is exp(-|x - z|^2 / gamma^2)
        c_values=_fixed_point(costs),
        weights=_fixed_point(weights),
        loss_type="0 -1.0 1.0 1.0",  # the error, all rows alike, and not the weighted one
    )
    # One fold after the other, in each one weight after the other.
    of_points = model.train().reshape(FOLDS, len(weights), len(costs), -1)
    errors = of_points[..., _VALIDATION_ERROR].mean(axis=0)
    i, j = np.unravel_index(np.argmin(errors), errors.shape)
    loss = float(errors[i, j])
    model.set("weight_number", i + 1)
    model.select()
    model.set("loss_type", "0")  # the other form is not for tests

    def predict(X: FloatArray) -> FloatArray:
        any_labels = np.resize([-1.0, 1.0], len(X))  # it wants some, and both
        labels: FloatArray = model.test(X, any_labels)[0][:, 0].copy()
        return labels

    visited = [(float(C * w), float(C * (1 - w))) for w, C in product(weights, costs)]
    return Found(visited[i * len(costs) + j], visited, loss, predict)


def _fixed_point(values: FloatArray) -> list[str]:
    """Return numbers as liquidSVM reads them: it knows no exponents."""
    return [f"{value:.15f}" for value in values]


def _load_liquidsvm() -> ModuleType:
    """Import liquidSVM 1.0.1, which asks for two things that are gone from Python."""
    sysconfig.get_config_vars().setdefault("SO", sysconfig.get_config_var("EXT_SUFFIX"))
    stub = "pkg_resources" not in sys.modules
    if stub:
        sys.modules["pkg_resources"] = ModuleType("pkg_resources")  # for its own data sets only
    try:
        return importlib.import_module("liquidSVM")
    except NameError as error:
        raise ImportError(f"liquidSVM did not find its compiled part ({error}).") from error
    finally:
        if stub:
            del sys.modules["pkg_resources"]


def _loads(module: str) -> Callable[[], ModuleType]:
    return functools.partial(importlib.import_module, module)


PEERS = {
    "span_rule": Peer("span_hpo, span-rule", "span-hpo", _span, _loads("span_hpo")),
    "span_smooth": Peer(
        "span_hpo, smooth error",
        "span-hpo",
        functools.partial(_span, metric="smooth_error"),
        _loads("span_hpo"),
    ),
    "span_exact": Peer(
        "span_hpo, exact",
        "span-hpo",
        functools.partial(_span, loo_method="exact"),
        _loads("span_hpo"),
    ),
    "grid_search": Peer(
        "`GridSearchCV`",
        "scikit-learn",
        functools.partial(_scikit_learn, search=GridSearchCV),
        _loads("sklearn"),
    ),
    "halving": Peer(
        "`HalvingGridSearchCV`",
        "scikit-learn",
        functools.partial(_scikit_learn, search=HalvingGridSearchCV, random_state=_SEED),
        _loads("sklearn"),
    ),
    "optuna_search": Peer(
        "`OptunaSearchCV`",
        "optuna-integration",
        _optuna_search,
        _loads("optuna_integration.sklearn"),
        on_grid=False,
    ),
    "libsvm": Peer("LIBSVM `-v 5`", "libsvm-official", _libsvm, _loads("libsvm.svmutil")),
    "dlib": Peer("dlib", "dlib", _dlib, _loads("dlib")),
    "opencv": Peer("OpenCV `trainAuto`", "opencv-python-headless", _opencv, _load_opencv),
    "liquidsvm": Peer("liquidSVM", "liquidSVM", _liquidsvm, _load_liquidsvm, on_grid=False),
}
