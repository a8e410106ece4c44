"""Which estimate selects the best model of a grid, and which one predicts its error.

The points of `benchmarks.papers.weighted_points` are too large for the repository. They are
summarised in CSVs with a row for every split and criterion, with a row for every split, and with
the curves of Figures 2 to 4.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import mean, median, stdev
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks.cost.spans import programs_per_closed_form
from benchmarks.harness.markdown import markdown_table
from benchmarks.harness.runner import (
    RESULTS,
    Options,
    ResultFile,
    machine,
    read_rows,
    rows_with,
    versions,
)
from benchmarks.papers import published, weighted_points

# Columns of the criteria and their names in tables; all criteria are minimised.
CRITERIA = {
    "span_error": "span-rule",
    "span_bound": "span bound",
    "cv5_error": "5-fold CV",
    "xi_alpha": "ξα",
    "exact_error": "exact",
    "span_smooth_error": "smooth error",
    "span_balanced_error": "balanced error",
    "span_hinge": "hinge",
    "span_log_loss": "log loss",
    "span_brier": "Brier",
    "span_auc": "AUC",
    "span_average_precision": "average precision",
    "span_f1": "F1",
    "span_mcc": "MCC",
    "cv5_smooth_error": "5-fold smooth error",
    "support_vectors": "support vectors",
    "jaakkola_haussler": "Jaakkola-Haussler",
    "opper_winther": "Opper-Winther",
}
CURVES = ("ida_image", "a1a", "bank")
_CURVED = ("test_error", "span_error", "cv5_error", "xi_alpha")
_COUNTS = ("n_empty", "n_empty_in_bound", "n_in_bound", "n_support")
_TIMES = [f"{name}_ms" for name in weighted_points.TIMES]
_Points = list[dict[str, str]]
DATASETS = weighted_points.DATASETS
OPTIONS = ("jobs", "quick", "splits")


def run(options: Options) -> None:
    """Evaluate every grid point that is missing, then summarise all points."""
    weighted_points.run(options)
    summarise(options)


def summarise(options: Options) -> None:
    """Replace the rows of splits whose points exist here; the rows of other splits stay."""
    of_criterion = ["dataset", "split", "criterion"]
    fixed = _Summary("weighted.csv", of_criterion, _SELECTED, options)
    searched = _Summary("weighted_widths.csv", of_criterion, _SELECTED, options)
    models = _Summary("weighted_models.csv", ["dataset", "split"], _MODELS, options)
    of_curve = ["dataset", "split", "parameter", "value"]
    curves = _Summary("weighted_curves.csv", of_curve, [*_CURVED], options)
    for kind, dataset, split, points in _complete_grids(options):
        of_split = {"dataset": dataset, "split": split}
        chosen = searched if kind == "widths" else fixed
        for criterion in CRITERIA:
            if points[0][criterion]:  # some criteria are left out for large data
                chosen.add({**of_split, "criterion": criterion, **selected(points, criterion)})
        if kind == "widths":
            continue
        models.add({**of_split, **_model_figures(points)})
        if dataset in CURVES and split == 0:
            for row in _curves(points):
                curves.add({**of_split, **row})
    for summary in (fixed, searched, models, curves):
        summary.write()


class _Summary:
    """A CSV in which all rows of a split are replaced together."""

    def __init__(self, name: str, key: list[str], columns: list[str], options: Options) -> None:
        self.path, self.key, self.columns = options.folder / name, key, columns
        self.new: list[dict[str, Any]] = []

    def add(self, row: dict[str, Any]) -> None:
        """Store a row until `write` is called."""
        self.new.append(row)

    def write(self) -> None:
        """Write old and new rows in the order of the data sets, as a whole or not at all."""
        replaced = {(row["dataset"], str(row["split"])) for row in self.new}
        old = read_rows(self.path) if self.path.exists() else []
        kept = [row for row in old if (row["dataset"], row["split"]) not in replaced]
        half = self.path.with_suffix(".new")
        half.unlink(missing_ok=True)
        stamp = {"versions": versions(), "machine": machine()}
        columns = [*self.columns, *stamp]
        file = ResultFile(half, key=self.key, columns=columns, stamped=False)
        # Rows that were measured elsewhere keep the stamp of their machine.
        for row in sorted([*kept, *({**row, **stamp} for row in self.new)], key=_place):
            file.add(row)
        if half.exists():
            half.replace(self.path)


def _place(row: dict[str, Any]) -> tuple[int, int]:
    return DATASETS.index(row["dataset"]), int(row["split"])


_SELECTED = ["worst_of_ties", "mean_of_ties", "ties", "rmse"]
_MODELS = [
    "points",
    "least_test_error",
    *(f"{name}_{kind}" for name in _COUNTS for kind in ("mean", "deviation")),
    "n_refit",
    *_TIMES,
]


def _complete_grids(options: Options) -> Iterable[tuple[str, str, int, _Points]]:
    """Yield grid, data set, number of the split and points of every grid that is complete."""
    for kind in weighted_points.GRIDS:
        rows = weighted_points.points_file(kind, options).rows
        size = weighted_points.grid_size(kind, quick=options.quick)
        rows.sort(key=_place)
        for (dataset, split), own in groupby(rows, key=lambda row: (row["dataset"], row["split"])):
            points = list(own)
            if len(points) == size:
                yield kind, dataset, int(split), points


def selected(points: _Points, criterion: str) -> dict[str, float]:
    """Return the worst and the mean test error of the minima of a criterion, and more."""
    estimate, test = _numbers(points, criterion), _numbers(points, "test_error")
    best = estimate == estimate.min()
    return {
        "worst_of_ties": round(float(test[best].max()), 6),
        "mean_of_ties": round(float(test[best].mean()), 6),
        "ties": int(best.sum()),
        "rmse": round(float(np.sqrt(np.mean((estimate - test) ** 2))), 6),
    }


def _model_figures(points: _Points) -> dict[str, Any]:
    counts = {name: _numbers(points, name) for name in _COUNTS}
    return {
        "points": len(points),
        "least_test_error": round(float(_numbers(points, "test_error").min()), 6),
        **{f"{name}_mean": round(float(values.mean()), 4) for name, values in counts.items()},
        **{f"{name}_deviation": round(float(values.std()), 4) for name, values in counts.items()},
        "n_refit": int(_numbers(points, "n_refit").sum()),
        **{name: round(float(_numbers(points, name).mean()), 4) for name in _TIMES},
    }


def _curves(points: _Points) -> Iterable[dict[str, Any]]:
    """Yield points that differ from the one with the least test error in one hyperparameter."""
    names = [name for name in points[0] if name in ("C_1", "C_-1", "A", "B", "C")]
    best = points[int(_numbers(points, "test_error").argmin())]
    for name in names:
        others = [other for other in names if other != name]
        for row in points:
            if all(row[other] == best[other] for other in others):
                estimates = {column: row[column] for column in _CURVED}
                yield {"parameter": name, "value": row[name], **estimates}


def _numbers(points: _Points, column: str) -> Any:
    return np.array([float(row[column]) for row in points])


# Tables.


def selection_table() -> str:
    """Return Tables 2 and 3: test errors by criterion, with the published ones in brackets."""
    lines, least = [], _least_errors()
    for name, splits in _by_dataset("weighted.csv"):
        cells = []
        for criterion, value in zip(published.CRITERIA, published.SELECTED[name], strict=True):
            ours = _values(splits, criterion, "worst_of_ties")
            cells.append(f"{_mean_and_deviation(ours)} ({value:.4f})")
        cells.append(f"{_mean_and_deviation(least[name])} ({published.LEAST[name]:.4f})")
        lines.append([name, str(len(least[name])), *cells])
    titles = [CRITERIA[name] for name in published.CRITERIA]
    return markdown_table(["data set", "splits", *titles, "lowest on the grid"], lines)


def summary_table() -> str:
    """Return a table of the test errors that the best criteria select."""
    lines, least = [], _least_errors()
    for name, splits in _by_dataset("weighted.csv"):
        known = dict(zip(published.CRITERIA, published.SELECTED[name], strict=True))
        cells = []
        for criterion in ("span_error", "cv5_error", "exact_error", "span_smooth_error"):
            ours = _values(splits, criterion, "worst_of_ties")
            printed = f" ({known[criterion]:.4f})" if criterion in known else ""
            cells.append(f"{mean(ours):.4f}{printed}")
        lines.append([name, *cells, f"{mean(least[name]):.4f} ({published.LEAST[name]:.4f})"])
    titles = ["span-rule", "5-fold CV", "exact error", "smooth error", "lowest on the grid"]
    return markdown_table(["data set", *titles], lines)


def ties_table() -> str:
    """Return a table of the mean test error over ties, and of the number of ties."""
    lines = []
    for name, splits in _by_dataset("weighted.csv"):
        cells = []
        for criterion in (*published.CRITERIA, "exact_error", "span_smooth_error"):
            ties = median(_values(splits, criterion, "ties"))
            cells.append(f"{mean(_values(splits, criterion, 'mean_of_ties')):.4f} ({ties:g})")
        lines.append([name, *cells])
    titles = [CRITERIA[name] for name in (*published.CRITERIA, "exact_error", "span_smooth_error")]
    return markdown_table(["data set", *titles], lines)


def rmse_table() -> str:
    """Return Table 4: the distance of each estimate to the test error over the grid."""
    lines = []
    shown = ("span_error", "cv5_error", "xi_alpha")
    for name, splits in _by_dataset("weighted.csv"):
        values = dict(zip(shown, published.RMSE[name], strict=True))
        cells = []
        for criterion in (*shown, "exact_error"):
            ours = _values(splits, criterion, "rmse")
            known = f" ({values[criterion]:.4f})" if criterion in values else ""
            cells.append(f"{_mean_and_deviation(ours)}{known}")
        lines.append([name, *cells])
    return markdown_table(
        ["data set", *(CRITERIA[name] for name in (*shown, "exact_error"))], lines
    )


def counts_table() -> str:
    """Return Table 5: rows without a box span, in-bound and all support vectors."""
    lines = []
    for name, splits in _by_dataset("weighted_models.csv"):
        cells = []
        for column, value in zip(
            ("n_empty_in_bound", "n_in_bound", "n_support"), published.COUNTS[name], strict=True
        ):
            ours, spread = (
                mean(float(row[f"{column}_{kind}"]) for row in splits)
                for kind in ("mean", "deviation")
            )
            digits = 3 if column == "n_empty_in_bound" else 1
            cells.append(f"{ours:.{digits}f} ± {spread:.{digits}f} ({value:g})")
        everyone = mean(float(row["n_empty_mean"]) for row in splits)
        lines.append([name, cells[0], f"{everyone:.3f}", *cells[1:]])
    columns = [
        "in-bound support vectors without a span",
        "all support vectors without a span",
        "in-bound support vectors",
        "all support vectors",
    ]
    return markdown_table(["data set", *columns], lines)


def seconds_table() -> str:
    """Return Table 6: CPU time as a ratio to 5-fold cross-validation in the same run."""
    lines = []
    for name, splits in _by_dataset("weighted_models.csv"):
        ms = {column: mean(float(row[column]) for row in splits) for column in _TIMES}
        spans, folds = published.SECONDS[name]
        cv5 = ms["cv5_ms"]
        lines.append(
            [
                name,
                f"{cv5:.3g}",
                f"{ms['span_ms'] / cv5:.3f} ({spans / folds:.2f})",
                f"{ms['span_ms'] / cv5 * programs_per_closed_form(name):.2f}",
                f"{(ms['fit_ms'] + ms['span_ms']) / cv5:.2f}",
                f"{(ms['fit_ms'] + ms['exact_ms']) / cv5:.2f}",
                f"{(ms['fit_ms'] + ms['bound_ms']) / cv5:.2f}",
            ]
        )
    columns = [
        "5-fold CV, ms",
        "spans / CV",
        "spans by PIQP / CV",
        "fit and spans / CV",
        "fit and exact error / CV",
        "fit and span bound / CV",
    ]
    return markdown_table(["data set", *columns], lines)


def criteria_table() -> str:
    """Return a table of mean rank, wins and test error of every criterion.

    One column is for gamma fixed on all sets; two are for the sets of both grids, with gamma fixed
    and searched.
    """
    everywhere, searched = (
        read_rows(RESULTS / name) for name in ("weighted.csv", "weighted_widths.csv")
    )
    both = {row["dataset"] for row in searched}
    fixed = [row for row in everywhere if row["dataset"] in both]
    columns = {
        f"gamma fixed, {len({row['dataset'] for row in everywhere})} sets": _ranking(everywhere),
        f"gamma fixed, {len(both)} sets": _ranking(fixed),
        f"gamma searched, {len(both)} sets": _ranking(searched),
    }
    (first, *_) = columns.values()
    order = sorted(CRITERIA, key=lambda criterion: first.get(criterion, _LAST)[0])
    return markdown_table(
        ["criterion", *(f"{title}: rank, wins, test error" for title in columns)],
        [
            [CRITERIA[criterion], *(_shown(found.get(criterion)) for found in columns.values())]
            for criterion in order
        ],
    )


_LAST = (np.inf, 0, np.inf)


def _ranking(rows: _Points) -> dict[str, tuple[float, int, float]]:
    """Return mean rank, wins and mean test error of the criteria that all data sets have."""
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    shared = [
        criterion
        for criterion in CRITERIA
        if {row["dataset"] for row in rows if row["criterion"] == criterion} == set(names)
    ]
    errors = np.array([[_mean_error(rows, name, one) for one in shared] for name in names])
    ranks = np.array([rankdata(line) for line in errors]).mean(axis=0)
    wins = (errors == errors.min(axis=1, keepdims=True)).sum(axis=0)
    return dict(zip(shared, zip(ranks, wins, errors.mean(axis=0), strict=True), strict=True))


def _shown(found: tuple[float, int, float] | None) -> str:
    return "" if found is None else f"{found[0]:.1f}, {found[1]}, {found[2]:.4f}"


def _mean_error(rows: _Points, dataset: str, criterion: str) -> float:
    return mean(_values(rows_with(rows, dataset=dataset), criterion, "mean_of_ties"))


def _values(rows: _Points, criterion: str, column: str) -> list[float]:
    """Return a column of the splits for one criterion."""
    return [float(row[column]) for row in rows_with(rows, criterion=criterion)]


def _by_dataset(csv: str) -> Iterable[tuple[str, _Points]]:
    """Yield the name of every data set in a CSV, and its rows."""
    for name, own in groupby(read_rows(RESULTS / csv), key=lambda row: row["dataset"]):
        yield name, list(own)


def _least_errors() -> dict[str, list[float]]:
    """Return the least test error on the grid in each split, by data set."""
    models = _by_dataset("weighted_models.csv")
    return {name: [float(row["least_test_error"]) for row in splits] for name, splits in models}


def _mean_and_deviation(values: Sequence[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4f}"
    return f"{mean(values):.4f} ± {stdev(values):.4f}"
