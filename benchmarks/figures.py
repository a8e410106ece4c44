"""Draw the figures of the documentation, from the CSVs where they show measurements."""

from pathlib import Path

import numpy as np

from benchmarks.harness.runner import RESULTS, read_rows, rows_with
from benchmarks.papers import (
    bound_contours,
    bound_lines,
    postal,
    radius_margin,
    rescaling,
    weighted,
)
from span_hpo import Problem, free_squared_spans, solve
from span_hpo.loo import dual_path

DOCS = Path(__file__).parent.parent / "docs"
_BLUE, _ORANGE, _GREEN = "#1f5fa8", "#d9622b", "#3a8f5c"
_GREY, _BLACK = "#777777", "#222222"


def draw(folder: Path = DOCS) -> None:
    """Draw every figure."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {"font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    )
    path_figure(folder / "path.png")
    growth_figure(folder / "growth.png")
    for name in weighted.CURVES:
        curves_figure(name, folder / f"curves_{name.removeprefix('ida_')}.png")
    ringnorm_figure(folder / "ringnorm.png")
    prediction_figure(folder / "span_prediction.png")
    rescaling_figure(folder / "rescaling.png")
    bound_line_figure(folder / "bound_line.png")
    bound_contours_figure(folder / "bound_contours.png")


def path_figure(file: Path) -> None:
    """Draw ``y_p f(x_p)`` against ``alpha_p`` for one row, with its kinks and a slide."""
    from matplotlib import pyplot as plt

    x = np.array([0.2, 0.6, 0.8, 1.2, 1.4, 2.1, 2.6])
    y = np.array([1, -1, 1, -1, 1, 1, 1])
    costs = np.array([1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0])
    row = 2
    solution = solve(Problem(np.exp(-((x[:, None] - x) ** 2)), y, costs))
    path = dual_path(solution, row)
    start = path.alpha[0]
    by_span = path.margin[0] - free_squared_spans(solution)[row] * start
    figure, axes = plt.subplots(figsize=(6.4, 3.9))
    axes.axhline(0, color=_GREY, lw=0.8)
    axes.plot(
        [start, 0],
        [path.margin[0], by_span],
        "--",
        color=_ORANGE,
        label="span-rule: the first segment, prolonged",
    )
    axes.plot(path.alpha, path.margin, "o-", color=_BLUE, lw=2, ms=5, label="dual path")
    slide = int(np.flatnonzero(np.diff(path.alpha) == 0)[0])
    axes.annotate(
        "the offset slides",
        (path.alpha[slide], (path.margin[slide] + path.margin[slide + 1]) / 2),
        xytext=(-12, 0),
        textcoords="offset points",
        ha="right",
        va="center",
    )
    axes.annotate(
        f"row left out:\n{path.margin[-1]:.2f}",
        (0, path.margin[-1]),
        xytext=(0, 9),
        textcoords="offset points",
        ha="right",
    )
    axes.annotate(
        f"{by_span:.2f}", (0, by_span), xytext=(0, 6), textcoords="offset points", ha="right"
    )
    axes.set_xlim(1.03 * start, -0.03 * start)
    axes.set_xlabel(r"$\alpha_p$, from its value in the fit to 0")
    axes.set_ylabel(r"$y_p\, f(x_p)$")
    axes.legend(frameon=False, loc="lower left")
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def growth_figure(file: Path) -> None:
    """Draw the time of exact leave-one-out, in fits, against the number of rows."""
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    rows = read_rows(RESULTS / "growth.csv")
    names = list(dict.fromkeys(row["dataset"] for row in rows))
    costs = sorted({float(row["C"]) for row in rows})
    colors = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(costs)))
    figure, grid = plt.subplots(2, len(names), figsize=(8.2, 6.2), sharex=True, sharey="row")
    for column, name in enumerate(names):
        for line, what in enumerate(("classes", "values")):
            axes = grid[line, column]
            for C, color in zip(costs, colors, strict=True):
                own = [row for row in rows if row["dataset"] == name and float(row["C"]) == C]
                axes.plot(
                    [int(row["rows"]) for row in own],
                    [float(row[f"{what}_ms"]) / float(row["svc_fit_ms"]) for row in own],
                    "o-",
                    color=color,
                    ms=4,
                    label=f"C = $2^{{{int(np.log2(C))}}}$",
                )
            axes.axhline(1, color=_GREY, lw=0.8)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_ylim(0.005, 10)
            for axis in (axes.xaxis, axes.yaxis):
                axis.set_major_formatter(ticker.FormatStrFormatter("%g"))
            title = "classes only" if what == "classes" else "all values"
            axes.set_title(f"{name.removeprefix('ida_')}: {title}", fontsize=10)
            if column == 0:
                axes.set_ylabel("CPU time / SVC.fit")
            if line == 1:
                axes.set_xlabel("rows")
    grid[0, 0].legend(frameon=False, fontsize=8, ncol=2)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def curves_figure(name: str, file: Path) -> None:
    """Draw the estimates along each hyperparameter through the least test error of a grid."""
    from matplotlib import pyplot as plt

    rows = rows_with(read_rows(RESULTS / "weighted_curves.csv"), dataset=name)
    parameters = list(dict.fromkeys(row["parameter"] for row in rows))
    titles = {"C_1": "$C^+$", "C_-1": "$C^-$"}
    lines = {
        "xi_alpha": ("ξα", _GREY),
        "cv5_error": ("5-fold CV", _GREEN),
        "span_error": ("span-rule", _BLUE),
        "test_error": ("test error", _ORANGE),
    }
    width = 4.2 * len(parameters) if len(parameters) == 2 else 10.0
    figure, grid = plt.subplots(1, len(parameters), figsize=(width, 3.4), sharey=True)
    for axes, parameter in zip(grid, parameters, strict=True):
        own = rows_with(rows, parameter=parameter)
        x = np.array([float(row["value"]) for row in own])
        for column, (label, color) in lines.items():
            y = np.array([float(row[column]) for row in own])
            axes.plot(x, y, color=color, lw=2 if column == "test_error" else 1.5, label=label)
            lowest = int(y.argmin())
            marker, size = ("*", 13) if column == "test_error" else ("s", 6)
            axes.plot(x[lowest], y[lowest], marker, color=color, ms=size, mec="white", zorder=3)
        if parameter.startswith("C"):
            axes.set_xscale("log", base=2)
        axes.set_xlabel(titles.get(parameter, parameter))
    grid[0].set_ylim(bottom=0)
    grid[0].set_ylabel("error")
    grid[0].legend(frameon=False, fontsize=9)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def ringnorm_figure(file: Path) -> None:
    """Draw time and numbers of support vectors against the number of rows."""
    from matplotlib import pyplot as plt

    rows = read_rows(RESULTS / "ringnorm.csv")
    sizes_of = sorted({int(row["features"]) for row in rows})
    styles = dict(zip(sizes_of, ("-", "--", ":"), strict=False))
    figure, (times, counts) = plt.subplots(1, 2, figsize=(9.4, 3.9))
    for features, style in styles.items():
        own = [row for row in rows if int(row["features"]) == features]
        sizes = [int(row["rows"]) for row in own]
        for column, color, label in (
            ("cv5_s", _GREEN, "5-fold CV"),
            ("exact_s", _ORANGE, "exact leave-one-out"),
            ("span_s", _BLUE, "span-rule"),
        ):
            with_fit = ("fit_s", column) if column != "cv5_s" else (column,)
            seconds = [sum(float(row[part]) for part in with_fit) for row in own]
            times.plot(sizes, seconds, style, color=color, label=f"{label}, d = {features}")
        for column, color, label in (
            ("n_support", _GREEN, "support vectors"),
            ("n_in_bound", _BLUE, "in-bound"),
        ):
            numbers = [float(row[column]) for row in own]
            counts.plot(sizes, numbers, style, color=color, label=f"{label}, d = {features}")
    times.set_ylabel("CPU seconds per point, fit included")
    counts.set_ylabel("rows")
    for axes in (times, counts):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("training rows")
        axes.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def prediction_figure(file: Path) -> None:
    """Draw test error and estimates against the kernel's width, and against the cost."""
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    styles = {
        "test_error": {"fmt": "o-", "color": _BLACK},
        "rest_error": {"fmt": "s:", "color": _GREY},
        "span_error": {"fmt": "^-", "color": _ORANGE},
        "exact_error": {"fmt": "v--", "color": _BLUE},
    }
    titles = {
        "usps": "postal digits, 0-4 against 5-9: 23 subsets of 317 rows",
        "ida_breast_cancer": "breast cancer: 10 splits of 200 and 77 rows",
    }
    rows = read_rows(RESULTS / "postal.csv")
    figure, both = plt.subplots(1, 2, figsize=(10.4, 4.2))
    for axes, dataset in zip(both, postal.DATASETS, strict=True):
        # Bars at the same place would hide each other: every curve is shifted a little.
        for shift, (column, points) in enumerate(postal.curves(rows, dataset).items()):
            x, middle, deviation = np.array(points).T
            axes.errorbar(
                x * 1.02 ** (shift - 1.5),
                100 * middle,
                yerr=100 * deviation,
                ms=4,
                lw=1.4,
                elinewidth=0.7,
                label=postal.CURVES[column],
                **styles[column],
            )
        axes.set_xscale("log", base=2 if dataset == "usps" else 10)
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.set_xlabel(r"$\sigma$" if dataset == "usps" else "C")
        axes.set_ylim(bottom=0 if dataset == "usps" else 15)
        axes.set_title(titles[dataset], fontsize=10)
    both[0].set_ylabel("error, %: mean and standard deviation")
    both[0].legend(frameon=False)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def rescaling_figure(file: Path) -> None:
    """Draw the radius-margin value before and after the rescaling, and the test error."""
    from matplotlib import pyplot as plt
    from matplotlib import ticker

    titles = {
        "radius_margin": "$R^2 / M^2$",
        "rescaled": "$R^2 / M^2$ after the rescaling",
        rescaling.TEST: "test error, %",
    }
    figure, parts = plt.subplots(1, 3, figsize=(10.4, 3.5))
    curves = rescaling.curves()
    for axes, (column, title) in zip(parts, titles.items(), strict=True):
        x, middle, deviation = np.array(curves[column]).T
        unit = 100 if column == rescaling.TEST else 1
        color = _BLACK if column == rescaling.TEST else _BLUE
        axes.errorbar(
            x, unit * middle, yerr=unit * deviation, fmt="o-", color=color, ms=4, elinewidth=0.7
        )
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        axes.set_xlabel(r"$\sigma$")
        axes.set_ylim(bottom=0)
        axes.set_title(title, fontsize=10)
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def bound_line_figure(file: Path) -> None:
    """Draw two bounds of the L2-SVM and its test error against the width, for image."""
    from matplotlib import pyplot as plt

    rows = bound_lines.BENCHMARK.rows()
    own = rows_with(rows, dataset="ida_image", varied="ln_sigma2", svm="l2")
    lines = {
        "l2": (r"$\tilde R^2 \|\tilde w\|^2$", _BLUE),
        "l2_slack": (r"$(R^2 + 0.25/C)\, \|\tilde w\|^2$ (eq. 2.7)", _GREEN),
    }
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.4, 3.6))
    for column, (label, color) in lines.items():
        y = np.array([float(row[column]) for row in own])
        x = np.array([float(row["x"]) for row in own])
        left.plot(x, y, color=color, label=label)
        lowest = int(y.argmin())
        left.plot(x[lowest], y[lowest], "s", color=color, mec="white", ms=7)
        error = 100 * float(own[lowest][bound_lines.TEST])
        right.plot(x[lowest], error, "s", color=color, mec="white", ms=7, zorder=3)
    errors = [100 * float(row[bound_lines.TEST]) for row in own]
    right.plot([float(row["x"]) for row in own], errors, color=_BLACK)
    left.set_ylim(bottom=0)
    left.set_ylabel("bound, in rows")
    left.legend(frameon=False, loc="lower left")
    right.set_ylim(bottom=0)
    right.set_ylabel("test error, %")
    for axes in (left, right):
        axes.set_xticks([-10, -5, 0, 5, 10])
        axes.set_xlabel(r"$\ln \sigma^2$")
    figure.tight_layout()
    figure.savefig(file, dpi=150)
    plt.close(figure)


