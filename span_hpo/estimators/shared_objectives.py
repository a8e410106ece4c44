"""Evaluate candidates by objectives that share features, distances and kernel matrices.

The features that transformers make depend on their own parameters only, and distances depend on
the features only. So there is one objective for each setting of the transformers and each kind of
kernel. All widths and costs are points of it.
"""

import inspect
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array

from span_hpo.errors import SolverError
from span_hpo.estimators.defaults import AUTO, chosen_loo_method
from span_hpo.estimators.leaks import steps_that_depend_on_labels
from span_hpo.estimators.pipelines import Parts, configured, parts_of
from span_hpo.estimators.row_weights import WEIGHT, row_weighted
from span_hpo.estimators.search_rows import TrainingRows
from span_hpo.estimators.svc_arguments import SVCArguments
from span_hpo.kernels import (
    RBF,
    FunctionKernel,
    Kernel,
    Laplacian,
    Polynomial,
    default_memory_limit,
)
from span_hpo.objective import SpanObjective
from span_hpo.runtime import IndexArray, Memo, OutOfTimeError, key_of, plain, real
from span_hpo.space import Float, Int
from span_hpo.weighting import ClassCosts

# Points may lie outside of the ranges of a space, so that any range will do for what is searched.
_ANY_NUMBER = Float(1e-3, 1e3, log=True)
_FAMILIES: dict[type, dict[str, Any]] = {
    RBF: {"gamma": _ANY_NUMBER},
    Laplacian: {"gamma": _ANY_NUMBER},
    Polynomial: {"degree": Int(1, 10), "gamma": _ANY_NUMBER, "coef0": Float(0.0, 10.0)},
}
_MOST_OBJECTIVES = 16
_MATRICES = 2.5  # matrices of an objective: statistic, kernel, and LIBSVM's in single precision


class CandidateError(Exception):
    """The transformers, the fit or the scores of one candidate have failed, as others need not."""


@contextmanager
def failures_of_candidate() -> Iterator[None]:
    """Turn what a solver or a user's transformer, kernel or score raises into a `CandidateError`.

    That there is no time left says nothing about the candidate, and is passed on.
    """
    try:
        yield
    except OutOfTimeError:
        raise
    except SolverError as error:
        raise CandidateError(str(error)) from error
    except Exception as error:
        raise CandidateError(f"{type(error).__name__}: {error}") from error


@dataclass(frozen=True, eq=False)
class Placed:
    """A candidate as a point of an objective.

    Attributes
    ----------
    objective
        Objective, which other candidates share.
    point
        Hyperparameters of the objective.
    """

    objective: SpanObjective
    point: dict[str, Any]

    @property
    def batch(self) -> tuple[int, str]:
        """Key of the candidates that share the objective and the kernel matrix."""
        kernel = [self.point[name] for name in self.objective.kernel.space]
        return id(self.objective), repr(kernel)


