"""Check budgets, the numbers of rows on which a trial is evaluated before it may be stopped."""

from collections.abc import Sequence

from span_hpo.objective import SpanObjective
from span_hpo.runtime import ArgumentError

# Default budgets, as shares of the rows: those that the benchmarks `pruning` and `cluster` measure.
DEFAULT_BUDGETS = (0.125, 0.25, 0.5, 1.0)


def default_budgets(objective: SpanObjective, *, may_stop: bool) -> tuple[int, ...]:
    """Return the budgets, in rows, of a search that names none.

    Shares of so few rows that they do not hold all classes, or not more rows than the share before,
    are left out.

    Parameters
    ----------
    objective
        Objective that is evaluated on the rows.
    may_stop
        Whether a pruner may stop trials early. Otherwise all rows are used at once.

    Returns
    -------
    Number of rows of each budget; the last one is all rows.
    """
    if not may_stop:
        return objective.budget_rows((1.0,))
    counts = {int(share * len(objective.data)) for share in DEFAULT_BUDGETS}
    return tuple(sorted(count for count in counts if count >= objective.data.least_rows))


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
