"""The searches of other packages and of ours, each as a function of one task.

Every peer searches the class costs C+ and C- of an SVM with the RBF kernel:

- `span_rule`, `span_smooth`, `span_exact`: `SpanObjective` on the grid, metric "error",
  "smooth_error", and "error" by ``loo_method="exact"``. One fit a point, which begins at the
  solution of another point, on a kernel matrix that is formed once, within the measured time. It
  takes a cost for each row.
- `grid_search`: ``GridSearchCV(SVC, cv=5)``, without the final fit. Five fits and five predictions
  a point; neither a kernel matrix nor the start of a fit is reused. It takes costs of rows, but not
  as a hyperparameter.
- `halving`: ``HalvingGridSearchCV``, the same folds, on all points with few rows and on few points
  with more. Its cost is divided by all points of the grid, few of which are fitted on all rows.
- `optuna_search`: ``OptunaSearchCV``, five folds, as many trials of TPE as the grid has points, in
  the same ranges. It prefers points with low errors, so that its points, and the fits it is
  compared with, differ from those of the grid. Its cost includes that of the sampler.
- `libsvm`: ``svm_train`` with ``-v 5``: five fits a point in C++, on sparse rows that are converted
  once; where zeros are scattered, as in splice, its products of rows are slow (without zeros, by
  adding 1 to all features, a fit there takes a third). Folds are drawn anew for every point, so
  points are compared with noise. It takes no costs of rows. It is built with OpenMP: without a
  limit of threads its CPU time can be a hundred times as long.
- `dlib`: ``cross_validate_trainer`` of ``svm_c_trainer_radial_basis``: five fits a point in C++;
  folds are blocks of rows in the given order. It takes no costs of rows.
- `opencv`: ``SVM.trainAuto`` searches C for given class weights: one call for each diagonal of the
  grid visits all points, five fits each, and ends with a fit of all rows. The tolerance is
  LIBSVM's, 1e-3. It does not report the error it finds, so that it cannot choose between class
  weights: the model is that of equal weights. It computes in single precision and takes no costs of
  rows.
- `liquidsvm`: liquidSVM's ``SVM`` in its ROC scenario, five folds. Its grid is costs times class
  weights, as many as the grid has, over the same range of costs and ratios from 2^-8 to 2^8: not
  the same points. Its SVM has *no offset*, so it is another model. It keeps the kernel matrix of a
  fold and starts every fit from the one before; points are cheap because they come as a grid. Its
  model is the vote of the folds, each with its own best cost for the weight that is picked: a fit
  of all rows (``RETRAIN_METHOD=0``) predicts one class only in version 1.0.1. It takes no costs of
  rows.
"""

import contextlib
import functools
import importlib
import io
import math
import sys
import sysconfig
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from types import ModuleType
from typing import Any

import numpy as np
import optuna
from sklearn.experimental import enable_halving_search_cv  # noqa: F401  # adds the next name
from sklearn.model_selection import GridSearchCV, HalvingGridSearchCV
from sklearn.svm import SVC

from span_hpo import RBF, SpanObjective
from span_hpo.runtime import FloatArray

FOLDS = 5
_SEED = 0
_TOLERANCE = 1e-3  # for the fits of OpenCV, as in LIBSVM
_MANY_STEPS = 10_000_000  # so that the tolerance ends the fits of OpenCV
_VALIDATION_ERROR = 7  # its column in the array that the training of liquidSVM returns

Costs = tuple[float, float]  # C+ and C-


@dataclass(frozen=True, eq=False)
class Task:
    """The task of a peer: rows, the width of the kernel, and the costs of either class."""

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
    """The result of a search.

    Attributes
    ----------
    picked
        Costs of the model that is selected.
    visited
        Costs of every point that was judged.
    loss
        The peer's own estimate of the error of its pick; None if it does not report one.
    predict
        Function from features to labels, if the peer leaves a model of its own.
    """

    picked: Costs
    visited: list[Costs]
    loss: float | None
    predict: Callable[[FloatArray], FloatArray] | None = None


@dataclass(frozen=True)
class Peer:
    """A search of another package or of ours.

    Attributes
    ----------
    title
        Name in tables.
    distribution
        Name of the package for pip.
    search
        Function that carries out a task.
    load
        Function that imports what the search needs, or raises ImportError.
    on_grid
        True if the search visits exactly the points of the grid.
    """

    title: str
    distribution: str
    search: Callable[[Task], Found]
    load: Callable[[], Any]
    on_grid: bool = True


def _class_weight(point: Costs) -> dict[int, float]:
    C_pos, C_neg = point
    return {1: C_pos, -1: C_neg}


def _least(points: list[Costs], losses: list[float]) -> Found:
    """Return the first of the points with the least loss."""
    best = int(np.argmin(losses))
    return Found(points[best], points, float(losses[best]))


