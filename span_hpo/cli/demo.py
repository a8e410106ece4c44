"""Demonstrate a search on real data, and compare its errors with refits and test rows."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from span_hpo.objective import SpanObjective
from span_hpo.selection import HonestEstimate

_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
_T = TypeVar("_T")


def run_demo(picture: Path | None, *, trials: int = 150, progress_bar: bool = True) -> None:
    """Tune an SVM on the Wisconsin breast cancer data, print a table and draw a picture.

    Parameters
    ----------
    picture
        Path of the picture to write, which needs matplotlib. None draws no picture.
    trials
        Number of trials.
    progress_bar
        Show progress bars on standard error.
    """
    adapter = _import_adapter(picture)
    X_train, X_test, y_train, y_test = _load_rows()
    objective = SpanObjective(X_train, y_train)

    def test_error(params: dict[str, Any]) -> float:
        return 1 - float(objective.fit_model(params).score(X_test, y_test))

    click.echo(
        f"Wisconsin breast cancer: {len(y_train)} training rows, {len(y_test)} test rows.\n"
        f"The search runs {trials} trials over {', '.join(objective.space)}."
    )
    study = _search(adapter, objective, trials, progress_bar)
    finished = adapter.finished_trials(study)
    best = adapter.best_trial(study)
    _compare_estimates(
        objective,
        adapter.params_of(best, objective),
        lambda: adapter.honest_estimate(study, objective),
        test_error,
        progress_bar,
    )
    test_errors = np.array(
        [
            test_error(adapter.params_of(trial, objective))
            for trial in _with_progress(finished, "Test errors of all trials", progress_bar)
        ]
    )
    click.echo(
        f"\nThe test error is {test_errors[0]:.4f} for the first trial, which has default "
        f"hyperparameters,\n{np.median(test_errors):.4f} for the median trial, and "
        f"{test_errors.min():.4f} for the trial that is best on the test rows."
    )
    if picture is not None:
        losses = np.array([trial.value for trial in finished])
        _draw(losses, test_errors, best.number, picture)
        click.echo(f"The picture is in {picture.resolve()}")


def _import_adapter(picture: Path | None) -> Any:
    """Return the adapter to Optuna, or raise before the search if a package is missing."""
    try:
        from span_hpo.integrations import optuna as adapter

        if picture is not None:
            import matplotlib  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "The demo needs Optuna, and matplotlib for its picture: "
            "pip install 'span-hpo[optuna,plots]'."
        ) from missing
    return adapter


def _load_rows() -> tuple[Any, Any, Any, Any]:
    """Return training and test features, then their labels; 0 is malignant, 1 is benign."""
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    scaler = MinMaxScaler().fit(X_train)
    return scaler.transform(X_train), scaler.transform(X_test), y_train, y_test


def _search(adapter: Any, objective: SpanObjective, trials: int, progress_bar: bool) -> Any:
    """Run the trials, print how long they took, and return the study."""
    study = adapter.new_study(seed=0)
    _, seconds = _timed(
        lambda: adapter.search(study, objective, n_trials=trials, progress_bar=progress_bar)
    )
    spent = [trial.user_attrs["seconds"] for trial in adapter.finished_trials(study)]
    click.echo(
        f"The search took {seconds:.1f} s; the median trial took {1e3 * np.median(spent):.1f} ms."
    )
    return study


def _compare_estimates(
    objective: SpanObjective,
    params: dict[str, Any],
    honest: Callable[[], HonestEstimate],
    test_error: Callable[[dict[str, Any]], float],
    progress_bar: bool,
) -> None:
    """Print the error of one model by several methods, and the seconds that each method takes."""
    methods: dict[str, Callable[[], float]] = {
        "honest, corrected for the search, no fit": lambda: honest().error,
        "span-rule, one fit (optimistic: selected)": lambda: objective(params),
        "exact leave-one-out, proven from one fit": lambda: (
            objective.evaluate(params, loo_method="exact").loss
        ),
        f"leave-one-out, {len(objective.data)} refits": lambda: (
            objective.evaluate(params, loo_method="refit").loss
        ),
        "5-fold cross-validation, 5 fits": lambda: objective.cross_validate(params).loss,
        "test rows": lambda: test_error(params),
    }
    # The times of the methods include neither the kernel matrix nor the compilation.
    objective.evaluate(params, loo_method="exact")
    steps = _with_progress(list(methods.items()), "Errors of the selected trial", progress_bar)
    results = [(title, *_timed(method)) for title, method in steps]
    selected = ", ".join(f"{name} {value:.3g}" for name, value in params.items())
    click.echo(f"\n{selected:43}{'error':>8}{'seconds':>10}")
    for title, error, seconds in results:
        click.echo(f"{title:43}{error:8.4f}{seconds:10.4f}")
    low, high = honest().interval
    click.echo(f"The 90 % interval of the honest estimate is {low:.4f} to {high:.4f}.")


def _with_progress(items: Sequence[_T], label: str, show: bool) -> Iterator[_T]:
    """Yield the items and, if asked to, show a progress bar on standard error."""
    if not show:
        yield from items
        return
    with click.progressbar(items, label=label, file=sys.stderr) as bar:
        yield from bar


def _draw(losses: Any, test_errors: Any, best: int, picture: Path) -> None:
    """Draw the loss of every trial, and beside it the test error against that loss."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.5, 4.6), layout="constrained")
    search, scatter = figure.subplots(1, 2)
    dots = {"color": "C0", "alpha": 0.5, "mew": 0, "ms": 7, "label": "trial"}
    selected = {"mfc": "none", "mec": "C3", "ms": 12, "mew": 2, "label": "selected trial"}
    is_tied = np.count_nonzero(losses == losses[best]) > 1
    of_equals = {**selected, "label": "selected of equal trials, by the smooth error"}
    numbers = np.arange(1, len(losses) + 1)
    search.plot(numbers, losses, ".", **dots)
    search.step(numbers, np.minimum.accumulate(losses), "0.3", where="post", label="best so far")
    search.plot(best + 1, losses[best], "o", **(of_equals if is_tied else selected))
    search.set(title="The search", xlabel="Number of the trial")
    search.set(ylabel="Leave-one-out error (span-rule)", yscale="log")
    search.legend(loc="upper right")
    ends = [0.8 * min(losses.min(), test_errors.min()), 1.2 * max(losses.max(), test_errors.max())]
    scatter.plot(ends, ends, color="0.6", lw=1, label="equal errors")
    scatter.plot(losses, test_errors, ".", **dots)
    scatter.plot(losses[best], test_errors[best], "o", **selected)
    scatter.set(title="Estimate from one fit and error on new rows", xscale="log", yscale="log")
    scatter.set(xlabel="Leave-one-out error (span-rule)", ylabel="Error on the test rows")
    for axis in (search.yaxis, scatter.xaxis, scatter.yaxis):
        axis.set_ticks(_TICKS, [f"{tick:g}" for tick in _TICKS])
        axis.set_ticks([], minor=True)
        axis.grid(color="0.92")
    scatter.set_aspect("equal")
    scatter.legend(loc="upper left")
    figure.savefig(picture, dpi=130)


def _timed(function: Callable[[], _T]) -> tuple[_T, float]:
    """Call a function and return its result and the seconds that it took."""
    start = time.perf_counter()
    result = function()
    return result, time.perf_counter() - start
