"""Exact leave-one-out beside brute force and stopped fits: times and agreement."""

from benchmarks.harness.runner import RESULTS, Options, read_rows
from benchmarks.papers import exact_selection, published, rivals
from tests.benchmarks.data_sets import with_data
from tests.benchmarks.results import lines_of


@with_data
def test_quick_rivals_measure_both_kernels(tmp_path):
    """A quick run times four methods with each kernel; the sampled classes agree."""
    rows = rivals.run(Options(quick=True, folder=tmp_path)).rows
    assert sorted(row["kernel"] for row in rows) == ["linear", "linear", "rbf", "rbf"]
    for row in rows:
        assert row["differ"] == "0"
        assert all(float(row[f"{method}_ms"]) > 0 for method in rivals.METHODS)


def test_rivals_cover_the_grids_and_agree():
    """Every point of both grids is there for every set; no class of a sampled row differs."""
    rows = read_rows(RESULTS / "rivals.csv")
    assert [
        (row["dataset"], row["kernel"], *map(float, (row["C"], row["gamma"]))) for row in rows
    ] == [
        (name, kernel, *model)
        for name in rivals.DATASETS
        for kernel in exact_selection.KERNELS
        for model in exact_selection.GRIDS[kernel]
    ]
    assert {row["differ"] for row in rows} == {"0"}


def test_rival_table_holds_what_was_published():
    """Each line has the published speed-up and share of stopped fits beside ours."""
    lines = lines_of(rivals.table())
    assert len(lines) == 2 * len(rivals.DATASETS)
    for name, kernels in published.EXACT_SECONDS.items():
        for title, (_, speed_up, stopped) in zip(("linear", "RBF"), kernels, strict=True):
            assert lines[f"{name}, {title}"][6].endswith(f"({speed_up:.1f})")
            assert lines[f"{name}, {title}"][7].endswith(f"({stopped:.0f}%)")
