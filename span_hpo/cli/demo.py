"""A search on real data, and what one fit per trial says beside refits and test rows."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from span_hpo.objective import SpanObjective

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_T = TypeVar("_T")


def run_demo(picture: Path | None, *, trials: int = 150, progress_bar: bool = True) -> None:
    """Tune an SVM on the Wisconsin breast cancer data, print a table, draw a picture.

    Parameters
    ----------
    picture
        File of the picture; None for none. It needs matplotlib.
    trials
        Number of trials.
    progress_bar
        Whether to show one.
    """
    try:
        from span_hpo.integrations import optuna as adapter

        if picture is not None:
            import matplotlib  # noqa: F401  before the search, not after it
    except ImportError as missing:
        raise ImportError(
            "The demo needs Optuna, and matplotlib for its picture: "
            "pip install 'span-hpo[optuna,plots]'."
        ) from missing

    X, y = load_breast_cancer(return_X_y=True)  # 0 is malignant, 1 is benign
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    scaler = MinMaxScaler().fit(X_train)
    X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

    def test_error(params: dict[str, Any]) -> float:
        return 1 - float(objective.fit_model(params).score(X_test, y_test))

    objective = SpanObjective(X_train, y_train)
    click.echo(
        f"Wisconsin breast cancer: {len(y_train)} training rows, {len(y_test)} test rows.\n"
        f"{trials} trials over {', '.join(objective.space)}; with Numba the first one compiles, "
        "once.\n"
    )
    study = adapter.new_study(seed=0)
    _, seconds = _timed(
        lambda: adapter.search(study, objective, n_trials=trials, progress_bar=progress_bar)
    )
    trials_done = adapter.finished_trials(study)
    spent = [trial.user_attrs["seconds"] for trial in trials_done]
    click.echo(
        f"\nSearched in {seconds:.1f} s; {1e3 * np.median(spent):.1f} ms a fit in the median."
    )

    best = adapter.best_trial(study)
    params = adapter.params_of(best, objective)
    objective.evaluate(params, loo_method="exact")  # the kernel matrix is there, all is compiled
    rows = [("span-rule, one fit (optimistic: selected)", *_timed(lambda: objective(params)))]
    for title, method in (
        ("exact leave-one-out, proven from one fit", "exact"),
        (f"leave-one-out, {len(y_train)} refits", "refit"),
    ):
        evaluation = objective.evaluate(params, loo_method=method)
        rows.append((title, evaluation.loss, evaluation.seconds))
    folds = objective.cross_validate(params)
    rows.append(("5-fold cross-validation, 5 fits", folds.loss, folds.seconds))
    rows.append(("test rows", *_timed(lambda: test_error(params))))
    picked = ", ".join(f"{name} {value:.3g}" for name, value in params.items())
    click.echo(f"\n{picked:43}{'error':>8}{'seconds':>10}")
    for title, error, cost in rows:
        click.echo(f"{title:43}{error:8.4f}{cost:10.4f}")

    losses = np.array([trial.value for trial in trials_done])
    test_errors = np.array(
        [test_error(adapter.params_of(trial, objective)) for trial in trials_done]
    )
    click.echo(
        f"\nTest error of the first trial, with default hyperparameters, {test_errors[0]:.4f}, of "
        f"the median trial {np.median(test_errors):.4f}, of the best one for the test rows "
        f"{test_errors.min():.4f}."
    )
    if picture is not None:
        _draw(losses, test_errors, best.number, picture)
        click.echo(f"Picture: {picture.resolve()}")


def _draw(losses: Any, test_errors: Any, best: int, picture: Path) -> None:
    """Draw the search, and leave-one-out error against test error."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.3), layout="constrained")
    search, scatter = figure.subplots(1, 2)
    picked = {"mfc": "none", "mec": "red", "ms": 11, "mew": 2, "label": "picked"}
    numbers = np.arange(1, len(losses) + 1)
    search.plot(numbers, losses, ".", color="0.75", label="a trial")
    search.step(numbers, np.minimum.accumulate(losses), where="post", label="best so far")
    search.plot(best + 1, losses[best], "o", **picked)
    search.set(title="The search", xlabel="trial", ylabel="leave-one-out error (span-rule)")
    search.set(yscale="log")
    search.legend(loc="upper right", framealpha=0.95)
    ends = [0.8 * min(losses.min(), test_errors.min()), 1.2 * max(losses.max(), test_errors.max())]
    scatter.plot(ends, ends, color="0.6", lw=1, label="equal")
    scatter.plot(losses, test_errors, ".", label="a trial")
    scatter.plot(losses[best], test_errors[best], "o", **picked)
    scatter.set(title="What one fit says, and what the test rows say", xscale="log", yscale="log")
    scatter.set(xlabel="leave-one-out error (span-rule)", ylabel="error on the test rows")
    for axis in (search.yaxis, scatter.xaxis, scatter.yaxis):
        axis.set_ticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axis.set_ticks([], minor=True)
    scatter.legend(loc="upper left", framealpha=0.95)
    figure.savefig(picture, dpi=130)


def _timed(function: Callable[[], _T]) -> tuple[_T, float]:
    """Return what a function returns, and its seconds."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start
