"""From hyperparameters to a leave-one-out loss: the objective that every search minimises."""

import logging
import time
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC

from span_hpo.data import Dataset, as_dataset, not_negative
from span_hpo.kernels import KernelBlocks, KernelCache, Precomputed, as_kernel
from span_hpo.loo import METHODS, leave_one_out
from span_hpo.metrics import as_metrics
from span_hpo.objective.budgets import budgets_in_rows
from span_hpo.objective.description import described
from span_hpo.objective.evaluation import CrossValidation, Evaluation
from span_hpo.runtime import FloatArray, IndexArray, read_only, real, whole
from span_hpo.solver import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    DualSolution,
    PairwiseSolution,
    Problem,
    checked_costs,
    checked_max_iter,
    n_pairs_of,
    solve,
    solve_pairs,
)
from span_hpo.space import Params, Space, checked_params, grid, merged_space, started
from span_hpo.weighting import ClassCosts, Weighting, bind_to, is_weighting, sample_costs, starts_of

_logger = logging.getLogger(__name__)
_MODEL_TOL = 1e-5  # of the final model, which is fitted once
_NEGLIGIBLE_COST = 1e-12  # relative to the largest: stands for 0 where a row must stay


class SpanObjective:
    """Leave-one-out loss of a weighted SVM as a function of its hyperparameters.

    One evaluation is one fit. It is deterministic, may be called from several threads, which share
    the kernel cache, and can be pickled, without the cache.

    Parameters
    ----------
    X
        Features, shape (l, d), array or DataFrame; the kernel matrix for ``kernel="precomputed"``.
    y
        Labels, shape (l,), two or more values of any type; more than two are fitted pair by pair.
    kernel
        "rbf", "linear", "poly", "laplacian", "precomputed"; a kernel such as ``RBF(gamma=0.1)``; or
        a callable ``(X, Z) -> matrix``.
    weighting
        Rule that gives each row its cost; by default one searched cost per class.
    metric
        Name of a loss, callable ``(y, decision_values) -> loss`` (with an argument `weight` if
        there is a `metric_weight`), or a tuple of several.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit" or
        "stopping"; see `leave_one_out`.
    scores, groups
        What is known about each row, for the weighting.
    metric_weight
        Weight of each row in the metric, shape (l,).
    tol, max_iter
        Stopping tolerance and step limit of a fit; see `solve`.
    memory_limit
        Megabytes for kernel matrices, shared by all threads; by default a quarter of the machine's
        memory. Beyond it fits work on the features, and only the parts of the kernel matrix that
        are needed are formed, block by block (kernels rbf, linear and poly).

    Attributes
    ----------
    space
        The hyperparameters that are searched, by name.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        kernel: Any = "rbf",
        weighting: Weighting | None = None,
        metric: Any = "error",
        loo_method: str = "span",
        scores: Any = None,
        groups: Any = None,
        metric_weight: Any = None,
        tol: float = DEFAULT_TOL,
        max_iter: int = DEFAULT_MAX_ITER,
        memory_limit: float | None = None,
    ) -> None:
        if weighting is not None and not is_weighting(weighting):
            raise TypeError(
                "`weighting` must have `space` and `costs(data, params)`, such as ClassCosts(), "
                f"got {weighting!r}."
            )
        self.data = as_dataset(X, y, scores=scores, groups=groups)
        self.kernel = as_kernel(kernel).bind(self.data.X)
        self.weighting = bind_to(ClassCosts() if weighting is None else weighting, self.data)
        self.metrics = as_metrics(metric, weighted=metric_weight is not None)
        self.metric_weight = _as_weight(metric_weight, len(self.data))
        self.loo_method = as_loo_method(loo_method)
        self._needs_values = any(metric.needs_values for metric in self.metrics)
        self.tol = real("tol", tol, above=0)
        self.max_iter = checked_max_iter(max_iter)
        self.space: Space = merged_space(
            {"the kernel": self.kernel.space, "the weighting": self.weighting.space}
        )
        if memory_limit is not None:
            memory_limit = real("memory_limit", memory_limit, at_least=0)
        self._kernels = KernelCache(self.kernel, self.data.X, memory_limit)
        self._check_middle()

    def evaluate(
        self,
        params: Params,
        rows: int | None = None,
        *,
        certify: bool = True,
        complete: bool | None = None,
        loo_method: str | None = None,
    ) -> Evaluation:
        """Fit once and return the leave-one-out loss.

        Parameters
        ----------
        params
            A value for every name in `space`; it may lie outside its range.
        rows
            Use only this many rows: the first of one fixed stratified order, so that smaller
            subsets are contained in larger ones. Costs are not rescaled.
        certify
            Whether method "span" should prove what it can, which takes a part of a millisecond and
            more on large data. A call of the objective does not.
        complete
            Whether "exact" and "stopping" should go on until every value is known; by default if a
            metric needs values.
        loo_method
            Another method than that of the objective.

        Returns
        -------
        The loss and what led to it.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid.
        SolverError
            If the fit or its spans cannot be computed.
        """
        start = time.perf_counter()
        params = checked_params(self.space, params)
        chosen = self._chosen_rows(rows)
        data = self.data if chosen is None else self.data.take(chosen)
        weight = self.metric_weight if chosen is None else self.metric_weight[chosen]

        K = self._kernels.matrix(params, chosen)
        costs = self._costs(data, params)
        solution = self._solved(K, data, costs)
        loo = leave_one_out(
            solution,
            method=self.loo_method if loo_method is None else as_loo_method(loo_method),
            complete=self._needs_values if complete is None else complete,
            certify=certify,
        )
        losses = self._losses(data, loo.decision_values, weight)
        evaluation = Evaluation(
            loss=losses[self.metrics[0].name],
            losses=losses,
            loo=loo,
            params=params,
            n_rows=len(data),
            n_support=solution.n_support,
            n_in_bound=solution.n_in_bound,
            converged=solution.converged,
            seconds=time.perf_counter() - start,
            metric_weight=weight,
        )
        _logger.debug("%s -> %s in %.3g s", params, losses, evaluation.seconds)
        if loo.n_refit:
            _logger.info("%d of %d rows had to be refitted at %s", loo.n_refit, len(data), params)
        return evaluation

    def solution(self, params: Params) -> DualSolution | PairwiseSolution:
        """Return the fit of all rows: a `DualSolution` for two classes, from which `bounds` tell.

        Parameters
        ----------
        params
            A value for every name in `space`.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid.
        SolverError
            If the fit cannot be computed.
        """
        params = checked_params(self.space, params)
        return self._solved(self._kernels.matrix(params), self.data, self._costs(self.data, params))

    def __call__(self, params: Params) -> float:
        """Return the loss of the parameters; of several metrics, the first."""
        return self.evaluate(params, certify=False).loss

    def cross_validate(self, params: Params, folds: int = 5, *, seed: int = 0) -> CrossValidation:
        """Return the loss of as many fits as there are folds, on the same kernel matrix.

        Parameters
        ----------
        params
            A value for every name in `space`.
        folds
            Number of parts of the rows, each with its share of every class.
        seed
            Of the random parts.

        Returns
        -------
        The loss of the values of all rows together.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid, or a class has fewer rows than folds.
        """
        start = time.perf_counter()
        params, data = checked_params(self.space, params), self.data
        fewest = int(np.bincount(data.codes).min())
        folds = whole("folds", folds, at_least=2, at_most=max(2, fewest))
        K = self._kernels.matrix(params)
        costs = self._costs(data, params)
        n_pairs = n_pairs_of(len(data.classes))
        values = np.empty((len(data), n_pairs))
        parts = StratifiedKFold(folds, shuffle=True, random_state=seed).split(values, data.codes)
        for _, held_out in parts:
            # A row without cost takes no part in the fit, and yet gets its value.
            others = costs.copy()
            others[held_out] = 0.0
            others = checked_costs(others, data.codes, data.classes)
            fit = self._solved(K, data, others)
            values[held_out] = fit.decision_values.reshape(len(data), n_pairs)[held_out]
        values = read_only(values[:, 0] if n_pairs == 1 else values)
        losses = self._losses(data, values, self.metric_weight)
        return CrossValidation(
            losses[self.metrics[0].name], losses, values, folds, time.perf_counter() - start
        )

    def fit_model(self, params: Params) -> SVC:
        """Return scikit-learn's ``SVC``, fitted on all rows with these hyperparameters.

        Parameters
        ----------
        params
            A value for every name in `space`.

        Returns
        -------
        A model that predicts the labels of new rows.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid.
        """
        params = checked_params(self.space, params)
        data = self.data
        costs = self._costs(data, params)
        if isinstance(self.kernel, Precomputed):
            # New kernel matrices have a column for every row, so none may be dropped.
            costs = np.maximum(costs, _NEGLIGIBLE_COST * costs.max())
        kept = slice(None) if costs.all() else costs > 0
        model = SVC(
            C=1.0,
            tol=_MODEL_TOL,
            max_iter=self.max_iter,
            **self.kernel.svc_arguments(**self.kernel.values(params)),
        )
        # On class numbers: scikit-learn refuses some labels, such as 0.5 and 1.5 or dates.
        model.fit(self.data.X[kept], self.data.codes[kept], costs[kept])
        model.classes_ = self.data.classes.copy()
        if self.data.feature_names is not None:
            model.feature_names_in_ = self.data.feature_names
        return model

    def grid(self, points: int | Mapping[str, int]) -> dict[str, list[Any]]:
        """Return a list of values for every searched name.

        Parameters
        ----------
        points
            Number of values: one number for all, or a mapping that names every one.

        Returns
        -------
        Lists by name. A `Choice` gives all its options.
        """
        return grid(self.space, points)

    def defaults(self) -> list[dict[str, Any]]:
        """Return points to begin a search with.

        All pairs of what the kernel and the weighting suggest: widths of one over the number of
        features and over the median squared distance; equal costs of 1, and costs that make the
        classes weigh the same.

        Returns
        -------
        A value for every name in `space`, within its range; without repetition.
        """
        kernels = self.kernel.starts(self.data.X)
        weightings = starts_of(self.weighting, self.data)
        return started(self.space, [{**k, **w} for k in kernels for w in weightings])

    def budget_rows(self, budgets: Any) -> tuple[int, ...]:
        """Return budgets as numbers of rows.

        Parameters
        ----------
        budgets
            Increasing numbers of rows, or shares of all rows.

        Raises
        ------
        ValueError
            If they are not, or the least has too few rows to hold all classes.
        """
        return budgets_in_rows(budgets, self.data)

    def description(self) -> dict[str, Any]:
        """Return what the losses are about, as JSON can hold it, to tell objectives apart.

        Features count by their mean size: the last bits of a scaling may differ between machines.
        """
        data = self.data
        return {
            "rows": len(data),
            "features": data.X.shape[1],
            "mean size of the features": f"{abs(data.X).mean():.5g}",
            "classes": [str(label) for label in data.classes.tolist()],
            "checksum of the labels": zlib.crc32(data.codes.astype(np.int32).tobytes()),
            "metrics": [metric.name for metric in self.metrics],
            "loo_method": self.loo_method,
            "kernel": described(self.kernel),
            "weighting": described(self.weighting),
            "mean of the scores": {
                name: f"{scores.mean():.5g}" for name, scores in data.scores.items()
            },
            "parameters": sorted(self.space),
        }

    def _costs(self, data: Dataset, params: Params) -> FloatArray:
        costs = self.weighting.costs(data, params)
        return checked_costs(costs, data.codes, data.classes)

    def _solved(
        self, K: KernelBlocks, data: Dataset, costs: FloatArray
    ) -> DualSolution | PairwiseSolution:
        if len(data.classes) > 2:
            return solve_pairs(K, data.codes, costs, tol=self.tol, max_iter=self.max_iter)
        problem = Problem.of_checked(K, data.y, costs)
        return solve(problem, tol=self.tol, max_iter=self.max_iter)

    def _losses(self, data: Dataset, values: FloatArray, weight: FloatArray) -> dict[str, float]:
        return {metric.name: metric.loss(data.y, values, weight) for metric in self.metrics}

    def _chosen_rows(self, rows: int | None) -> IndexArray | None:
        if rows is None:
            return None
        total = len(self.data)
        rows = whole("rows", rows, at_least=2, at_most=total)
        if rows == total:
            return None
        least = self.data.least_rows
        if rows < least:
            raise ValueError(f"`rows` must be at least {least} to hold all classes, got {rows}.")
        return np.sort(self.data.nested_order[:rows])

    def _check_middle(self) -> None:
        """Raise now what every evaluation would raise: wrong fixed values, missing scores."""
        middle = {name: part.grid(1)[0] for name, part in self.space.items()}
        self.kernel.values(middle)
        sample_costs(self.weighting, self.data, middle)
        for metric in self.metrics:
            metric.check_weight(self.data.y, self.metric_weight, self.data.classes)


def as_loo_method(loo_method: Any) -> str:
    """Return the name of a method of `leave_one_out`, or raise."""
    if not isinstance(loo_method, str) or loo_method not in METHODS:
        raise ValueError(f"`loo_method` must be one of {list(METHODS)}, got {loo_method!r}.")
    return loo_method


def _as_weight(metric_weight: Any, count: int) -> FloatArray:
    if metric_weight is None:
        return read_only(np.ones(count))
    return read_only(not_negative(metric_weight, "metric_weight", count))
