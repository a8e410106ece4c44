"""Translate the arguments of scikit-learn's ``SVC`` into a kernel and a weighting."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.class_weight import compute_class_weight

from span_hpo.kernels import ARD, RBF, FunctionKernel, Kernel, Linear, Polynomial, Precomputed
from span_hpo.runtime import FloatArray, IndexArray, plain, real, whole
from span_hpo.solver import DEFAULT_MAX_ITER, checked_max_iter
from span_hpo.space import as_dimension
from span_hpo.weighting import ClassCosts, UniformCost, Weighting

# The arguments of `SVC` that `SVCArguments` holds, and what they are by default.
SVC_DEFAULTS: dict[str, Any] = {
    "C": 1.0,
    "kernel": "rbf",
    "degree": 3,
    "gamma": "scale",
    "coef0": 0.0,
    "tol": 1e-3,
    "class_weight": None,
    "max_iter": -1,
}
_KERNELS = ("linear", "poly", "rbf", "precomputed")
_WIDTHS = ("scale", "auto")
_SHAPES = ("ovo", "ovr")


@dataclass(frozen=True)
class SVCArguments:
    """Checked arguments of scikit-learn's ``SVC``, as numbers and words.

    Attributes
    ----------
    C, kernel, degree, gamma, coef0, class_weight, tol, max_iter
        Arguments of ``SVC``.
    """

    C: float
    kernel: Any
    degree: int
    gamma: str | float
    coef0: float
    tol: float
    class_weight: Any
    max_iter: int

    @classmethod
    def of(cls, arguments: Mapping[str, Any]) -> "SVCArguments":
        """Return the arguments after checking all that can be checked without data.

        Parameters
        ----------
        arguments
            Arguments by name, such as ``SVC().get_params()``. Those that are missing have their
            defaults, and names that ``SVC`` does not have are ignored.

        Raises
        ------
        ValueError, TypeError
            If an argument is not valid, or asks for what a leave-one-out fit cannot do. The message
            names the argument.
        """
        given = SVC_DEFAULTS | dict(arguments)
        _check_rest(given)
        kernel = _checked_kernel(given["kernel"])
        is_poly = kernel == "poly"
        gamma = given["gamma"]
        if isinstance(gamma, str):
            if gamma not in _WIDTHS:
                raise ValueError(
                    f"`gamma` must be one of {list(_WIDTHS)} or a number above 0, got {gamma!r}."
                )
        else:
            gamma = real("gamma", gamma, above=0)
        return cls(
            C=real("C", given["C"], above=0),
            kernel=kernel,
            degree=whole("degree", given["degree"], at_least=1 if is_poly else 0),
            gamma=gamma,
            # With a negative offset the polynomial kernel may not be positive semi-definite.
            coef0=real("coef0", given["coef0"], at_least=0 if is_poly else -np.inf),
            tol=real("tol", given["tol"], above=0),
            class_weight=_checked_class_weight(given["class_weight"]),
            max_iter=_checked_limit(given["max_iter"]),
        )

    @property
    def is_precomputed(self) -> bool:
        """Whether rows are those of a kernel matrix."""
        return bool(isinstance(self.kernel, str) and self.kernel == "precomputed")

    def kernel_of(self, X: Any) -> Kernel:
        """Return the kernel with its hyperparameters fixed; ``kernel.values({})`` has the numbers.

        Parameters
        ----------
        X
            Features of all rows, dense or sparse, from which the words for `gamma` follow; those of
            rows without weight count as well, as they do in ``SVC``.
        """
        if isinstance(self.kernel, Kernel):
            return self.kernel.bind(X)
        if callable(self.kernel):
            return FunctionKernel(self.kernel)
        if self.kernel == "linear":
            return Linear()
        if self.kernel == "precomputed":
            return Precomputed()
        gamma = self.gamma_of(X)
        if self.kernel == "rbf":
            return RBF(gamma=gamma)
        return Polynomial(degree=self.degree, gamma=gamma, coef0=self.coef0)

    def gamma_of(self, X: Any) -> float:
        """Return `gamma` as a number: "scale" is ``1 / (d var(X))``, "auto" is ``1 / d``.

        If all entries of `X` are equal, "scale" is 1.
        """
        if not isinstance(self.gamma, str):
            return self.gamma
        n_features: int = X.shape[1]
        if self.gamma == "auto":
            return 1 / n_features
        if issparse(X):
            variance = float(X.multiply(X).mean() - X.mean() ** 2)
        else:
            variance = float(np.asarray(X).var())
        return 1 / (n_features * variance) if variance != 0 else 1.0

    def class_costs(self, y: Any) -> dict[Any, float]:
        """Return the cost of each class, ``C`` times its weight, by its label in sorted order.

        See `class_weights`.
        """
        return {label: self.C * weight for label, weight in self.class_weights(y).items()}

    def class_weights(self, y: Any) -> dict[Any, float]:
        """Return the weight of each class by its label in sorted order.

        Parameters
        ----------
        y
            Labels of all rows. With "balanced" a class of l_c of the l rows has the weight
            ``l / (k l_c)``, where k is the number of classes; weights of rows do not count in it,
            as they do not in ``SVC``.

        Raises
        ------
        ValueError
            If `class_weight` has labels that are not in `y`.
        """
        labels = np.asarray(y)
        classes = np.unique(labels)
        try:
            weights: FloatArray = compute_class_weight(self.class_weight, classes=classes, y=labels)
        except ValueError as error:
            raise ValueError(
                f"`class_weight` must have labels of `y`, which are {classes.tolist()}, got "
                f"{plain(self.class_weight)!r}."
            ) from error
        return dict(zip(classes.tolist(), weights.tolist(), strict=True))

    def weighting_of(self, y: Any, kept: IndexArray | None = None) -> Weighting:
        """Return the weighting that gives each row the cost of its class.

        Parameters
        ----------
        y
            Labels of all rows.
        kept
            Rows that the fit has; all by default. Rows of weight 0 count in "balanced", but classes
            that have no other rows have no cost.
        """
        if self.class_weight is None:
            return UniformCost(self.C)
        costs = self.class_costs(y)
        if kept is not None:
            costs = {label: costs[label] for label in np.unique(np.asarray(y)[kept]).tolist()}
        return ClassCosts(costs)


def _checked_kernel(kernel: Any) -> Any:
    if isinstance(kernel, str) and kernel in _KERNELS:
        return kernel
    if isinstance(kernel, str) and kernel == "sigmoid":
        raise ValueError(
            "`kernel` must be positive semi-definite for leave-one-out, which 'sigmoid' is not: "
            "use 'rbf', 'poly' or 'linear'."
        )
    if isinstance(kernel, Precomputed):
        raise ValueError("`kernel` must be 'precomputed' for a kernel matrix, got Precomputed().")
    if isinstance(kernel, Kernel):
        _check_fixed(kernel)
    if callable(kernel) and not isinstance(kernel, type):
        return kernel
    if isinstance(kernel, str) and kernel == "ard":
        raise ValueError(
            "`kernel` must be ARD(gamma=[...]) with a number for each feature for a single fit, "
            "got 'ard': use SpanSVC to search them."
        )
    raise ValueError(
        f"`kernel` must be one of {list(_KERNELS)} or a callable (X, Z) -> matrix, got {kernel!r}."
    )


def _check_fixed(kernel: Kernel) -> None:
    if isinstance(kernel, ARD):  # what it searches is known only with the features
        gamma = kernel.gamma.values() if isinstance(kernel.gamma, Mapping) else kernel.gamma
        settings = list(gamma) if isinstance(gamma, Iterable) else [gamma]
        is_searched = any(as_dimension(setting) is not None for setting in settings)
    else:
        # The fields of a function are no hyperparameters, and it may be without a derivative.
        names = () if isinstance(kernel, FunctionKernel) else kernel.parameter_names()
        settings = [getattr(kernel, name, None) for name in names]
        is_searched = bool(kernel.space)
    if is_searched or any(setting is None for setting in settings):
        raise ValueError(
            f"`kernel` must have fixed hyperparameters for a single fit, got {kernel!r}: use "
            "SpanSVC to search them."
        )


def _checked_class_weight(class_weight: Any) -> Any:
    if class_weight is None or (isinstance(class_weight, str) and class_weight == "balanced"):
        return class_weight
    if not isinstance(class_weight, dict):
        raise ValueError(
            "`class_weight` must be a dictionary from labels to weights, 'balanced' or None, got "
            f"{plain(class_weight)!r}."
        )
    return {
        label: real(f"class_weight[{plain(label)!r}]", weight, above=0)
        for label, weight in class_weight.items()
    }


def _checked_limit(max_iter: Any) -> int:
    """Return the limit of iterations; -1 stands for the default limit of our own solver."""
    if isinstance(max_iter, int | np.integer) and max_iter == -1:
        return DEFAULT_MAX_ITER
    return checked_max_iter(max_iter)


def _check_rest(given: Mapping[str, Any]) -> None:
    """Check the arguments that a leave-one-out fit does not use."""
    probability = given.get("probability", False)
    if not (isinstance(probability, str) and probability == "deprecated") and probability:
        raise ValueError(
            "`probability` must be False, because `predict_proba` is always there, calibrated on "
            f"leave-one-out values, got {probability!r}."
        )
    shape = given.get("decision_function_shape", "ovr")
    if shape not in _SHAPES:
        raise ValueError(
            f"`decision_function_shape` must be one of {list(_SHAPES)}, got {shape!r}."
        )
    if shape == "ovo" and given.get("break_ties", False):
        raise ValueError(
            "`break_ties` must be False with `decision_function_shape='ovo'`, got "
            f"{given['break_ties']!r}."
        )
    real("cache_size", given.get("cache_size", 200), above=0)
