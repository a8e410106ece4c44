"""The judge finds what is wrong in the package's answers."""

import dataclasses

import numpy as np
import pytest

from benchmarks.robustness import judge as module
from benchmarks.robustness.families import make
from benchmarks.robustness.judge import COUNTS, Verdict, judge


def test_an_ordinary_problem_has_nothing_wrong():
    """All rows are checked and proven, by several methods."""
    verdict = Verdict()
    for number in (0, 2, 4, 10):
        judge(make("noise", number), number, verdict)
    assert verdict.cases == []
    assert verdict.counts["checks"] == verdict.counts["certified"] > 0
    assert verdict.counts["other_checks"] > 0
    assert verdict.counts["order_checks"] > 0
    assert set(verdict.counts) <= set(COUNTS)


def changed(monkeypatch, change):
    """Let the package give changed answers."""
    ask = module.leave_one_out
    monkeypatch.setattr(module, "leave_one_out", lambda *args, **kw: change(ask(*args, **kw)))


def test_turned_signs_are_wrong_proofs(monkeypatch):
    """Each certified row whose class is turned around is counted and named."""

    def turned(answer):
        return dataclasses.replace(answer, decision_values=-answer.decision_values)

    changed(monkeypatch, turned)
    verdict, instance = Verdict(), make("integer_grid", 6)
    judge(instance, 6, verdict)
    assert verdict.counts["wrong_proofs"] == len(instance.y)
    assert verdict.cases[0].startswith("wrong_proofs 6 row 0: ")
    assert verdict.counts["wrong_bounds"] == 0


def test_bounds_that_exclude_the_truth_are_wrong(monkeypatch):
    """Error bounds are compared with the true error."""
    changed(monkeypatch, lambda answer: dataclasses.replace(answer, error_bounds=(0.0, 0.0)))
    verdict = Verdict()
    judge(make("noise", 6), 6, verdict)
    assert verdict.counts["wrong_bounds"] == 1


def test_several_classes_are_judged_by_their_vote(monkeypatch):
    """Values that elect another class are wrong proofs, too."""
    changed(monkeypatch, lambda answer: dataclasses.replace(answer, y=(answer.y + 1) % 3))
    verdict = Verdict()
    instance = make("classes", 0)
    judge(instance, 2, verdict)
    assert verdict.counts["checks"] == len(instance.y)
    assert verdict.counts["wrong_proofs"] > 0


def test_an_exception_is_a_failure_that_is_named(monkeypatch):
    """The sweep goes on, and says what was raised."""

    def refuse(*args, **kwargs):
        raise ArithmeticError("too large")

    monkeypatch.setattr(module, "leave_one_out", refuse)
    verdict, instance = Verdict(), make("blobs", 6)
    judge(instance, 6, verdict)
    assert verdict.counts["failures"] == 1
    assert verdict.counts["unproven"] == len(instance.y)
    assert "ArithmeticError: too large" in verdict.cases[0]


@pytest.mark.parametrize("number", [0, 1, 2, 10])
def test_numbers_choose_the_methods(number, monkeypatch):
    """Every fourth number asks for spans, every second for all values, and so on."""
    asked = []
    ask = module.leave_one_out

    def noted(solution, **options):
        asked.append(options)
        return ask(solution, **options)

    monkeypatch.setattr(module, "leave_one_out", noted)
    judge(make("blobs", 0), number, Verdict())
    expected = {
        0: {"method": "span"},
        1: {"method": "exact", "complete": True},
        2: {"method": "stopping"},
        10: {"method": "refit"},
    }
    assert asked == [{"method": "exact"}, expected[number]]
    assert np.isfinite(make("blobs", 0).K).all()
