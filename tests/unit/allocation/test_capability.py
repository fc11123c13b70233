"""The failure window, by difficulty, and the preference density that follows from it."""

import json
import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation.capability import CapabilityWindow, preference_alpha, transform_failure_rate

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


def observe(window, *realised, predicted=None):
    window.observe(np.array(realised if predicted is None else predicted, float), np.array(realised, float))


@pytest.mark.parametrize(
    ("failure_rate", "alpha"),
    [
        (0.3, 1.953623376176),  # sigmoid(-2) = 0.119202922022
        (0.6, 5.8),
        (0.5, 5.0),  # sigmoid(0) = 1/2
        (1.0, 9.0),
        (0.0, 1 + 8 * 0.006692850924284856),  # sigmoid(-5)
    ],
)
def test_published_formula(failure_rate, alpha):
    assert float(preference_alpha(failure_rate, AllocationConfig())) == pytest.approx(alpha, abs=1e-11)
    both = preference_alpha(np.array([failure_rate, 0.5]), AllocationConfig())
    assert both.tolist() == pytest.approx([alpha, 5.0], abs=1e-11)


def test_alpha_stays_within_its_bounds():
    assert float(preference_alpha(1.0, AllocationConfig(lambd=20.0))) == 10.0
    assert float(preference_alpha(1.0, AllocationConfig(lambd=20.0, alpha_max=7.5))) == 7.5
    assert float(preference_alpha(0.0, AllocationConfig(alpha_min=2.5, lambd=0.0))) == 2.5


def test_steep_transform_does_not_overflow():
    with np.errstate(all="raise", under="ignore"):
        assert transform_failure_rate(np.array([0.0, 0.4999, 0.5, 1.0]), 1e9).tolist() == [0.0, 0.0, 0.5, 1.0]


def test_unknown_capability_is_a_failure_rate_of_one_half():
    window = CapabilityWindow(10)
    assert window.failure_rate is None and window.failure_rate_smoothed == 0.5
    assert window.failure_rate_of(np.array([0.1, 0.9])).tolist() == [0.5, 0.5]


def test_average_is_over_prompts_and_the_last_steps_only():
    window = CapabilityWindow(2)
    observe(window, 0.0)
    observe(window, 0.5, 1.0)
    observe(window, 0.0, 0.0, 0.75, 0.25)
    assert window.failure_rate == 0.75
    assert window.failure_rate_smoothed == 0.5


def test_bins_by_predicted_difficulty():
    window = CapabilityWindow(2, num_bins=4)
    # Bins of the prediction 0 .. 1/4 .. 1/2 .. 3/4 .. 1: the last two prompts are both in the last bin.
    observe(window, 0.0, 0.5, 1.0, 0.6, predicted=[0.1, 0.3, 0.8, 1.0])
    assert window.failure_rate_of(np.array([0.0, 0.26, 0.74, 0.75, 1.0])) == pytest.approx(
        [1.0, 0.5, 1 - 2.1 / 4, 0.2, 0.2]  # nobody in the third: that of all
    )
    observe(window, 0.5, predicted=[0.2])
    assert window.failure_rate_of(np.array([0.1, 0.3, 0.9])) == pytest.approx([0.75, 0.5, 0.2])
    observe(window, 0.5, predicted=[0.2])
    # The first step has left the window: unknown bins go by the smoothed rate of all.
    assert window.failure_rate_of(np.array([0.1, 0.3, 0.9])) == pytest.approx([0.5, 0.5, 0.5])


def test_bins_change_the_preference_by_prompt():
    def alpha(bins):
        allocator = Allocator(AllocationConfig(capability_bins=bins, capability_window=1, pass_rate_window=1))
        allocator.observe(["hard"] * 10 + ["easy"] * 10, [1] + [0] * 9 + [1] * 9 + [0])
        # Hard prompts fail far more than easy ones now: predictions 0.1 and 0.9 place them.
        allocator.observe(["hard"] * 10 + ["easy"] * 10, [1] + [0] * 9 + [1] * 9 + [0])
        allocator.allocate(["hard", "easy"], 20)
        return allocator.metrics()["alpha"]

    rates = {bins: 1 + 8 / (1 + math.exp(-10 * (0.1 - 0.5))) if bins > 1 else 5.0 for bins in (1, 2)}
    assert alpha(1) == pytest.approx(rates[1])
    assert alpha(2) == pytest.approx((rates[2] + 1 + 8 * 0.9) / 2)


@pytest.mark.parametrize("bins", [1, 3])
def test_state_round_trip(bins):
    window, twin = CapabilityWindow(3, bins), CapabilityWindow(3, bins)
    rng = np.random.default_rng(4)
    for _ in range(5):
        observe(window, *rng.uniform(size=3))
    twin.load_state_dict(json.loads(json.dumps(window.state_dict())))
    rates = np.linspace(0, 1, 13)
    for _ in range(4):
        assert twin.failure_rate_smoothed == window.failure_rate_smoothed
        assert twin.failure_rate_of(rates).tolist() == window.failure_rate_of(rates).tolist()
        realised = rng.uniform(size=2)
        observe(window, *realised)
        observe(twin, *realised)
    assert twin.state_dict() == window.state_dict()