class SharedObjectives:
    """The objectives of candidates, of which the latest are kept.

    Parameters
    ----------
    estimator
        The SVM, or the pipeline that ends in it.
    rows
        Training rows.
    metrics
        Metrics of the objectives.
    loo_method
        Method of leave-one-out, or "auto".
    memory_limit
        Megabytes for the matrices of all objectives; by default a quarter of the machine's memory.
    """

    def __init__(
        self,
        estimator: Any,
        rows: TrainingRows,
        *,
        metrics: tuple[Any, ...],
        loo_method: str,
        memory_limit: float | None,
    ) -> None:
        self.estimator = estimator
        self.rows = rows
        self.metrics = metrics
        self.loo_method = loo_method
        if memory_limit is None:
            memory_limit = default_memory_limit()
        self._limit = real("memory_limit", memory_limit, at_least=0)
        most = _most_objectives(rows, self._limit)
        self._features: Memo[Any] = Memo(most=most)
        self._objectives: Memo[SpanObjective] = Memo(most=most)
        self._lock = threading.Lock()

    def placed(self, candidate: Mapping[str, Any]) -> Placed:
        """Return the objective and the point of a candidate.

        Raises
        ------
        ValueError
            If the transformers look at the labels, or the SVM has no leave-one-out values.
        CandidateError
            If the transformers or the kernel fail.
        """
        estimator = configured(self.estimator, candidate)
        parts = parts_of(estimator)
        arguments = parts.arguments
        setting = self.setting_of(candidate, parts.prefix)
        features = self._features.get(setting, lambda: self._transformed(estimator, parts))
        kernel = arguments.kernel_of(features)
        family = _FAMILIES.get(type(kernel), {})
        key = (
            setting,
            type(kernel),
            None if family else _identity(kernel),
            arguments.tol,
            arguments.max_iter,
        )
        objective = self._objectives.get(
            key, lambda: self._objective(features, _searched(kernel, family), arguments)
        )
        values = kernel.values({})
        costs = arguments.class_costs(self.rows.y)
        point = {name: values[name] for name in family}
        for number, label in enumerate(objective.data.classes.tolist()):
            point[_cost_name(number)] = costs[label]
        return Placed(objective, point)

    def setting_of(self, candidate: Mapping[str, Any], prefix: str) -> Any:
        """Return a key that equals for candidates with the same transformers."""
        setting = {
            name: plain(value)
            for name, value in sorted(candidate.items())
            if prefix and not name.startswith(prefix)
        }
        return key_of(setting)

    def _transformed(self, estimator: Any, parts: Parts) -> Any:
        """Return the features of all rows, after making sure that they do not know the labels."""
        X, y = self.rows.X, self.rows.y
        if parts.transformers is None:
            features = _checked_features(X)
        else:
            with failures_of_candidate():
                leaking = steps_that_depend_on_labels(estimator.steps, X, y)
            if leaking:
                name = leaking[0]
                raise ValueError(
                    "`estimator` must have transformers that do not look at the labels, because "
                    "they are fitted to all rows before the SVM is judged, but the step "
                    f"{name!r} ({type(estimator.named_steps[name]).__name__}) does, and the "
                    "leave-one-out score would be far too good. Use GridSearchCV with folds for it."
                )
            with failures_of_candidate():
                X = parts.transformers.fit_transform(X, y, **self.rows.fit_params)
                features = _checked_features(X)
        if features.shape[0] != len(y):
            raise ValueError(
                "`estimator` must have transformers that keep all rows, got "
                f"{features.shape[0]} rows from {len(y)}."
            )
        return features

    def _objective(self, features: Any, kernel: Kernel, arguments: SVCArguments) -> SpanObjective:
        rows = self.rows
        kept = rows.kept
        if len(kept) < len(rows.y):
            features = _chosen(features, kept, is_kernel=arguments.is_precomputed)
        y = rows.y[kept]
        names = tuple(_cost_name(number) for number in range(len(np.unique(y))))
        weighting: Any = ClassCosts(names=names)
        weight = None if rows.weight is None else rows.weight[kept]
        if weight is not None and rows.weights_costs:
            weighting = row_weighted(weighting)
        objective = SpanObjective(
            features,
            y,
            kernel=kernel,
            weighting=weighting,
            metric=self.metrics,
            loo_method="span" if self.loo_method == AUTO else self.loo_method,
            scores=None if weight is None else {WEIGHT: weight},
            metric_weight=weight,
            tol=arguments.tol,
            max_iter=arguments.max_iter,
            memory_limit=self._limit,
        )
        with self._lock:
            if self.loo_method == AUTO:  # the first objective decides for all
                with failures_of_candidate():
                    self.loo_method = chosen_loo_method(objective)
            objective.loo_method = self.loo_method
        return objective


def _checked_features(X: Any) -> Any:
    return check_array(
        X, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2, input_name="X"
    )


def _chosen(features: Any, kept: IndexArray, *, is_kernel: bool) -> Any:
    """Return some rows, of a kernel matrix with their columns."""
    if not is_kernel:
        return features[kept]
    if features.shape[0] != features.shape[1]:
        raise ValueError(f"`X` must be a square kernel matrix, got shape {features.shape}.")
    return features[np.ix_(kept, kept)]


def _identity(kernel: Kernel) -> Any:
    """Return a key that equals for kernels that are the same, also if they were cloned."""
    if isinstance(kernel, FunctionKernel) and inspect.isroutine(kernel.function):
        return id(kernel.function), key_of(dict(kernel.hyperparameters))
    return key_of({"kernel": kernel})


def _searched(kernel: Kernel, family: Mapping[str, Any]) -> Kernel:
    """Return a kernel of the same kind whose hyperparameters are searched."""
    return type(kernel)(**family) if family else kernel


def _cost_name(number: int) -> str:
    return f"cost of class {number}"


def _most_objectives(rows: TrainingRows, limit: float) -> int:
    """Return how many objectives fit into the memory limit, at least one."""
    count = len(rows.y)
    columns = rows.X.shape[1] if hasattr(rows.X, "shape") and len(rows.X.shape) > 1 else 0
    each = 8e-6 * (_MATRICES * count**2 + 2 * count * columns)
    return max(1, min(_MOST_OBJECTIVES, int(limit / each)))
