"""Where the time of a study goes."""

import pytest

from benchmarks.search import overhead
from benchmarks.search.studies import new_study
from span_hpo import SpanObjective
from span_hpo.integrations.optuna import OptunaObjective, search
from tests.benchmarks.results import rows_of

ROWS = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]


@pytest.mark.parametrize(
    "study",
    [
        lambda: new_study(0).optimize(OptunaObjective(SpanObjective(*ROWS)), n_trials=15),
        lambda: search(new_study(0), SpanObjective(*ROWS), n_trials=15),
    ],
    ids=["adapter", "search"],
)
def test_parts_are_within_the_whole(study):
    """The sampler and the evaluations take a part of the time each, not counted twice."""
    evaluate = SpanObjective.evaluate
    spent = overhead.parts_of(study)
    assert min(spent["sampler"], spent["evaluations"]) > 0
    assert spent["sampler"] + spent["evaluations"] < spent["study"]
    assert SpanObjective.evaluate is evaluate


def test_committed_shares_have_the_sum_one():
    """The three parts make up each study, and two data sets have 400 rows."""
    rows = rows_of("overhead.csv")
    assert [row["rows"] for row in rows].count("400") == 2
    for row in rows:
        for study in overhead.STUDIES:
            shares = [row[f"{study}_{part}_share"] for part in ("sampler", "evaluations", "rest")]
            assert sum(map(float, shares)) == pytest.approx(1, abs=3e-4)
