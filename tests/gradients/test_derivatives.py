import itertools

import numpy as np
import pytest

from span_hpo.gradients.derivatives import Derivatives


def derivatives(count, seed=0):
    """Return random derivatives with 3 in-bound, 4 bounded and 2 other rows with a beta."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(count)[:9]
    inner, bounded, others = np.sort(chosen[:3]), np.sort(chosen[3:7]), chosen[7:]
    beta, factors = np.zeros(count), rng.normal(size=count)
    beta[chosen] = rng.normal(size=9)
    factors[rng.random(count) < 0.3] = 0.0
    factors[others[0]] = 0.0
    block = rng.normal(size=(7, 3))
    block[:3] = np.tril(block[:3])
    return Derivatives(
        by_cost=np.zeros(count),
        factors=factors,
        beta=beta,
        inner=inner,
        bounded=bounded,
        block=block,
        own=rng.normal(size=4),
        keeps_rank=True,
    )


def as_matrix(found, count):
    """Return the sum of all blocks of weights as one matrix."""
    weights = np.zeros((count, count))
    for rows, columns, block in found.blocks():
        assert block.shape == (len(rows), len(columns))
        weights[np.ix_(rows, columns)] += block
    return weights


@pytest.mark.parametrize("seed", range(5))
def test_weights_follow_the_formula(seed):
    """``dL = h' dK beta + sum Q_ij dK_ij + sum s_p dK_pp`` for any symmetric dK."""
    found = derivatives(20, seed)
    dK = np.random.default_rng(seed).normal(size=(20, 20))
    dK += dK.T
    support = np.concatenate([found.inner, found.bounded])
    expected = found.factors @ dK @ found.beta
    expected += np.vdot(found.block, dK[np.ix_(support, found.inner)])
    expected += found.own @ dK.diagonal()[found.bounded]
    assert np.vdot(as_matrix(found, 20), dK) == pytest.approx(expected)


@pytest.mark.parametrize(("at_once", "least"), [(1, 1), (50, 2), (10**6, 64)])
def test_blocks_do_not_depend_on_their_size(monkeypatch, at_once, least):
    """Few rows at a time or all together give the same weights, each row once."""
    expected = as_matrix(derivatives(40), 40)
    monkeypatch.setattr("span_hpo.gradients.derivatives._WEIGHTS_AT_ONCE", at_once)
    monkeypatch.setattr("span_hpo.gradients.derivatives._LEAST_ROWS", least)
    blocks = list(derivatives(40).blocks())
    rows = np.concatenate([first for first, _, _ in blocks])
    assert len(np.unique(rows)) == len(rows)
    found = as_matrix(derivatives(40), 40)
    np.testing.assert_allclose(found + found.T, expected + expected.T, rtol=1e-12, atol=1e-14)
    assert (len(blocks) == 2) == (at_once == 10**6)


def test_pairs_without_weight_are_left_out():
    """Rows that matter for no value are not computed, and each pair of support vectors once."""
    found = derivatives(40)
    support = set(np.flatnonzero(found.beta))
    (others, columns, _), (rows, prefix, _) = list(found.blocks())
    assert set(columns) == set(rows) == set(prefix) == support
    assert set(others) == set(np.flatnonzero(found.factors)) - support


def test_columns_become_fewer(monkeypatch):
    """Each block has the first columns of the block before, which can be kept."""
    monkeypatch.setattr("span_hpo.gradients.derivatives._WEIGHTS_AT_ONCE", 1)
    monkeypatch.setattr("span_hpo.gradients.derivatives._LEAST_ROWS", 2)
    all_columns = [columns for _, columns, _ in derivatives(40).blocks()]
    for before, after in itertools.pairwise(all_columns):
        np.testing.assert_array_equal(after, before[: len(after)])
    assert len(all_columns[-1]) == 2
