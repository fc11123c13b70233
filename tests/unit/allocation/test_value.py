"""The value function against numbers worked out by hand."""

import numpy as np
import pytest

from benchmarks.oracles import scalar_value
from coba_openrlhf.allocation.value import adaptive_tau, log_beta_density, value, value_gains


@pytest.mark.parametrize(
    ("pass_rate", "alpha", "beta", "density"),
    [
        (0.3, 1.0, 1.0, 1.0),
        (0.5, 2.0, 2.0, 1.5),  # 6 * 0.5 * 0.5
        (0.3, 2.0, 5.0, 2.1609),  # 30 * 0.3 * 0.7^4
        (0.2, 3.0, 1.0, 0.12),  # 3 * 0.2^2
    ],
)
def test_density_matches_hand_computed_numbers(pass_rate, alpha, beta, density):
    assert np.exp(log_beta_density(np.array([pass_rate]), alpha, beta))[0] == pytest.approx(density, rel=1e-13)


def test_value_matches_hand_computed_number():
    # 1.5 * (1 - exp(-8 * 0.25 / 5)) = 1.5 * (1 - 0.6703200460356393)
    assert value(8, np.array([0.5]), 2.0, 2.0, 5.0)[0] == pytest.approx(0.494519930946541, rel=1e-13)
    assert value(0, np.array([0.5]), 2.0, 2.0, 5.0)[0] == 0


def test_value_agrees_with_scalar_python():
    rng = np.random.default_rng(1)
    for pass_rate, budget in zip(rng.uniform(0.02, 0.98, 50), rng.integers(0, 128, 50), strict=True):
        expected = scalar_value(int(budget), float(pass_rate), 1.9, 9.1, 7.0)
        assert value(budget, np.array([pass_rate]), 1.9, 9.1, 7.0)[0] == pytest.approx(expected, rel=1e-11)


def test_marginal_gains_are_geometric_and_follow_the_rule():
    pass_rate_P = np.array([0.05, 0.4, 0.9])
    value_BP = value(np.arange(41)[:, None], pass_rate_P, 5.8, 5.2, 5.0)
    gain_BP = np.diff(value_BP, axis=0)
    ratio_P = np.exp(-pass_rate_P * (1 - pass_rate_P) / 5.0)
    np.testing.assert_allclose(gain_BP[1:] / gain_BP[:-1], np.broadcast_to(ratio_P, (39, 3)), rtol=1e-9)
    intercept_P, slope_P = value_gains(pass_rate_P, 5.8, 5.2, 5.0).param_KP
    np.testing.assert_allclose(np.exp(intercept_P - slope_P * np.arange(40)[:, None]), gain_BP, rtol=1e-9)


def test_pass_rates_are_clipped():
    np.testing.assert_array_equal(
        value(4, np.array([0.0, 1.0]), 2.0, 3.0, 5.0), value(4, np.array([0.01, 0.99]), 2.0, 3.0, 5.0)
    )
    intercept_P, slope_P = value_gains(np.array([0.0, 1.0]), 2.0, 3.0, 5.0, eps=0.1).param_KP
    np.testing.assert_allclose(slope_P, 0.09 / 5.0)
    assert np.isfinite(intercept_P).all()


@pytest.mark.parametrize("alpha", [1e-9, 1e9])
@pytest.mark.parametrize("beta", [1e-9, 1e9])
@pytest.mark.parametrize("tau", [1e-9, 1e9])
@pytest.mark.parametrize("saturation", ["variance", "inverse_variance"])
def test_gains_are_finite_at_the_ends_of_the_accepted_range(alpha, beta, tau, saturation):
    rates = np.array([0.0, 0.5, 1.0])
    intercept_P, slope_P = value_gains(rates, alpha, beta, tau, eps=1e-9, saturation=saturation).param_KP
    assert np.isfinite(intercept_P).all() and np.isfinite(slope_P).all() and (slope_P > 0).all()


def test_inverse_variance_matches_hand_computed_number():
    # 1.5 * (1 - exp(-8 / (5 * 0.25))) = 1.5 * (1 - 0.0016615572731739)
    worth = value(8, np.array([0.5]), 2.0, 2.0, 5.0, saturation="inverse_variance")
    assert worth[0] == pytest.approx(1.4975076640902391, rel=1e-13)
    # Rates near 0 and 1 are saturated first, at the variance form last.
    worth_BP = value(np.array([[2], [3]]), np.array([0.1, 0.5]), 1.0, 1.0, 5.0, saturation="inverse_variance")
    assert worth_BP[1, 0] - worth_BP[0, 0] < worth_BP[1, 1] - worth_BP[0, 1]


def test_every_prompt_may_have_its_own_density():
    shape_P, rates = np.array([2.0, 5.0, 2.0]), np.array([0.2, 0.5, 0.9])
    log_density_P = log_beta_density(rates, shape_P, 7 - shape_P)
    expected = [log_beta_density(rates[i : i + 1], shape_P[i], 7 - shape_P[i])[0] for i in range(3)]
    np.testing.assert_allclose(log_density_P, expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("rates", "tau"),
    [
        ([0.5, 0.5], 3.0),
        ([0.0, 1.0], 12.0),  # variance 0.25 is beyond the scale
        ([0.25, 0.75], 3 + 9 * 0.0625 / 0.1667),
    ],
)
def test_adaptive_tau_grows_with_the_spread(rates, tau):
    assert adaptive_tau(np.array(rates), 3.0, 12.0) == pytest.approx(tau, rel=1e-14)
