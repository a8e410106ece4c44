"""Check budgets, the numbers of rows on which a trial is evaluated before it may be stopped."""

from collections.abc import Sequence

from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError

DEFAULT_BUDGETS = (0.125, 0.25, 0.5, 1.0)  # default budgets, as shares of the rows


def default_budgets(*, may_stop: bool) -> tuple[float, ...]:
    """Return the budgets of a search that names none.

    Parameters
    ----------
    may_stop
        Whether a pruner or a scheduler may stop trials early. Otherwise all rows are used at once.
    """
    return DEFAULT_BUDGETS if may_stop else (1.0,)


def budgets_to_all_rows(objective: SpanObjective, budgets: Sequence[float]) -> tuple[int, ...]:
    """Return budgets as increasing numbers of rows that end with all rows.

    Parameters
    ----------
    objective
        Objective that is evaluated on the rows.
    budgets
        Numbers of rows, or shares of all rows.

    Returns
    -------
    Number of rows of each budget.

    Raises
    ------
    ValueError
        If the budgets do not increase, do not end with all rows, or begin with too few rows to
        hold all classes.
    """
    n_rows = objective.budget_rows(budgets)
    if n_rows[-1] != len(objective.data):
        raise ArgumentError(
            "budgets",
            f"must end with all {len(objective.data)} rows, got {list(budgets)}, which is "
            f"{list(n_rows)} rows.",
        )
    return n_rows
