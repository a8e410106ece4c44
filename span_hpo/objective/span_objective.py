"""The function of hyperparameters that every search minimises: a leave-one-out loss."""

import time
from collections.abc import Iterable
from typing import Any

from sklearn.svm import SVC

from span_hpo.data import Dataset, as_dataset
from span_hpo.kernels import KernelBlocks, KernelCache, as_kernel
from span_hpo.loo import leave_one_out
from span_hpo.metrics import as_metrics, judged_by
from span_hpo.objective.arguments import as_loo_method, as_weight, check_middle, chosen_rows
from span_hpo.objective.derivatives import (
    Trial,
    ValueAndGradient,
    check_differentiable,
    loss_and_gradient,
)
from span_hpo.objective.evaluation import CrossValidation, Evaluation
from span_hpo.objective.folds import held_out_values
from span_hpo.objective.models import fitted_svc
from span_hpo.objective.row_losses import KeptRows, TrialRows, rows_of_trial
from span_hpo.objective.searched import Searched
from span_hpo.objective.starts import Starts, fitted, walk
from span_hpo.runtime import FloatArray, OneBlasThread, real
from span_hpo.solver import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    DualSolution,
    PairwiseSolution,
    as_solver,
    checked_costs,
    checked_max_iter,
)
from span_hpo.space import Params, Space, checked_params, merged_space
from span_hpo.weighting import Weighting, as_weighting, bind_to, legend_of


