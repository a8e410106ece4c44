"""Search by gradients, and share names, budgets and hyperparameters among all adapters."""

from span_hpo.search.adam import Descent
from span_hpo.search.alignment import Alignment, aligned_point
from span_hpo.search.bfgs import projected_bfgs
from span_hpo.search.budgets import DEFAULT_BUDGETS, budgets_to_all_rows, default_budgets
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.descent import DEFAULT_PENALTY, minimize
from span_hpo.search.exploration import (
    Exploration,
    Visit,
    walk_over_scales,
    walk_with_aligned_widths,
)
from span_hpo.search.forecasts import Forecast
from span_hpo.search.limits import wanted_trials
from span_hpo.search.names import PRUNERS, SAMPLERS, SCHEDULERS, SEARCHES
from span_hpo.search.spread import Spread, spread_of
from span_hpo.search.steps import (
    ALIKE,
    GRADIENT,
    NO_GRADIENT,
    PENALTY,
    Wanted,
    check_gradient,
    evaluated_step,
    has_gradient,
    penalty_at,
    shortened,
)
from span_hpo.search.watched import Comparison, Minimum, Step
from span_hpo.search.written import option_labels, read_params, written_grid, written_params

__all__ = [
    "ALIKE",
    "DEFAULT_BUDGETS",
    "DEFAULT_PENALTY",
    "GRADIENT",
    "NO_GRADIENT",
    "PENALTY",
    "PRUNERS",
    "SAMPLERS",
    "SCHEDULERS",
    "SEARCHES",
    "Alignment",
    "Comparison",
    "Coordinates",
    "Descent",
    "Exploration",
    "Forecast",
    "Minimum",
    "Spread",
    "Step",
    "Visit",
    "Wanted",
    "aligned_point",
    "budgets_to_all_rows",
    "check_gradient",
    "default_budgets",
    "evaluated_step",
    "has_gradient",
    "minimize",
    "option_labels",
    "penalty_at",
    "projected_bfgs",
    "read_params",
    "shortened",
    "spread_of",
    "walk_over_scales",
    "walk_with_aligned_widths",
    "wanted_trials",
    "written_grid",
    "written_params",
]
