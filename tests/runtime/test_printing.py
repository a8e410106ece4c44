import logging
import subprocess
import sys
from html.parser import HTMLParser

import numpy as np

from span_hpo import RBF, Problem, SpanObjective, leave_one_out, solve
from span_hpo.runtime.printing import counted
from tests.problems import moons_problem, rbf, two_moons


def test_leave_one_out_prints_what_it_found():
    """Error, bounds and counts are there, in words."""
    solution = solve(moons_problem(40, cost=5.0))
    span, exact = leave_one_out(solution), leave_one_out(solution, "exact")
    text = str(span)
    assert text.startswith("Leave-one-out by method 'span'")
    assert f"{span.error:.4f} ({round(40 * span.error)} of 40)" in text
    low, high = span.error_bounds
    assert f"between {low:.4f} and {high:.4f}" in text
    assert f"40 rows; the exact error is {exact.error:.4f}" in str(exact)
    assert len(text.splitlines()) == 6


class Cells(HTMLParser):
    def __init__(self):
        super().__init__()
        self.texts, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_evaluation_prints_loss_and_parameters():
    """As text and as HTML, with names escaped."""
    X, y = two_moons(40)
    objective = SpanObjective(X, np.where(y > 0, "<b>", "a"), metric=("error", "hinge"))
    evaluation = objective.evaluate({"gamma": 1.0, "C_a": 2.0, "C__b_": 0.123456789})
    text = repr(evaluation)
    for piece in ("error", "hinge", "gamma", "0.123457", "40 rows", "support vectors"):
        assert piece in text
    page = Cells()
    page.feed(evaluation._repr_html_())
    assert not page.open
    assert "0.123457" in page.texts
    assert "hinge" in page.texts


def test_html_escapes_names():
    """A name cannot become markup."""
    X, y = two_moons(20)
    fixed = SpanObjective(X, y, kernel=RBF(gamma=1.0), metric=lambda y, f: 0.5)
    html = fixed.evaluate({"C_-1": 1.0, "C_1": 1.0})._repr_html_()
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html


def test_counted():
    """One is singular, and thousands are separated."""
    assert (counted(1, "row"), counted(0, "row"), counted(1234, "row")) == (
        "1 row",
        "0 rows",
        "1,234 rows",
    )


def test_evaluations_are_logged(caplog):
    """Every evaluation is a debug message, and refits are reported."""
    X, y = two_moons(20)
    objective = SpanObjective(X, y, kernel=RBF(gamma=1.0), loo_method="refit")
    with caplog.at_level(logging.DEBUG, logger="span_hpo"):
        objective({"C_-1": 1.0, "C_1": 2.0})
    messages = [record.getMessage() for record in caplog.records]
    assert any("'C_1': 2.0" in message and "error" in message for message in messages)
    assert any("20 of 20 rows had to be refitted" in message for message in messages)


def test_silent_by_default():
    """Without a handler nothing is written, not even warnings of logging itself."""
    code = """
import numpy as np
from span_hpo import SpanObjective
X = np.random.default_rng(0).normal(size=(20, 2))
SpanObjective(X, X[:, 0] > 0, loo_method="refit")({"gamma": 1.0, "C_False": 1.0, "C_True": 1.0})
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == found.stderr == ""


def test_problem_with_many_rows_prints_quickly():
    """A summary does not list arrays."""
    X, y = two_moons(300)
    loo = leave_one_out(solve(Problem(rbf(X, 1.0), y, np.ones(300))))
    assert len(repr(loo)) < 400
