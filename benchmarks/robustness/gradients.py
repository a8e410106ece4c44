"""The derivatives of losses by hyperparameters, compared with central differences.

A problem has 20 to 60 random rows of two classes, or of three in one of four, with up to five
features in different units. One in three has equal rows, and one in four a class of three rows. The
problems and the points at which a gradient is taken follow from the kernel, the weighting and a
number. Central differences take two steps each (Richardson), for three steps that differ by a
factor of five, and the two that agree best decide. They share nothing with the derivatives but the
evaluation of the loss.

A point is drawn again if a row changes its kind (in-bound, bounded or neither), or passes the kink
of its loss, within the steps; if there is no gradient; if the loss hardly moves; or if the
differences of two steps do not agree to five digits. After thirty points, the problem is drawn
again. Derivatives are those by the logarithm of a hyperparameter that is searched on a logarithmic
scale. The error of a gradient is that of its worst component, relative to the largest component.
"""

import itertools
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import Benchmark, Options, combinations, rows_with
from span_hpo import (
    ARD,
    RBF,
    ClassCosts,
    Float,
    FunctionKernel,
    GroupCosts,
    ImbalanceCost,
    KnotScore,
    LabelConfidence,
    Laplacian,
    Linear,
    Polynomial,
    PowerScore,
    SigmoidScore,
    SpanObjective,
    UniformCost,
)
from span_hpo.runtime import FloatArray
from span_hpo.solver import PairwiseSolution

OPTIONS = ("jobs", "quick")
METRICS = ("smooth_error", "hinge", "span_functional", "log_loss", "brier")
PROBLEMS = 15  # problems of each kernel with each weighting
_STEPS = (1e-3, 2e-4, 4e-5)
_LEAST_SLOPE = 1e-3  # below it, rounding of the loss is a notable share of its differences
_UNCLEAR = 5e-6  # gap of two differences, relative to the largest derivative, that is too wide
_ATTEMPTS = 30  # points of a problem
_KINKS = (1 - 1e-6, 1 + 1e-6)  # around the kink of the hinge, on which rows without a span lie
_COLUMNS = [
    "metric",
    "n_classes",
    "rows",
    "equal_rows",
    "hyperparameters",
    "n_in_bound",
    "n_bounded",
    "largest",
    "error",
    "problems_drawn",
    "points_drawn",
    "kinds_change",
    "without_gradient",
    "unclear",
]


def cauchy(X: FloatArray, Z: FloatArray, width: float) -> FloatArray:
    """Return the kernel ``1 / (1 + width |x - z|^2)``, which stands for a user's own."""
    squared: FloatArray = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return 1 / (1 + width * squared)


def cauchy_slopes(
    X: FloatArray, Z: FloatArray, weights: FloatArray, width: float
) -> dict[str, float]:
    """Return its derivative by the width."""
    squared = ((X[:, None] - Z[None]) ** 2).sum(axis=2)
    return {"width": -float((weights * squared / (1 + width * squared) ** 2).sum())}


_OWN = FunctionKernel(cauchy, {"width": Float(0.1, 2.0, log=True)}, cauchy_slopes)
KERNELS: dict[str, Callable[[], Any]] = {
    "rbf": RBF,
    "ard": ARD,
    "ard in groups": lambda: ARD(groups=[[0, 1]]),
    "laplacian": Laplacian,
    "poly": lambda: Polynomial(2, coef0=Float(0.1, 2.0)),
    "linear": Linear,
    "function": lambda: _OWN,
}
DATASETS = list(KERNELS)
_GROUPS = 4  # of rows, for the weighting that has one cost for each
WEIGHTINGS: dict[str, Callable[[], Any]] = {
    "uniform": UniformCost,
    "class": ClassCosts,
    "imbalance": ImbalanceCost,
    "sigmoid": SigmoidScore,
    "power": PowerScore,
    "knots": KnotScore,
    "groups": GroupCosts,
    "confidence": LabelConfidence,
    "class*sigmoid": lambda: ClassCosts() * SigmoidScore(C=1.0),
    "class*power": lambda: ClassCosts() * PowerScore(C=1.0),
}


