import numpy as np
import pytest

from span_hpo import PowerScore, SigmoidScore
from span_hpo.data import as_dataset
from span_hpo.weighting.products import cost_gradient
from tests.weighting.rows import DATA, Q, X, assert_gradient_is_right, costs


def test_sigmoid_of_a_score():
    """C_i = max(C / (1 + exp(-A (q - B))), floor), eq. 39 of the span paper."""
    found = costs(SigmoidScore(), {"A": 4.0, "B": 0.5, "C": 2.0})
    np.testing.assert_allclose(found, 2 / (1 + np.exp(-4 * (Q - 0.5))))
    low = costs(SigmoidScore(), {"A": 10.0, "B": 0.9, "C": 0.02})
    assert low.min() == 0.01
    assert costs(SigmoidScore(A=1, B=0, C=1, floor=0.6)).min() == 0.6


def test_steep_sigmoids_do_not_overflow():
    """Any finite steepness gives finite costs and no warning."""
    found = costs(SigmoidScore(A=1e8, B=0.5, C=3.0))
    np.testing.assert_allclose(found, [0.01, 0.01, 1.5, 3.0])


def test_power_of_a_score():
    """C_i = C q^tau; with tau = 0 all rows cost C, also where q = 0."""
    np.testing.assert_allclose(costs(PowerScore(), {"C": 3.0, "tau": 2.0}), 3 * Q**2)
    assert costs(PowerScore(tau=0.0), {"C": 3.0}).tolist() == [3.0] * 4


def test_scores_by_name():
    """With several scores the weighting names its own."""
    data = as_dataset(X, [0, 1, 0, 1], scores={"q": Q, "age": 1 - Q})
    np.testing.assert_allclose(costs(PowerScore("age", C=1, tau=1), data=data), 1 - Q)
    with pytest.raises(ValueError, match="because several scores are given, got None"):
        costs(PowerScore(C=1, tau=1), data=data)


def test_score_outside_the_unit_interval():
    """Sigmoid and power need scores in [0, 1] and say which row is not."""
    data = as_dataset(X, [0, 1, 0, 1], scores=[0.5, 1.5, 0.1, -2.0])
    for weighting in (SigmoidScore(A=1, B=0, C=1), PowerScore(C=1, tau=1)):
        with pytest.raises(ValueError, match=r"`scores` must lie in \[0, 1\] .* got 1.5 in row 1"):
            costs(weighting, data=data)


@pytest.mark.parametrize(
    ("weighting", "params", "message"),
    [
        (SigmoidScore(), {"A": None, "B": 0, "C": 1}, "`A` must be a finite number, got None"),
        (SigmoidScore(floor=-1), {"A": 1, "B": 0, "C": 1}, "`floor` must be a finite number of"),
        (PowerScore(), {"C": 1, "tau": -1}, "`tau` must be a finite number of at least 0, got -1"),
    ],
)
def test_wrong_parameters_are_named(weighting, params, message):
    """A parameter that makes no cost is an error."""
    with pytest.raises(ValueError, match="must be") as caught:
        costs(weighting, params)
    assert message in str(caught.value)


@pytest.mark.parametrize("C", [0.05, 2.0, 1e5])
@pytest.mark.parametrize("A", [1.0, 4.0, 40.0])
def test_gradients_of_a_sigmoid_are_those_of_central_differences(A, C):
    """By steepness, midpoint and largest cost, also where some rows cost the floor."""
    assert_gradient_is_right(SigmoidScore(), {"A": A, "B": 0.45, "C": C})
    assert_gradient_is_right(SigmoidScore(A=A, C=C), {"B": 0.45})
    assert_gradient_is_right(SigmoidScore(B=0.45), {"A": A, "C": C})


def test_rows_at_the_floor_do_not_move():
    """Their costs have slope 0, even if no row is above the floor."""
    weights = np.ones(4)
    params = {"A": 4.0, "B": 0.5, "C": 2.0}
    found = cost_gradient(SigmoidScore(floor=3.0), DATA, params, weights)
    assert found == {"A": 0.0, "B": 0.0, "C": 0.0}
    steep = cost_gradient(SigmoidScore(A=1e8, B=0.3), DATA, {"C": 3.0}, weights)
    assert steep == {"C": 2.0}


@pytest.mark.parametrize("tau", [0.3, 1.0, 4.0])
def test_gradients_of_a_power_are_those_of_central_differences(tau):
    """By cost and exponent, with a row of score 0 and one of score 1."""
    assert_gradient_is_right(PowerScore(), {"C": 3.0, "tau": tau})
    assert_gradient_is_right(PowerScore(tau=tau), {"C": 1e5})
    assert_gradient_is_right(PowerScore(C=3.0), {"tau": tau})


def test_a_row_of_score_zero_has_no_slope_by_the_exponent():
    """Its cost is C for the exponent 0 and 0 beyond; the derivative is that of the other rows."""
    found = cost_gradient(PowerScore(C=3.0), DATA, {"tau": 0.0}, np.ones(4))
    assert found["tau"] == pytest.approx(3 * np.log(Q[1:]).sum())