def _span(task: Task, **settings: Any) -> Found:
    """Search by leave-one-out values; `Evaluation.rank` breaks ties."""
    objective = SpanObjective(task.X, task.y, kernel=RBF(gamma=task.gamma), **settings)
    points = [{"C_1": C_pos, "C_-1": C_neg} for C_pos, C_neg in task.points]
    evaluations = objective.evaluate_all(points, certify=False)
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
        Width of the RBF kernel.
    C_pos, C_neg
        Cost of a row of class +1 and -1.
    """

    def __init__(self, gamma: float = 1.0, C_pos: float = 1.0, C_neg: float = 1.0) -> None:
        super().__init__(gamma=gamma)
        self.C_pos = C_pos
        self.C_neg = C_neg

    def fit(self, X: FloatArray, y: FloatArray) -> "TwoCostSVC":
        """Fit with the cost of its class for each row."""
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
    with contextlib.redirect_stdout(io.StringIO()):  # LIBSVM prints every accuracy
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
        model.setClassWeights(np.array([1.0, step**shift]))  # for -1 and for +1
        model.setTermCriteria((cv2.TERM_CRITERIA_EPS, _MANY_STEPS, _TOLERANCE))
        # OpenCV excludes the end of a grid.
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
        loss_type="0 -1.0 1.0 1.0",  # the plain error, not the weighted one
    )
    # Rows are ordered by fold, then by weight, then by cost.
    of_points = model.train().reshape(FOLDS, len(weights), len(costs), -1)
    errors = of_points[..., _VALIDATION_ERROR].mean(axis=0)
    i, j = np.unravel_index(np.argmin(errors), errors.shape)
    loss = float(errors[i, j])
    model.set("weight_number", i + 1)
    model.select()
    model.set("loss_type", "0")  # the other form is not allowed in tests

    def predict(X: FloatArray) -> FloatArray:
        any_labels = np.resize([-1.0, 1.0], len(X))  # it needs labels of both classes
        labels: FloatArray = model.test(X, any_labels)[0][:, 0].copy()
        return labels

    visited = [(float(C * w), float(C * (1 - w))) for w, C in product(weights, costs)]
    return Found(visited[i * len(costs) + j], visited, loss, predict)


def _fixed_point(values: FloatArray) -> list[str]:
    """Return numbers without exponents, which liquidSVM cannot read."""
    return [f"{value:.15f}" for value in values]


def _load_liquidsvm() -> ModuleType:
    """Import liquidSVM 1.0.1, which needs two things that Python no longer has."""
    sysconfig.get_config_vars().setdefault("SO", sysconfig.get_config_var("EXT_SUFFIX"))
    stub = "pkg_resources" not in sys.modules
    if stub:
        # liquidSVM uses it for its own data sets only.
        sys.modules["pkg_resources"] = ModuleType("pkg_resources")
    try:
        return importlib.import_module("liquidSVM")
    except NameError as error:
        raise ImportError(f"liquidSVM did not find its compiled part ({error}).") from error
    finally:
        if stub:
            del sys.modules["pkg_resources"]


def importer(module: str) -> Callable[[], ModuleType]:
    """Return a function that imports a module."""
    return functools.partial(importlib.import_module, module)


PEERS = {
    "span_rule": Peer("span_hpo, span-rule", "span-hpo", _span, importer("span_hpo")),
    "span_smooth": Peer(
        "span_hpo, smooth error",
        "span-hpo",
        functools.partial(_span, metric="smooth_error"),
        importer("span_hpo"),
    ),
    "span_exact": Peer(
        "span_hpo, exact",
        "span-hpo",
        functools.partial(_span, loo_method="exact"),
        importer("span_hpo"),
    ),
    "grid_search": Peer(
        "`GridSearchCV`",
        "scikit-learn",
        functools.partial(_scikit_learn, search=GridSearchCV),
        importer("sklearn"),
    ),
    "halving": Peer(
        "`HalvingGridSearchCV`",
        "scikit-learn",
        functools.partial(_scikit_learn, search=HalvingGridSearchCV, random_state=_SEED),
        importer("sklearn"),
    ),
    "optuna_search": Peer(
        "`OptunaSearchCV`",
        "optuna-integration",
        _optuna_search,
        importer("optuna_integration.sklearn"),
        on_grid=False,
    ),
    "libsvm": Peer("LIBSVM `-v 5`", "libsvm-official", _libsvm, importer("libsvm.svmutil")),
    "dlib": Peer("dlib", "dlib", _dlib, importer("dlib")),
    "opencv": Peer("OpenCV `trainAuto`", "opencv-python-headless", _opencv, _load_opencv),
    "liquidsvm": Peer("liquidSVM", "liquidSVM", _liquidsvm, _load_liquidsvm, on_grid=False),
}