class SpanObjective(Searched):
    """Leave-one-out loss of a weighted SVM as a function of its hyperparameters.

    One evaluation takes one fit and is deterministic. An objective may be called from several
    threads, which share the kernel cache, and can be pickled; the cache is left out.

    Parameters
    ----------
    X
        Features, shape (l, d), array or DataFrame; the kernel matrix for ``kernel="precomputed"``.
    y
        Labels, shape (l,), of two or more classes; more than two are fitted pair by pair.
    kernel
        "rbf", "ard", "linear", "poly", "laplacian", "precomputed"; a kernel such as
        ``RBF(gamma=0.1)``; or a callable ``(X, Z) -> matrix``.
    weighting
        Rule that gives each row its cost: a weighting, or "class" (one cost per class, the
        default), "uniform", "imbalance", "sigmoid", "power", "knots", "groups", "confidence", or
        one of the last five times class costs, such as "class*sigmoid".
    metric
        Name of a metric, a callable ``(y, decision_values) -> loss`` (with an argument `weight` if
        `metric_weight` is given), or a tuple of several.
    loo_method
        "span" (an estimate from the fit alone), "exact" (proven, along dual paths), "refit" or
        "stopping"; see `leave_one_out`.
    scores, groups
        Scores and groups of the rows, which the weighting may use.
    metric_weight
        Weight of each row in the metric, shape (l,).
    tol, max_iter
        Stopping tolerance and step limit of a fit; see `solve`.
    solver
        What computes the first fit, "auto", "libsvm" or "smo", which all lead to the same solution;
        see `solve`.
    memory_limit
        Megabytes for kernel matrices, shared by all threads; by default a quarter of the machine's
        memory. If a matrix exceeds the limit, fits compute the blocks that they need from the
        features (kernels rbf, linear and poly).
    scaling
        Name of how `X` was scaled, for the `description`; the objective itself scales nothing.

    Attributes
    ----------
    space
        Searched hyperparameters, by name.
    legend
        What those names stand for that do not hold the label of their class, by name.
    kept_rows
        Row losses of the best evaluations of this process; see `row_losses`.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from span_hpo import SpanObjective
    >>> X, y = make_moons(40, noise=0.1, random_state=0)
    >>> objective = SpanObjective(X, y)
    >>> sorted(objective.space)
    ['C_0', 'C_1', 'gamma']
    >>> objective({"C_0": 10.0, "C_1": 10.0, "gamma": 1.0})
    0.025
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        kernel: Any = "rbf",
        weighting: Weighting | str | None = None,
        metric: Any = "error",
        loo_method: str = "span",
        scores: Any = None,
        groups: Any = None,
        metric_weight: Any = None,
        tol: float = DEFAULT_TOL,
        max_iter: int = DEFAULT_MAX_ITER,
        solver: str = "auto",
        memory_limit: float | None = None,
        scaling: str | None = None,
    ) -> None:
        self.data = as_dataset(X, y, scores=scores, groups=groups)
        self.kernel = as_kernel(kernel)
        if self.data.feature_names is not None:
            self.kernel = self.kernel.named(self.data.feature_names.tolist())
        self.kernel = self.kernel.bind(self.data.X)
        self.weighting = bind_to(as_weighting(weighting), self.data)
        self.metrics = as_metrics(metric, weighted=metric_weight is not None)
        self._weighted = metric_weight is not None
        self.metric_weight = as_weight(metric_weight, len(self.data))
        self.loo_method = as_loo_method(loo_method)
        self._needs_values = any(metric.needs_values for metric in self.metrics)
        self.tol = real("tol", tol, above=0)
        self.max_iter = checked_max_iter(max_iter)
        self.solver = as_solver(solver)
        self.space: Space = merged_space(
            {"the kernel": self.kernel.space, "the weighting": self.weighting.space}
        )
        self.legend = legend_of(self.weighting, self.data)
        if memory_limit is not None:
            memory_limit = real("memory_limit", memory_limit, at_least=0)
        self.memory_limit = memory_limit
        self.scaling = scaling
        self._kernels = KernelCache(self.kernel, self.data.X, self.memory_limit)
        self.kept_rows = KeptRows()
        check_middle(self.data, self.space, self.kernel, self.weighting)
        for chosen in self.metrics:
            chosen.check_weight(self.data.y, self.metric_weight, self.data.classes)

    def evaluate(
        self,
        params: Params,
        rows: int | None = None,
        *,
        certify: bool = True,
        complete: bool | None = None,
        loo_method: str | None = None,
        starts: Starts | None = None,
    ) -> Evaluation:
        """Fit once and return the leave-one-out loss.

        Parameters
        ----------
        params
            A value for every name in `space`; values may lie outside their ranges.
        rows
            Number of rows to use instead of all: the first of one fixed stratified order, so that
            smaller subsets are contained in larger ones. Costs are not rescaled.
        certify
            Let method "span" prove what it can. This takes a fraction of a millisecond, and more on
            large data, and is skipped when the objective itself is called.
        complete
            Compute every value, not only its sign, with "exact" and "stopping", and with "span" for
            rows without a span. By default, this is done only if a metric needs values.
        loo_method
            Method to use instead of that of the objective.
        starts
            Solutions at other points, one of which the fit may begin at; see `evaluate_all`.

        Returns
        -------
        The losses, the leave-one-out values and figures of the fit.

        Raises
        ------
        ValueError, SolverError
            If a parameter is missing, unknown or not valid, or the fit or spans cannot be computed.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.evaluate({"C_0": 0.2, "C_1": 0.2}, loo_method="exact").loss
        0.0
        """
        options: Any = {"certify": certify, "complete": complete, "loo_method": loo_method}
        return self._evaluated(params, rows, starts=starts, **options).evaluation

    def evaluate_all(
        self,
        points: Iterable[Params],
        rows: int | None = None,
        **options: Any,
    ) -> list[Evaluation]:
        """Evaluate several points, such as those of a grid, in less time than one by one.

        Points with the same kernel follow each other from low to high costs, and the fit of a point
        begins at the solution of a similar one. Losses and values are those of `evaluate`, up to
        the rounding of values where rows are equal or depend on each other.

        Parameters
        ----------
        points
            Points to evaluate, each with a value for every name in `space`.
        rows, **options
            Arguments of `evaluate`.

        Returns
        -------
        One evaluation for each point, in the order of the points.

        Raises
        ------
        ValueError, SolverError
            As `evaluate` does, for the first point at which an error occurs.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> points = [{"C_0": C, "C_1": C} for C in (0.1, 0.2, 1.0)]
        >>> [evaluation.loss for evaluation in objective.evaluate_all(points)]
        [0.5, 0.0, 0.5]
        """
        checked = [checked_params(self.space, params) for params in points]
        kernels = [repr([params[name] for name in self.kernel.space]) for params in checked]
        costs = [self.weighting.costs(self.data, params) for params in checked]
        found = {
            number: self.evaluate(checked[number], rows, starts=starts, **options)
            for number, starts in walk(kernels, costs)
        }
        return [found[number] for number in range(len(checked))]

    def value_and_gradient(
        self,
        params: Params,
        rows: int | None = None,
        *,
        metric: Any = None,
        eta: float | None = None,
        starts: Starts | None = None,
    ) -> ValueAndGradient:
        """Return the loss and its derivatives by all hyperparameters that are real numbers.

        The derivatives follow from one fit, at a cost that hardly depends on their number. The loss
        must be "smooth_error", "hinge", "span_functional", "log_loss", "brier" or a callable with a
        method ``gradient(y, decision_values)``, and `loo_method` must be "span".

        Parameters
        ----------
        params, rows, starts
            Hyperparameters, number of rows and solutions at other points; see `evaluate`.
        metric
            Metric to differentiate; by default the first metric of the objective.
        eta
            Strength of a penalty that makes spans continuous where a row changes its kind, such as
            1e-4. The loss is then that of these spans, if they can be computed; otherwise there is
            no gradient. By default, it is that of `evaluate`.

        Returns
        -------
        The loss, its derivatives by name, and the evaluation. Where there are no derivatives, they
        are None, and `ValueAndGradient.reason` says why.

        Raises
        ------
        ValueError, SolverError
            As `evaluate` does, and if the metric, the kernel or the weighting has no derivative.

        Examples
        --------
        >>> X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
        >>> objective = SpanObjective(X, y, kernel="linear", metric="smooth_error")
        >>> found = objective.value_and_gradient({"C_0": 0.2, "C_1": 0.2})
        >>> round(found.loss, 3), round(found.gradient["C_0"], 3)
        (0.101, -0.61)
        """
        chosen = self.metrics if metric is None else as_metrics(metric, weighted=self._weighted)
        check_differentiable(chosen[0], self.loo_method, eta)
        trial = self._evaluated(params, rows, certify=False, starts=starts)
        return loss_and_gradient(trial, chosen[0], self._kernels, self.weighting, eta)

    def solution(self, params: Params) -> DualSolution | PairwiseSolution:
        """Return the fit of all rows: for two classes a `DualSolution`, which `bounds` can use.

        Parameters
        ----------
        params
            A value for every name in `space`.

        Raises
        ------
        ValueError, SolverError
            If a parameter is missing, unknown or not valid, or the fit cannot be computed.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.solution({"C_0": 0.2, "C_1": 0.2}).alpha.round(3).tolist()
        [0.025, 0.2, 0.2, 0.025]
        """
        params = checked_params(self.space, params)
        return self._solved(self._kernels.matrix(params), self.data, self._costs(self.data, params))

    def row_losses(self, params: Params) -> TrialRows:
        """Return the row losses of an evaluation on all rows, from a search or computed again.

        Raises
        ------
        ValueError
            If the loss is not a mean of row losses.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.row_losses({"C_0": 0.2, "C_1": 0.2}).rank[0]
        0.0
        """
        params = checked_params(self.space, params)
        known = self.kept_rows.get(params)
        return rows_of_trial(self.evaluate(params)) if known is None else known

    def __call__(self, params: Params) -> float:
        """Return the loss of the parameters, which is that of the first metric."""
        return self.evaluate(params, certify=False).loss

    def cross_validate(self, params: Params, folds: int = 5, *, seed: int = 0) -> CrossValidation:
        """Cross-validate the parameters with one fit per fold, on one kernel matrix.

        Parameters
        ----------
        params
            A value for every name in `space`.
        folds
            Number of folds, each of which has its share of every class.
        seed
            Seed for shuffling rows into folds.

        Returns
        -------
        The losses of the held-out decision values of all rows together.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid, or a class has fewer rows than folds.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.cross_validate({"C_0": 0.2, "C_1": 0.2}, folds=2).loss
        0.0
        """
        start = time.perf_counter()
        params, data = checked_params(self.space, params), self.data
        K, costs = self._kernels.matrix(params), self._costs(data, params)

        def decision_values(others: FloatArray) -> FloatArray:
            return self._solved(K, data, others).decision_values

        values = held_out_values(decision_values, data, costs, folds, seed)
        losses, _ = judged_by(self.metrics, data.y, values, self.metric_weight)
        seconds = time.perf_counter() - start
        return CrossValidation(losses[self.metrics[0].name], losses, values, int(folds), seconds)

    def fit_model(self, params: Params) -> SVC:
        """Return scikit-learn's ``SVC``, fitted on all rows with these hyperparameters.

        Parameters
        ----------
        params
            A value for every name in `space`.

        Returns
        -------
        A model that predicts the labels of new rows. Costs that depend on the class only are its
        ``C`` or ``class_weight``; others are its attribute ``costs_``, and a clone asks for them.

        Raises
        ------
        ValueError
            If a parameter is missing, unknown or not valid.

        Examples
        --------
        >>> objective = SpanObjective([[0], [1], [3], [4]], [0, 0, 1, 1], kernel="linear")
        >>> objective.fit_model({"C_0": 0.2, "C_1": 0.4}).class_weight
        {0: 0.2, 1: 0.4}
        """
        params = checked_params(self.space, params)
        values, costs = self.kernel.values(params), self._costs(self.data, params)
        return fitted_svc(self.data, self.kernel, values, costs, self.max_iter)

    def _evaluated(
        self,
        params: Params,
        rows: int | None,
        *,
        certify: bool = True,
        complete: bool | None = None,
        loo_method: str | None = None,
        starts: Starts | None = None,
    ) -> Trial:
        """Return an evaluation together with its fit; see `evaluate`."""
        start = time.perf_counter()
        params = checked_params(self.space, params)
        chosen, data, weight = chosen_rows(self.data, rows), self.data, self.metric_weight
        if chosen is not None:
            data, weight = data.take(chosen), weight[chosen]
        K, costs = self._kernels.matrix(params, chosen), self._costs(data, params)
        with OneBlasThread():  # once for both steps
            solution = self._solved(K, data, costs, starts)
            loo = leave_one_out(
                solution,
                method=self.loo_method if loo_method is None else as_loo_method(loo_method),
                complete=self._needs_values if complete is None else complete,
                certify=certify,
            )
        evaluation = Evaluation.of(params, solution, loo, self.metrics, weight, start)
        if chosen is None and starts is None and complete is None and loo_method is None:
            self.kept_rows.keep(evaluation)
        evaluation.log()
        return Trial(evaluation, solution, K, data, chosen)

    def _costs(self, data: Dataset, params: Params) -> FloatArray:
        costs = self.weighting.costs(data, params)
        return checked_costs(costs, data.codes, data.classes)

    def _solved(
        self, K: KernelBlocks, data: Dataset, costs: FloatArray, starts: Starts | None = None
    ) -> DualSolution | PairwiseSolution:
        settings: Any = {"tol": self.tol, "max_iter": self.max_iter, "solver": self.solver}
        return fitted(K, data, costs, settings, starts)
