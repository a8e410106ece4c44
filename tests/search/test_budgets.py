import pytest

from span_hpo import SpanObjective
from span_hpo.search import DEFAULT_BUDGETS, budgets_to_all_rows, default_budgets
from tests.problems import two_moons


def test_default_budgets_double_up_to_all_rows():
    """Shares become numbers of rows, each twice the one before."""
    objective = SpanObjective(*two_moons(120))
    assert budgets_to_all_rows(objective, DEFAULT_BUDGETS) == (15, 30, 60, 120)
    assert default_budgets(objective, may_stop=True) == (15, 30, 60, 120)
    assert default_budgets(objective, may_stop=False) == (120,)


@pytest.mark.parametrize(("rows", "wanted"), [(2, (2,)), (4, (2, 4)), (10, (2, 5, 10))])
def test_default_budgets_hold_all_classes(rows, wanted):
    """Shares of too few rows are left out."""
    objective = SpanObjective(*two_moons(rows))
    assert default_budgets(objective, may_stop=True) == wanted


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ((0.25, 0.5), r"must end with all 120 rows, got \[0.25, 0.5\], which is \[30, 60\] rows"),
        ((80, 40, 120), "must increase"),
        ((1, 120), "must have at least 2 rows"),
    ],
)
def test_wrong_budgets_are_named(budgets, message):
    """Budgets that stop before all rows, do not increase or are too small are refused."""
    with pytest.raises(ValueError, match=f"`budgets` {message}"):
        budgets_to_all_rows(SpanObjective(*two_moons(120)), budgets)
