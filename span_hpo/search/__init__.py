"""Share names, budgets and written hyperparameters among all adapters."""

from span_hpo.search.budgets import DEFAULT_BUDGETS, budgets_to_all_rows, default_budgets
from span_hpo.search.forecasts import Forecast
from span_hpo.search.limits import wanted_trials
from span_hpo.search.names import PRUNERS, SAMPLERS, SCHEDULERS, SEARCHES
from span_hpo.search.written import option_labels, read_params, written_grid, written_params

__all__ = [
    "DEFAULT_BUDGETS",
    "PRUNERS",
    "SAMPLERS",
    "SCHEDULERS",
    "SEARCHES",
    "Forecast",
    "budgets_to_all_rows",
    "default_budgets",
    "option_labels",
    "read_params",
    "wanted_trials",
    "written_grid",
    "written_params",
]
