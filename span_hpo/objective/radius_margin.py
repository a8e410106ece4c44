"""Radius-margin bounds as a function of hyperparameters, with derivatives by all of them."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.svm import SVC

from span_hpo import bounds
from span_hpo.data import as_dataset, as_features
from span_hpo.kernels import Kernel, KernelCache, Precomputed, as_kernel
from span_hpo.objective.arguments import check_middle
from span_hpo.objective.derivatives import ValueAndGradient, equal_by_zeros
from span_hpo.objective.description import described, described_losses
from span_hpo.objective.models import fitted_svc
from span_hpo.objective.searched import Searched
from span_hpo.runtime import Array, FloatArray, counted, one_blas_thread, read_only, real, rows_of
from span_hpo.solver import (
    DEFAULT_MAX_ITER,
    DEFAULT_TOL,
    DualSolution,
    Problem,
    checked_costs,
    checked_max_iter,
    solve,
)
from span_hpo.space import Params, Space, checked_params, merged_space
from span_hpo.weighting import Weighting, as_weighting, bind_to, cost_gradient, legend_of

BOUNDS = {
    "l1": "radius-margin bound of the SVM (eq. 3.3)",
    "l2": "radius-margin bound of the L2-SVM",
}
_SAME_SLOPE = 1e-8  # difference of two derivatives by ln t, relative to the value, that is rounding


class RadiusMargin(Searched):
    """Radius-margin bound of a weighted SVM as a function of its hyperparameters.

    The loss is the value of the bound itself, as in the paper, which is about as large as the
    number of rows. Its minimum matters and not its size. It is continuous, and has derivatives
    almost everywhere, so that `value_and_gradient` suits searches by gradients.

    Parameters
    ----------
    X
        Features, shape (l, d), array or DataFrame; the kernel matrix for ``kernel="precomputed"``.
    y
        Labels, shape (l,), of two classes.
    kernel
        Kernel; see `SpanObjective`.
    weighting
        Rule that gives each row its cost; see `SpanObjective`. One cost for all rows is searched by
        default, as in the paper. With a cost per class, "l1" is often least where one class has a
        tiny cost, and the model then always answers the other class; "l2" is not.
    bound
        "l1" for ``(R^2 + penalty * mean(1 / C_i)) (|w|^2 + 2 sum_i C_i xi_i)``, or "l2" for
        ``R~^2 |w~|^2`` of the L2-SVM; see `bounds.smooth_radius_margin` and
        `bounds.l2_radius_margin`. Each judges its own kind of SVM, which `fit_model` returns.
    penalty
        Weight of the inverse costs for "l1", which keeps a search away from tiny costs.
    scores, groups
        Scores and groups of the rows, which the weighting may use.
    tol, max_iter
        Stopping tolerance and step limit of a fit; see `solve`.
    memory_limit
        Megabytes for kernel matrices, which must allow for the whole matrix; by default a quarter
        of the machine's memory.

    Attributes
    ----------
    space
        Searched hyperparameters, by name.
    legend
        What those names stand for that do not hold the label of their class, by name.

    Raises
    ------
    ValueError
        If there are more than two classes, `bound` is unknown, the kernel matrix does not fit into
        the memory limit, or another argument is not as described.

    References
    ----------
    Chung, Kao, Sun, Wang and Lin, "Radius margin bounds for support vector machines with the RBF
    kernel", 2003. With one cost and the kernel ``exp(-|x - z|^2 / (2 sigma^2))`` of the paper,
    `gamma` is ``1 / (2 sigma^2)``.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> X, y = make_moons(40, noise=0.1, random_state=0)
    >>> objective = RadiusMargin(X, y, weighting="uniform")
    >>> sorted(objective.space)
    ['C', 'gamma']
    >>> round(objective({"C": 10.0, "gamma": 1.0}), 1)
    60.2
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        kernel: Any = "rbf",
        weighting: Weighting | str = "uniform",
        bound: str = "l1",
        penalty: float = 1.0,
        scores: Any = None,
        groups: Any = None,
        tol: float = DEFAULT_TOL,
        max_iter: int = DEFAULT_MAX_ITER,
        memory_limit: float | None = None,
    ) -> None:
        self.data = as_dataset(X, y, scores=scores, groups=groups)
        if len(self.data.classes) > 2:
            raise ValueError(
                "`y` must hold two classes for a radius-margin bound, got "
                f"{len(self.data.classes)}. `SpanObjective` takes more."
            )
        if not isinstance(bound, str) or bound not in BOUNDS:
            raise ValueError(f"`bound` must be one of {list(BOUNDS)}, got {bound!r}.")
        self.bound = bound
        self.penalty = real("penalty", penalty, at_least=0)
        self.kernel = as_kernel(kernel)
        if self.data.feature_names is not None:
            self.kernel = self.kernel.named(self.data.feature_names.tolist())
        self.kernel = self.kernel.bind(self.data.X)
        self.weighting = bind_to(as_weighting(weighting), self.data)
        self.tol = real("tol", tol, above=0)
        self.max_iter = checked_max_iter(max_iter)
        self.space: Space = merged_space(
            {"the kernel": self.kernel.space, "the weighting": self.weighting.space}
        )
        self.legend = legend_of(self.weighting, self.data)
        limit = None if memory_limit is None else real("memory_limit", memory_limit, at_least=0)
        self._kernels = KernelCache(self.kernel, self.data.X, limit)
        memory = self._kernels.memory(1)
        if not memory.is_held:
            raise ValueError(
                "`memory_limit` must allow for the whole kernel matrix, because a radius needs it: "
                f"{memory.matrices:.0f} MB, got {memory.limit:g} MB. Take fewer rows."
            )
        check_middle(self.data, self.space, self.kernel, self.weighting)

    def __call__(self, params: Params) -> float:
        """Return the value of the bound, after one fit and one ball."""
        fit = self.solution(params)
        if isinstance(fit, bounds.L2Solution):
            return bounds.l2_radius_margin(fit)
        return bounds.smooth_radius_margin(fit, penalty=self.penalty)

    @one_blas_thread
    def value_and_gradient(self, params: Params, **options: Any) -> ValueAndGradient:
        """Return the value and its derivatives by all hyperparameters that are real numbers.

        Parameters
        ----------
        params
            A value for every name in `space`; values may lie outside their ranges.
        options
            There are none. Objectives of leave-one-out values have a metric and a number of rows.

        Returns
        -------
        The value and its derivatives by name; there is no evaluation. The derivatives are None if
        the fit has not converged, or where the offset of the fit is not unique and a change of
        costs meets a kink; `ValueAndGradient.reason` then says so. Such a kink does not affect a
        weighting that changes all costs by one factor. The function
        `bounds.smooth_radius_margin_derivatives` says what holds if rows depend on each other.

        Raises
        ------
        TypeError
            If an option is given.
        ValueError, SolverError
            If a parameter is missing, unknown or not valid, the fit or the ball cannot be computed,
            or the kernel or the weighting has no derivative.

        Examples
        --------
        >>> X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
        >>> objective = RadiusMargin(X, y, kernel="linear", weighting="uniform")
        >>> found = objective.value_and_gradient({"C": 1.0})
        >>> round(found.loss, 3), round(found.gradient["C"], 3)
        (5.0, -1.0)
        """
        if options:
            raise TypeError(
                f"`options` must be empty for a radius-margin bound, got {sorted(options)}: it has "
                "no metric, and needs all rows."
            )
        params = checked_params(self.space, params)
        fit = self._fitted(params)
        if isinstance(fit, bounds.L2Solution):
            found = bounds.l2_radius_margin_derivatives(fit)
        else:
            found = bounds.smooth_radius_margin_derivatives(fit, penalty=self.penalty)
        value = found.value
        slopes = [
            cost_gradient(self.weighting, self.data, params, by_cost)
            for by_cost in found.by_costs_at_ends
        ]
        if not slopes or _differ(slopes, params, value):
            return ValueAndGradient(value, None, None, found.reason)
        if self.bound == "l1":  # the dual variables of equal rows are not unique
            support = rows_of(fit.alpha)
            reason = equal_by_zeros(self.kernel, params, self.data.X, fit.problem.K, support)
            if reason:
                return ValueAndGradient(value, None, None, reason)
        of_kernel = self._kernels.gradient(fit.problem.K, params, found.by_kernel())
        gradient = {**of_kernel, **slopes[0]}
        if not all(map(math.isfinite, gradient.values())):
            reason = "The derivatives overflow: scale the features, or raise the costs."
            return ValueAndGradient(value, None, None, reason)
        ordered = {name: gradient[name] for name in self.space if name in gradient}
        return ValueAndGradient(value, ordered, None)

    def share_of_row(self, rows: int | None = None) -> float:
        """Return 1, because the value of a bound is a number of rows."""
        return 1.0

    def solution(self, params: Params) -> "DualSolution | bounds.L2Solution":
        """Return the fit that the bound judges, an `L2Solution` for "l2".

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
        >>> X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
        >>> objective = RadiusMargin(X, y, kernel="linear", weighting="uniform", bound="l2")
        >>> objective.solution({"C": 1.0}).slacks.round(3).tolist()
        [0.0, 0.333, 0.333, 0.0]
        """
        return self._fitted(checked_params(self.space, params))

    def fit_model(self, params: Params) -> "SVC | L2Model":
        """Return the model that the bound judges, fitted on all rows.

        Parameters
        ----------
        params
            A value for every name in `space`.

        Returns
        -------
        For "l1" scikit-learn's ``SVC``, as `SpanObjective.fit_model` returns it, and for "l2" an
        `L2Model`.

        Raises
        ------
        ValueError, SolverError
            If a parameter is missing, unknown or not valid, or the fit cannot be computed.

        Examples
        --------
        >>> X, y = [[0], [1], [3], [4]], ["no", "no", "yes", "yes"]
        >>> objective = RadiusMargin(X, y, kernel="linear", weighting="uniform", bound="l2")
        >>> objective.fit_model({"C": 1.0}).predict([[0.5], [5.0]]).tolist()
        ['no', 'yes']
        """
        params = checked_params(self.space, params)
        values = self.kernel.values(params)
        if self.bound == "l1":
            return fitted_svc(self.data, self.kernel, values, self._costs(params), self.max_iter)
        fit = self._fitted(params)
        support = rows_of(fit.alpha)
        return L2Model(
            kernel=self.kernel,
            values=values,
            X=self.data.X[support],
            support=read_only(support),
            coefficients=read_only((self.data.y * fit.alpha)[support]),
            offset=fit.b,
            classes_=self.data.classes,
            n_features_in_=self.data.X.shape[1],
        )

    def _costs(self, params: Params) -> FloatArray:
        costs = self.weighting.costs(self.data, params)
        return checked_costs(costs, self.data.codes, self.data.classes)

    def _fitted(self, params: Params) -> "DualSolution | bounds.L2Solution":
        K = self._kernels.matrix(params)
        problem = Problem.of_checked(K, self.data.y, self._costs(params))
        fit = solve if self.bound == "l1" else bounds.l2_solution
        return fit(problem, tol=self.tol, max_iter=self.max_iter)

    # What the objective says of itself.

    @property
    def loss_names(self) -> list[str]:
        """Name of what is minimised."""
        return [BOUNDS[self.bound]]

    def description(self) -> dict[str, Any]:
        """Return what distinguishes this objective from others, in a form for JSON."""
        losses = described_losses(self.data, (), np.ones(len(self.data)), None)
        return {
            **losses,
            "metrics": self.loss_names,
            "penalty": self.penalty,
            "kernel": described(self.kernel),
            "weighting": described(self.weighting),
            "parameters": sorted(self.space),
        }

    def in_words(self) -> str:
        """Return what is minimised, on which rows and over which hyperparameters, in sentences."""
        title, lines = self._summary()
        searched = ", ".join(f"{name} {text}" for name, text in self._searched().items())
        return (
            f"The objective is the {BOUNDS[self.bound]}, with the kernel {lines['kernel']} and the "
            f"weighting {lines['weighting']}: {title}, {lines['classes']}. "
            + (f"The search covers {searched}." if searched else "Nothing is searched.")
        )

    def _summary(self) -> tuple[str, dict[str, str]]:
        rows, features = len(self.data), self.data.X.shape[1]
        return f"RadiusMargin on {counted(rows, 'row')} with {counted(features, 'feature')}", {
            "classes": self._classes(),
            "loss": BOUNDS[self.bound],
            "kernel": type(self.kernel).__name__,
            "weighting": type(self.weighting).__name__,
            **self._searched(),
        }


