"""Search by gradients, and share names, budgets and hyperparameters among all adapters."""

from span_hpo.search.adam import Descent
from span_hpo.search.budgets import DEFAULT_BUDGETS, budgets_to_all_rows, default_budgets
from span_hpo.search.coordinates import Coordinates
from span_hpo.search.descent import default_start, minimize
from span_hpo.search.forecasts import Forecast
from span_hpo.search.limits import wanted_trials
from span_hpo.search.names import PRUNERS, SAMPLERS, SCHEDULERS, SEARCHES
from span_hpo.search.spread import Spread, spread_of
from span_hpo.search.watched import Minimum, Step
from span_hpo.search.written import option_labels, read_params, written_grid, written_params

__all__ = [
    "DEFAULT_BUDGETS",
    "PRUNERS",
    "SAMPLERS",
    "SCHEDULERS",
    "SEARCHES",
    "Coordinates",
    "Descent",
    "Forecast",
    "Minimum",
    "Spread",
    "Step",
    "budgets_to_all_rows",
    "default_budgets",
    "default_start",
    "minimize",
    "option_labels",
    "read_params",
    "spread_of",
    "wanted_trials",
    "written_grid",
    "written_params",
]
