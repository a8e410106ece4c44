"""Compare the answers of the package about one problem with the truth, row by row."""

import time
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.robustness.instances import Instance
from benchmarks.robustness.truths import Elections, Truth, truth_of
from span_hpo import LeaveOneOut, Problem, leave_one_out, solve
from span_hpo.kernels import as_kernel_blocks
from span_hpo.solver import DEFAULT_MAX_ITER, DEFAULT_TOL, is_wrong, solve_pairs

COUNTS = [
    "problems",
    "checks",
    "certified",
    "wrong_proofs",
    "against_features",
    "undecided",
    "values",
    "wrong_values",
    "unproven",
    "refits",
    "wrong_bounds",
    "failures",
    "other_checks",
    "order_checks",
    "order_differences",
    "refereed",
]


@dataclass
class Verdict:
    """What was found about some problems.

    Attributes
    ----------
    counts
        Numbers of `COUNTS`. `checks` are rows that method "exact" has answered for, and
        `other_checks` rows of the other methods and options; `certified`, `values` and `unproven`
        belong to the former, and everything wrong is counted for both.
    cases
        What was wrong, one line each.
    package_seconds, judge_seconds
        Time of the package, and of the reference and the referee.
    """

    counts: Counter[str] = field(default_factory=Counter)
    cases: list[str] = field(default_factory=list)
    package_seconds: float = 0.0
    judge_seconds: float = 0.0

    def note(self, kind: str, case: str) -> None:
        """Count something that is wrong, and remember where."""
        self.counts[kind] += 1
        self.cases.append(f"{kind} {case}")


def judge(instance: Instance, number: int, verdict: Verdict) -> None:
    """Ask the package about a problem and add to the verdict what is wrong.

    Method "exact" answers for every problem. The number decides which other methods answer as
    well, and whether the rows are permuted.
    """
    rows, truth = len(instance.y), truth_of(instance)
    verdict.counts["problems"] += 1
    verdict.counts["checks"] += rows
    exact = _answer(instance, number, verdict, method="exact")
    if exact is None:
        verdict.counts["unproven"] += rows
    else:
        verdict.counts["certified"] += int(exact.certified.sum())
        verdict.counts["unproven"] += rows - int(exact.certified.sum())
        verdict.counts["values"] += int(exact.exact.sum())
        verdict.counts["refits"] += exact.n_refit
        _compare(exact, truth, f"{number}", verdict)
    for options in _other_options(number):
        answer = _answer(instance, number, verdict, **options)
        if answer is not None:
            verdict.counts["other_checks"] += rows
            _compare(answer, truth, f"{number} {options}", verdict)
    if number % 8 == 4 and exact is not None:
        _compare_orders(instance, number, exact, verdict)
    verdict.counts["refereed"] += len(truth.refereed)


def _other_options(number: int) -> list[dict[str, Any]]:
    """Return what else is asked about a problem of this number."""
    options: list[dict[str, Any]] = []
    if number % 2 == 1:
        options.append({"method": "exact", "complete": True})
    if number % 4 == 0:
        options.append({"method": "span"})
    if number % 16 == 2:
        options.append({"method": "stopping"})
    if number % 16 == 10:
        options.append({"method": "refit"})
    return options


def _answer(
    instance: Instance, number: int, verdict: Verdict, **options: Any
) -> LeaveOneOut | None:
    """Return the answer of the package; an exception or a warning is a failure."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", ConvergenceWarning)
            return leave_one_out(_solution(instance), **options)
    except Exception as error:  # noqa: BLE001 - any failure of the package is what we look for
        verdict.note("failures", f"{number} {options}: {type(error).__name__}: {error}")
        return None
    finally:
        verdict.package_seconds += time.perf_counter() - start


def _solution(instance: Instance) -> Any:
    if instance.has_two_classes:
        return solve(Problem(as_kernel_blocks(instance.K), instance.y, instance.costs))
    blocks, codes = as_kernel_blocks(instance.K), instance.y.astype(int)
    return solve_pairs(blocks, codes, instance.costs, tol=DEFAULT_TOL, max_iter=DEFAULT_MAX_ITER)


def _compare(answer: LeaveOneOut, truth: Truth | Elections, case: str, verdict: Verdict) -> None:
    """Compare one answer with the truth."""
    start = time.perf_counter()
    errors = is_wrong(answer.y, answer.decision_values)
    # The span-rule is an estimate: where it is not exact, its sign is not the class that is proven,
    # and only the bounds tell what is.
    told = answer.certified & (answer.exact if answer.method == "span" else True)
    for p in np.flatnonzero(told).tolist():
        says_error = bool(errors[p])
        kind = truth.contradiction(p, says_error)
        if kind:
            name = {"wrong": "wrong_proofs", "undecided": "undecided"}[kind]
            value = np.array2string(answer.decision_values[p])
            verdict.note(name, f"{case} row {p}: {value}, truth {truth.describe(p)}")
        if truth.contradicts_features(p, says_error):
            verdict.counts["against_features"] += 1
    accuracy = getattr(answer, "accuracy", None)
    if accuracy is not None:
        for p in np.flatnonzero(answer.exact).tolist():
            off = truth.wrong_value(p, answer.decision_values[p], accuracy[p])
            if off:
                verdict.note("wrong_values", f"{case} row {p}: {off}")
    low, high = answer.error_bounds
    least, most = truth.error_range(answer.certified)
    if most < low - 1e-12 or least > high + 1e-12:
        bounds = f"[{low}, {high}], truth within [{least}, {most}]"
        verdict.note("wrong_bounds", f"{case}: {bounds}")
    verdict.judge_seconds += time.perf_counter() - start


def _compare_orders(instance: Instance, number: int, exact: LeaveOneOut, verdict: Verdict) -> None:
    """Ask about the same rows in another order: no proven class may change."""
    order = np.random.default_rng(number).permutation(len(instance.y))
    K = np.ascontiguousarray(instance.K[np.ix_(order, order)])
    other = _answer(
        Instance(K, instance.y[order], instance.costs[order]), number, verdict, method="exact"
    )
    if other is None:
        return
    verdict.counts["order_checks"] += len(order)
    both = exact.certified[order] & other.certified
    before = is_wrong(exact.y, exact.decision_values)[order]
    after = is_wrong(other.y, other.decision_values)
    for p in np.flatnonzero(both & (before != after)):
        verdict.note("order_differences", f"{number} row {order[p]}")