@dataclass(frozen=True, eq=False)
class L2Model:
    """A fitted L2-SVM that predicts the labels of new rows.

    Attributes
    ----------
    kernel, values
        The kernel and the values of its hyperparameters.
    X
        Features of the support vectors, shape (n, d).
    support
        Indices of the support vectors among the rows of the fit, shape (n,).
    coefficients
        Factors ``y_i alpha_i`` of their kernel values, shape (n,).
    offset
        The offset ``b``.
    classes_
        Labels of the negative and the positive class.
    n_features_in_
        Number of features.

    Examples
    --------
    >>> X, y = [[0], [1], [3], [4]], [0, 0, 1, 1]
    >>> objective = RadiusMargin(X, y, kernel="linear", weighting="uniform", bound="l2")
    >>> objective.fit_model({"C": 1.0}).decision_function([[2.0], [4.0]]).round(3).tolist()
    [0.0, 1.333]
    """

    kernel: Kernel
    values: dict[str, Any]
    X: Any
    support: Array
    coefficients: FloatArray
    offset: float
    classes_: Array
    n_features_in_: int

    def decision_function(self, X: Any) -> FloatArray:
        """Return the decision values of rows, which are positive for the second class.

        Parameters
        ----------
        X
            Features, shape (m, d); for a precomputed kernel the kernel values between these rows
            and all rows of the fit, shape (m, l).

        Raises
        ------
        TypeError, ValueError
            If `X` does not hold numbers, or has another number of columns.
        """
        rows = as_features(X, least_rows=1)
        if rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"`X` must have the {self.n_features_in_} columns of the fit, got {rows.shape[1]}."
            )
        if isinstance(self.kernel, Precomputed):
            K = rows[:, self.support]
        else:
            K = self.kernel.between(rows, self.X, **self.values)
        found: FloatArray = K @ self.coefficients + self.offset
        return found

    def predict(self, X: Any) -> Array:
        """Return the labels of rows; see `decision_function`."""
        labels: Array = self.classes_[(self.decision_function(X) > 0).astype(int)]
        return labels


def _differ(slopes: list[dict[str, float]], params: Params, value: float) -> bool:
    """Return whether derivatives at the ends of the interval of offsets differ by a parameter."""
    first, last = slopes[0], slopes[-1]
    return any(
        abs(last[name] - first[name])
        > _SAME_SLOPE * max(abs(first[name]), value / max(abs(params[name]), 1.0))
        for name in first
    )
