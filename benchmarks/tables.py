"""Write the tables of the README and the documentation from the CSVs of the benchmarks."""

from pathlib import Path

from benchmarks.cost import (
    classes,
    evaluation,
    exact,
    first_fit,
    gradient_cost,
    growth,
    large,
    scale,
    search_points,
    speed,
)
from benchmarks.papers import (
    bound_lines,
    exact_selection,
    own_spans,
    postal,
    radius_margin,
    rescaling,
    rivals,
    weighted,
)
from benchmarks.peers import calibration, grids, peers
from benchmarks.robustness import chaos, gradients, jumps, mutations, one_answer, truth
from benchmarks.search import (
    ard,
    bound_searches,
    cluster,
    drop_in,
    ensembles,
    honesty,
    loo_methods,
    nodes,
    overhead,
    pruning,
    refine,
    samplers,
    search,
    spaces,
    stopping,
    thresholds,
    users,
)

ROOT = Path(__file__).parent.parent


def write(root: Path = ROOT) -> None:
    """Replace what stands between the markers of each table; no file is written if one fails."""
    texts = {file: (root / file).read_text() for file in TABLES}
    for file, tables in TABLES.items():
        for name, make in tables.items():
            texts[file] = replaced(texts[file], name, make())
    for file, text in texts.items():
        (root / file).write_text(text)


def replaced(text: str, name: str, new: str) -> str:
    """Return the text with a new table between ``<!-- name -->`` and ``<!-- /name -->``."""
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, rest = text.split(start)
    after = rest.split(end)[1]
    return f"{before}{start}\n{new}{end}{after}"


# Page, marker on it, and the function that makes the table between the markers.
TABLES = {
    "README.md": {"speed": speed.table},
    "docs/scale.md": {
        "speed": speed.full_table,
        "random costs": evaluation.table,
        "gradient cost": gradient_cost.table,
        "exact": exact.table,
        "search points": search_points.table,
        "first fit": first_fit.table,
        "evaluation": scale.table,
        "growth": growth.table,
        "large": large.table,
        "cluster": cluster.table,
        "nodes": nodes.table,
    },
    "docs/optuna.md": {"chaos": chaos.table},
    "docs/search.md": {
        "search": search.table,
        "search time": search.time_table,
        "pruning": pruning.table,
        "overhead": overhead.table,
        "time of a study": overhead.shares_table,
        "samplers": samplers.table,
        "samplers by set": samplers.details_table,
        "spaces": spaces.table,
        "loo methods": loo_methods.table,
        "users": users.table,
        "thresholds": thresholds.table,
        "ensembles": ensembles.table,
        "honest ensembles": ensembles.honest_table,
        "honesty": honesty.table,
        "honesty time": honesty.time_table,
        "stopping": stopping.table,
    },
    "docs/bounds.md": {"bound searches": bound_searches.table},
    "docs/search_cv.md": {"drop in": drop_in.table},
    "docs/theory.md": {
        "one answer": one_answer.table,
        "jumps": jumps.table,
        "gradients": gradients.table,
        "truth": truth.table,
    },
    "docs/command_line.md": {"mutations": mutations.table},
    "docs/results.md": {
        "weighted": weighted.summary_table,
        "selection": weighted.selection_table,
        "ties": weighted.ties_table,
        "rmse": weighted.rmse_table,
        "counts": weighted.counts_table,
        "seconds": weighted.seconds_table,
        "criteria": weighted.criteria_table,
        "exact selection": exact_selection.table,
        "exact selection time": exact_selection.time_table,
        "rivals": rivals.table,
        "postal": postal.table,
        "rescaling": rescaling.table,
        "radius margin": radius_margin.table,
        "bound lines": bound_lines.table,
        "own spans": own_spans.table,
        "peers": peers.table,
        "grids": grids.table,
        "ard": ard.table,
        "refine": refine.table,
        "classes": classes.table,
        "calibration": calibration.table,
    },
}
