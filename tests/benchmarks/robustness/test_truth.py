"""The sweep: no proof is wrong."""

import pytest

from benchmarks.harness.runner import Options, read_rows
from benchmarks.robustness import truth
from benchmarks.robustness.exhaustive import n_problems
from benchmarks.robustness.families import EXHAUSTIVE, FAMILIES
from benchmarks.robustness.truth import DATASETS, PARTS, ROWS, described, judged_part, run
from tests.benchmarks.results import rows_of

FRESH = 500  # a part that the benchmark does not measure
SAMPLED_ROWS = 830  # of each family: 30,000 rows of all families
NOTHING = ("wrong_proofs", "wrong_values", "wrong_bounds", "order_differences", "failures")


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_no_proof_is_wrong(family):
    """Proven classes, exact values and error bounds of random problems are right."""
    verdict = judged_part(family, FRESH, SAMPLED_ROWS)
    assert verdict.counts["checks"] >= SAMPLED_ROWS
    assert {name: verdict.counts[name] for name in NOTHING if verdict.counts[name]} == {}, (
        "\n".join(verdict.cases[:20])
    )


@pytest.mark.slow
@pytest.mark.parametrize("part", [0, 1, 27, 46])
def test_no_proof_of_the_smallest_problems_is_wrong(part):
    """A share of all problems of two to five rows on a grid is right."""
    verdict = judged_part(EXHAUSTIVE, part, 2_000)
    assert {name: verdict.counts[name] for name in NOTHING if verdict.counts[name]} == {}, (
        "\n".join(verdict.cases[:20])
    )


def test_the_sweep_has_a_million_checks_of_many_families():
    """Rows of all families and of every small problem, each judged by one or more methods."""
    of_grids = 4 * n_problems()  # nearly all of these problems have five rows, none less than two
    assert len(FAMILIES) * PARTS * ROWS + of_grids >= 600_000
    assert len(FAMILIES) >= 15
    rows = rows_of("truth.csv")
    assert sum(int(row["checks"]) + int(row["other_checks"]) for row in rows) >= 1_000_000


def test_no_proof_of_the_long_run_is_wrong():
    """The committed figures: no wrong class, value or bound, no failure and no effect of order."""
    for name in NOTHING:
        assert sum(int(row[name]) for row in rows_of("truth.csv")) == 0, name


def test_a_quick_run_writes_its_counts(tmp_path, capsys):
    """One row for each family, with counts that add up, and a table that is printed."""
    run(Options(datasets=["blobs", "ties"], quick=True, folder=tmp_path))
    rows = read_rows(tmp_path / "truth.csv")
    assert [row["family"] for row in rows] == ["blobs", "ties"]
    for row in rows:
        assert int(row["checks"]) == int(row["certified"]) + int(row["unproven"]) >= 24
    assert "| all |" in capsys.readouterr().out


def test_a_part_is_a_fixed_set_of_problems():
    """Two runs give the same counts, and a family ends with its problems."""
    first, second = (judged_part("noise", 3, 100).counts for _ in range(2))
    assert first == second
    assert judged_part(EXHAUSTIVE, 0, 10).counts["checks"] >= 10


def test_one_problem_is_described():
    """The description holds the problem and the exact margin of every row."""
    text = described("reported", 0)
    assert "costs = array([100., 100., 100., 100.])" in text
    assert "row 0: y f = 0.57999992" in text
    assert "reference 0.57999992" in text


def test_number_prints_and_measures_nothing(tmp_path, capsys):
    """`--number` writes no CSV."""
    run(Options(datasets=["ties"], number=3, folder=tmp_path))
    assert "Problem 3 of the family 'ties'" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_every_family_is_a_choice_of_the_command():
    """The exhaustive part is one of them."""
    assert [*FAMILIES, EXHAUSTIVE] == DATASETS
    assert truth.BENCHMARK.csv == "truth.csv"
