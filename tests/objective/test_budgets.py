from decimal import Decimal

import numpy as np
import pytest

from span_hpo.data import as_dataset
from span_hpo.objective.budgets import budgets_in_rows


def rows(count, *, rare=None):
    """Return so many rows of two classes, halved, or with few rows of one of them."""
    y = np.arange(count) % 2 if rare is None else (np.arange(count) < rare).astype(int)
    return as_dataset(np.arange(float(count))[:, None], y)


def test_a_share_of_k_rows_is_k_rows():
    """The share k / n of n rows is k rows, although the product may round to less."""
    for count in range(4, 120):
        data = rows(count)
        shares = [k / count for k in range(data.least_rows, count + 1)]
        expected = tuple(range(data.least_rows, count + 1))
        assert budgets_in_rows(shares, data) == expected


@pytest.mark.parametrize("share", ["0.1", "0.125", "0.29", "0.3", "0.57", "0.7", "0.999"])
def test_shares_are_rounded_down(share):
    """Other shares are as many whole rows as they hold, by decimal arithmetic."""
    for count in range(30, 400):
        expected = int(Decimal(share) * count)
        assert budgets_in_rows([float(share), 1.0], rows(count)) == (expected, count)


def test_numbers_and_shares_may_be_mixed():
    """Whole numbers count rows, decimal ones share them: 1 is one row, 1.0 is all of them."""
    data = rows(80)
    for budgets in ((10, 0.25, 40, 1.0), [10, 0.25, 40, 1.0], np.array([0.125, 0.25, 0.5, 1.0])):
        assert budgets_in_rows(budgets, data) == (10, 20, 40, 80)
    assert budgets_in_rows(np.array([20, 80]), data) == (20, 80)
    with pytest.raises(ValueError, match="at least 2 rows to hold all classes"):
        budgets_in_rows((1,), data)


def test_the_least_budget_holds_every_class():
    """The first budget that is allowed has a row of each class, one row fewer has not."""
    data = rows(60, rare=3)
    least = data.least_rows
    assert budgets_in_rows((least, 60), data) == (least, 60)
    assert len(set(data.codes[data.nested_order[:least]])) == 2
    assert len(set(data.codes[data.nested_order[: least - 1]])) == 1
    with pytest.raises(ValueError, match=f"`budgets` must have at least {least} rows"):
        budgets_in_rows((least - 1, 60), data)


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ("0.5", "must be a list of numbers or shares of rows, got '0.5'"),
        (10, "must be a list of numbers or shares of rows, got 10"),
        ([], "must have at least one number or share of rows, got none"),
        ([20, 20], r"must increase, got \[20, 20\], which is \[20, 20\] rows"),
        ([0.5, 0.51, 0.515], "must increase"),  # 40 rows twice
        ([1.01], "must have shares of at most 1.0, got 1.01"),
        ([True], "must be a whole number from 1 to 80, got True"),
        ([np.nan], "must be a finite number above 0, got nan"),
    ],
)
def test_budgets_that_make_no_sense_are_named(budgets, message):
    """The argument is named with what is wanted and what was given."""
    with pytest.raises(ValueError, match=f"`budgets` {message}"):
        budgets_in_rows(budgets, rows(80))
