import logging
import math
import re
import threading
import tracemalloc

import numpy as np
import pytest

from span_hpo import RBF, SpanObjective, SpanSVC
from span_hpo.integrations.optuna import new_study, search
from span_hpo.search.forecasts import MANY_ROWS, Forecast, memory_line, time_line
from tests.problems import two_moons

MEMORY = r"The kernel matrices of 3,001 rows take 144 MB of memory, .* up to 432 MB in all\."
TIME = r"The first 3 trials have taken .*; the other 2 will take about .*\."


@pytest.fixture(scope="module")
def many():
    """Return rows that are just enough for a forecast, and easy to fit."""
    rng = np.random.default_rng(0)
    y = np.arange(MANY_ROWS + 1) % 2
    return np.column_stack([y * 4 + rng.normal(size=len(y)), rng.normal(size=len(y))]), y


def test_memory_is_that_of_an_evaluation():
    """The forecast is near the peak of an evaluation in which all rows are support vectors."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1200, 20)), rng.integers(0, 2, 1200)
    objective = SpanObjective(X, y)
    forecast = objective.memory(1)
    tracemalloc.start()
    try:
        evaluation = objective.evaluate({"gamma": 1.0, "C_0": 10.0, "C_1": 10.0})
        peak = tracemalloc.get_traced_memory()[1] / 1e6
    finally:
        tracemalloc.stop()
    assert evaluation.n_in_bound > 1000
    assert 0.5 * forecast.peak < peak < 1.5 * forecast.peak


def test_threads_and_fixed_kernels_share_matrices():
    """Threads share the distances; a kernel without hyperparameters has a single matrix."""
    X, y = two_moons(100)
    one = 8e-6 * 100**2
    assert SpanObjective(X, y).memory(1).matrices == pytest.approx(2 * one)
    assert SpanObjective(X, y).memory(4).matrices == pytest.approx(5 * one)
    assert SpanObjective(X, y, kernel=RBF(gamma=1.0)).memory(4).matrices == pytest.approx(one)


def test_a_matrix_beyond_the_limit_is_announced():
    """The line says what the matrices would take, and what follows from the limit."""
    objective = SpanObjective(*two_moons(2000), memory_limit=10)
    assert memory_line(objective, threads=1) == (
        "The kernel matrices of 2,000 rows would take 64 MB, more than the `memory_limit` of "
        "10 MB. Fits therefore work on the features, which takes longer."
    )


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((3, 53, 6.0), "The first 3 trials have taken 6 s; the other 50 will take about 100 s."),
        (
            (3, 303, 60.0),
            "The first 3 trials have taken 60 s; the other 300 will take about 100 min.",
        ),
        (
            (4, math.inf, 20.0, 140.0),
            "The first 4 trials have taken 20 s; about 24 more will be made in the 2 min that are "
            "left.",
        ),
        (
            (4, 6, 20.0, 600.0),
            "The first 4 trials have taken 20 s; the other 2 will take about 10 s.",
        ),
    ],
)
def test_time_is_in_proportion_to_the_trials(arguments, expected):
    """What is left follows from the first trials, the number of trials and the timeout."""
    assert time_line(*arguments) == expected


def test_a_search_on_many_rows_has_two_lines(many, caplog):
    """One line comes before the first trial and one after some trials; the default is the log."""
    objective, lines = SpanObjective(*many), []
    seen = []
    search(
        new_study(sampler="random", seed=0),
        objective,
        n_trials=5,
        report=lines.append,
        callbacks=[lambda *_: seen.append(len(lines))],
    )
    assert seen == [1, 1, 1, 2, 2]  # the callbacks of the user come first
    assert re.fullmatch(MEMORY, lines[0])
    assert re.fullmatch(TIME, lines[1])
    with caplog.at_level(logging.INFO, logger="span_hpo"):
        search(new_study(sampler="random", seed=0), objective, n_trials=1)
    assert [bool(re.fullmatch(MEMORY, record.getMessage())) for record in caplog.records] == [True]


def test_estimators_print_forecasts_unless_they_must_not(many, capfd):
    """By default the lines are on standard error; False and few rows print nothing."""
    X, y = many
    for progress_bar, count in ((None, 2), (False, 0)):
        SpanSVC(n_trials=5, random_state=0, progress_bar=progress_bar).fit(X, y)
        printed = capfd.readouterr().err.splitlines()
        assert len(printed) == count
    SpanSVC(n_trials=5, random_state=0).fit(X[:200], y[:200])
    assert capfd.readouterr().err == ""


def test_trials_are_counted_across_threads(many):
    """However many threads report trials, there is one line about time."""
    lines = []
    forecast = Forecast(
        SpanObjective(*many), n_trials=100, timeout=None, threads=8, report=lines.append
    )
    threads = [threading.Thread(target=forecast.trial_done) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lines) == 1
    assert lines[0].startswith("The first 8 trials have taken")
