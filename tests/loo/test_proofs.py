import numpy as np

from span_hpo.loo.proofs import Proofs


def test_a_new_ledger_proves_nothing():
    """All positions are open, and none is exact."""
    ledger = Proofs.none(4)
    assert ledger.open.tolist() == [0, 1, 2, 3]
    assert not ledger.exact.any()
    assert not ledger.proven.any()


def test_what_is_found_is_entered_at_its_positions():
    """The stages fill the ledger one after the other, each what the last one has left open."""
    ledger = Proofs.none(5)
    first = Proofs.of_values(np.array([0.5, 9.0, -2.0]), np.array([0.0, np.inf, 1.0]))
    ledger.put(np.array([3, 0, 1]), first)
    assert ledger.open.tolist() == [0, 2, 4]
    second = Proofs.of_values(np.array([1.0, -1.0]), np.array([0.5, 0.0]))
    ledger.put(ledger.open[[0, 2]], second)
    assert ledger.open.tolist() == [2]
    np.testing.assert_array_equal(ledger.margin[ledger.proven], [1.0, -2.0, 0.5, -1.0])
    assert ledger.exact.tolist() == [False, False, False, True, True]


def test_an_entry_can_be_withdrawn():
    """The last word counts: a position that is entered as open is open again."""
    ledger = Proofs.of_values(np.ones(2), np.zeros(2))
    ledger.put(np.array([1]), Proofs.none(1))
    assert ledger.open.tolist() == [1]
    assert ledger.exact.tolist() == [True, False]