def bound_contours_figure(file: Path) -> None:
    """Draw the contours of both bounds on two data sets, and the paths of the searches."""
    from matplotlib import pyplot as plt

    rows, searches = bound_contours.BENCHMARK.rows(), radius_margin.BENCHMARK.rows()
    names = bound_contours.DATASETS
    figure, grid = plt.subplots(
        len(names), 2, figsize=(9.4, 7.8), sharex=True, sharey=True, layout="constrained"
    )
    ticks = np.array(bound_contours.GRID)
    for name, line in zip(names, grid, strict=True):
        own = rows_with(rows, dataset=name)
        for svm, axes in zip(("l1", "l2"), line, strict=True):
            shape = (len(ticks), len(ticks))  # ln sigma^2 by ln C
            values, errors = (
                np.array([float(row[column]) for row in own]).reshape(shape)
                for column in (svm, f"{svm}_error")
            )
            # Contours at equal ratios above the minimum, closer to each other near to it.
            above = np.log(values / values.min())
            levels = np.array([0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12])
            shades = axes.contourf(
                ticks, ticks, 100 * errors, levels=np.arange(0, 61, 5), cmap="Oranges", alpha=0.8
            )
            axes.contour(ticks, ticks, above, levels=levels, colors=_GREY, linewidths=0.8)
            (search,) = rows_with(searches, dataset=name, svm=svm)
            path = radius_margin.path_of(search)
            axes.plot(*path.T, "o-", color=_BLUE, ms=4, lw=1.6)
            axes.plot(*path[-1], "*", color=_BLUE, ms=15, mec="white", clip_on=False, zorder=4)
            axes.set_title(f"{name.removeprefix('ida_')}: {svm.upper()}-SVM", fontsize=10)
    for axes in grid[-1]:
        axes.set_xlabel(r"$\ln C$")
    for axes in grid[:, 0]:
        axes.set_ylabel(r"$\ln \sigma^2$")
    grid[0, 0].set_xticks([-10, -5, 0, 5, 10])
    grid[0, 0].set_yticks([-10, -5, 0, 5, 10])
    figure.colorbar(shades, ax=grid, label="test error, %", shrink=0.6)
    figure.savefig(file, dpi=150)
    plt.close(figure)