def table() -> str:
    """Return the quantiles of the errors of each kernel and of each weighting."""
    rows = BENCHMARK.rows()
    parts = [("kernel", name, rows_with(rows, kernel=name)) for name in KERNELS]
    parts += [("weighting", name, rows_with(rows, weighting=name)) for name in WEIGHTINGS]
    parts.append(("all", "", rows))
    lines = []
    for kind, name, own in parts:
        errors = np.array([float(row["error"]) for row in own])
        shown = [f"{value:.1e}" for value in np.quantile(errors, [0.5, 0.95, 1.0])]
        counts = [int(row["hyperparameters"]) for row in own]
        lines.append(
            [f"{kind} {name}".strip(), str(len(own)), f"{min(counts)} to {max(counts)}", *shown]
        )
    titles = ["problems with", "problems", "hyperparameters", "median", "95 %", "largest error"]
    return markdown_table(titles, lines)


def problem(
    kernel: str, weighting: str, number: int, draw: int = 0
) -> tuple[SpanObjective, str, bool]:
    """Return the objective of a problem, its metric, and whether rows are equal."""
    rng = _generator(kernel, weighting, number, draw)
    count, features = int(rng.integers(20, 61)), int(rng.integers(2, 6))
    n_classes = 3 if rng.random() < 0.25 else 2
    X = rng.normal(size=(count, features))
    level = X[:, 0] + 0.5 * np.sin(3 * X[:, 1]) + rng.choice([0.2, 0.7]) * rng.normal(size=count)
    has_equal_rows = bool(rng.random() < 1 / 3)
    if has_equal_rows:
        chosen = rng.integers(0, count, size=count // 3)
        X[: len(chosen)], level[: len(chosen)] = X[chosen], level[chosen]
    y = np.searchsorted(np.quantile(level, np.arange(1, n_classes) / n_classes), level)
    if rng.random() < 0.25:
        y[np.flatnonzero(y == 0)[3:]] = 1
    if kernel.startswith("ard"):  # its widths can make up for units
        X = X * 10.0 ** rng.integers(-5, 6, size=features)
    metric = METRICS[number % len(METRICS)]
    objective = SpanObjective(
        X,
        y,
        kernel=KERNELS[kernel](),
        weighting=WEIGHTINGS[weighting](),
        metric=metric,
        scores=rng.uniform(0.02, 1.0, count),
        groups=np.arange(count) % _GROUPS,
    )
    return objective, metric, has_equal_rows


def random_point(objective: SpanObjective, rng: np.random.Generator) -> dict[str, float]:
    """Return a point of the search space with costs that leave rows in-bound."""
    units = 1 / np.maximum(objective.data.X.var(axis=0), 1e-300)
    params = {}
    for name, part in objective.space.items():
        assert isinstance(part, Float)  # all problems search real numbers only
        low, high = part.low, part.high
        if name.startswith("C"):
            low, high = 0.3, 30.0
        elif name.startswith("gamma") and isinstance(objective.kernel, ARD):
            columns = list(objective.kernel.groups[name])
            low, high = (factor * float(units[columns].min()) for factor in (0.03, 1.0))
        elif name == "gamma":
            low, high = 3 * low, high / 10
        params[name] = _between(rng, low, high, part.log)
    return params


def differences(
    loss: Callable[[Mapping[str, float]], float], params: Mapping[str, float], logs: Iterable[str]
) -> tuple[dict[str, float], float]:
    """Return central differences by the hyperparameters, and how far they may be off.

    Hyperparameters in `logs` are moved on a logarithmic scale.
    """
    found, unclear = {}, 0.0
    for name in params:
        slopes = []
        for step in _STEPS:
            near, far = (
                [loss(_moved(params, name, sign * factor * step, logs)) for sign in (1, -1)]
                for factor in (1, 2)
            )
            slopes.append((8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step))
        gaps = [abs(one - other) for one, other in itertools.pairwise(slopes)]
        found[name] = slopes[int(np.argmin(gaps)) + 1]
        unclear = max(unclear, min(gaps))
    return found, unclear


def _points(options: Options) -> list[dict[str, Any]]:
    """Return the keys of all problems; of a quick run one for each kernel and weighting."""
    numbers = range(1 if options.quick else PROBLEMS)
    return combinations(
        kernel=options.datasets or DATASETS, weighting=list(WEIGHTINGS), number=numbers
    )


def _measure(point: Mapping[str, Any]) -> dict[str, Any]:
    rng = _generator(*point.values(), "points")
    counts = {"problems_drawn": 0, "points_drawn": 0, "kinds_change": 0}
    counts |= {"without_gradient": 0, "unclear": 0}
    while True:
        if counts["points_drawn"] % _ATTEMPTS == 0:
            objective, metric, has_equal_rows = problem(**point, draw=counts["problems_drawn"])
            logs = [name for name, p in objective.space.items() if isinstance(p, Float) and p.log]
            counts["problems_drawn"] += 1
        counts["points_drawn"] += 1
        params = random_point(objective, rng)
        found = objective.value_and_gradient(params)
        if found.gradient is None:
            counts["without_gradient"] += 1
            continue
        slopes = {
            name: slope * (params[name] if name in logs else 1.0)
            for name, slope in found.gradient.items()
        }
        if max(map(abs, slopes.values())) < _LEAST_SLOPE:
            continue
        if not _is_smooth(objective, params, logs):
            counts["kinds_change"] += 1
            continue
        expected, gap = differences(objective, params, logs)
        largest = max(map(abs, expected.values()))
        if gap > _UNCLEAR * largest:
            counts["unclear"] += 1
            continue
        worst = max(abs(slopes[name] - expected[name]) for name in expected)
        error = worst / largest if largest else math.inf
        fits = _fits(objective.solution(params))
        return {
            "metric": metric,
            "n_classes": len(objective.data.classes),
            "rows": len(objective.data),
            "equal_rows": has_equal_rows,
            "hyperparameters": len(params),
            "n_in_bound": sum(int(fit.in_bound.sum()) for fit in fits),
            "n_bounded": sum(int(fit.bounded.sum()) for fit in fits),
            "largest": f"{largest:.6g}",
            "error": f"{error:.3e}",
            **counts,
        }


def _is_smooth(objective: SpanObjective, params: Mapping[str, float], logs: Iterable[str]) -> bool:
    """Return whether no row changes its kind, or passes the kink of the hinge, within the steps."""
    here = _kinds(objective, params)
    size = 2 * max(_STEPS)
    return all(
        _kinds(objective, _moved(params, name, sign * size, logs)) == here
        for name in params
        for sign in (1, -1)
    )


def _kinds(objective: SpanObjective, params: Mapping[str, float]) -> bytes:
    fits = _fits(objective.solution(params))
    masks = [mask for fit in fits for mask in (fit.in_bound, fit.bounded)]
    values = objective.evaluate(params, certify=False).loo.decision_values
    beyond = [(sign * values > kink).ravel() for sign in (1, -1) for kink in _KINKS]
    return np.concatenate([*masks, *beyond]).tobytes()


def _fits(solution: Any) -> list[Any]:
    return list(solution.solutions) if isinstance(solution, PairwiseSolution) else [solution]


def _moved(
    params: Mapping[str, float], name: str, by: float, logs: Iterable[str]
) -> dict[str, float]:
    """Return a point with one hyperparameter moved, on a logarithmic scale if that is its own."""
    value = params[name]
    return {**params, name: value * float(np.exp(by)) if name in logs else value + by}


def _between(rng: np.random.Generator, low: float, high: float, is_log: bool) -> float:
    margin = 3 * max(_STEPS)
    if is_log:
        return float(np.exp(rng.uniform(np.log(low) + margin, np.log(high) - margin)))
    return float(rng.uniform(low + margin, high - margin))


def _generator(*parts: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(repr(parts).encode()))


BENCHMARK = Benchmark("gradients.csv", _points, _measure, _COLUMNS)
run = BENCHMARK.run
