"""The failure window and the preference density that follows from it."""

import json

import pytest

from coba_openrlhf.allocation.capability import CapabilityWindow


def window(length=10, **changes):
    rule = {"kappa": 11.0, "lambd": 8.0, "gamma": 10.0, "alpha_min": 1.0, "alpha_max": 10.0} | changes
    return CapabilityWindow(length, **rule)


@pytest.mark.parametrize(
    ("failure_rate", "alpha", "beta"),
    [
        (0.3, 1.953623376176, 9.046376623824),  # sigmoid(-2) = 0.119202922022
        (0.6, 5.8, 5.2),
        (0.5, 5.0, 6.0),  # sigmoid(0) = 1/2
        (1.0, 9.0, 2.0),
    ],
)
def test_published_formula(failure_rate, alpha, beta):
    capability = window()
    capability.observe(failure_rate)
    assert capability.alpha == pytest.approx(alpha, abs=1e-11)
    assert capability.beta == pytest.approx(beta, abs=1e-11)


def test_unknown_capability_is_a_failure_rate_of_one_half():
    capability = window()
    assert capability.failure_rate is None
    assert capability.failure_rate_smoothed == 0.5
    assert (capability.alpha, capability.beta) == (5.0, 6.0)


def test_average_is_over_the_last_steps_only():
    capability = window(2)
    for failure_rate in (1.0, 0.25, 0.75):
        capability.observe(failure_rate)
    assert capability.failure_rate == 0.75
    assert capability.failure_rate_smoothed == 0.5


def test_alpha_is_clipped_above():
    capability = window(lambd=20.0)
    capability.observe(1.0)
    assert (capability.alpha, capability.beta) == (10.0, 1.0)


def test_steep_transform_does_not_overflow():
    capability = window(gamma=1e9)
    capability.observe(0.0)
    assert capability.alpha == 1.0


def test_state_round_trip():
    capability, twin = window(3), window(3)
    for failure_rate in (0.1, 1 / 3, 0.7, 0.2):
        capability.observe(failure_rate)
    twin.load_state_dict(json.loads(json.dumps(capability.state_dict())))
    for failure_rate in (0.123456789, 0.9):
        assert twin.alpha == capability.alpha
        capability.observe(failure_rate)
        twin.observe(failure_rate)
    assert twin.state_dict() == capability.state_dict()


def test_state_without_its_key_is_refused():
    with pytest.raises(ValueError, match="capability state must have the keys failure_rates"):
        window().load_state_dict({})
