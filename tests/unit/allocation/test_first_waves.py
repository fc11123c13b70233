"""Two waves in one step: a few rollouts of every prompt, then the rest where they are worth most."""

import json

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


def probing(**settings):
    return Allocator(AllocationConfig(pass_rate_source="probe", **{"pass_rate_decay": 1.0} | settings))


WAVE = ["a", "a", "b", "b", "c", "c"], [1, 1, 1, 0, 0, 0]


def test_estimates_contain_the_wave():
    allocator = probing()
    estimates = allocator.allocate(["a", "b", "c", "d"], 16, probe=WAVE).estimates
    # The prior is 1/2 and counts as two rollouts.
    assert estimates.pass_rate_P == pytest.approx([3 / 4, 2 / 4, 1 / 4, 1 / 2])
    assert estimates.success_P == pytest.approx([3, 2, 1, 1]) and estimates.failure_P == pytest.approx([1, 2, 3, 1])
    assert not estimates.seen_P.any()
    # Nothing is learnt before the step is observed.
    assert allocator.allocate(["a", "b", "c"], 12).pass_rate_P == pytest.approx([0.5] * 3)


def test_wave_adds_to_the_history():
    allocator = probing()
    allocator.observe(["a"] * 4, [0, 0, 0, 1])
    # Prior 1/4 of two rollouts, 1 of 4, 2 of 2.
    assert allocator.allocate(["a", "b"], 8, probe=(["a", "a"], [1, 1])).pass_rate_P[0] == pytest.approx(3.5 / 8)


def test_both_waves_are_observed_once():
    allocator, plain = probing(), probing()
    allocator.allocate(["a", "b", "c"], 15, probe=WAVE)
    plain.allocate(["a", "b", "c"], 15)
    step = WAVE[0] + ["b"] * 6 + ["c"] * 3, WAVE[1] + [1, 1, 0, 0, 0, 1] + [0, 0, 1]
    for one in (allocator, plain):
        one.observe(*step)
    assert json.dumps(allocator.state_dict()) == json.dumps(plain.state_dict())
    estimates = allocator.allocate(["a", "b", "c"], 15).estimates
    mean = np.mean([1, 4 / 8, 1 / 5])
    assert estimates.success_P == pytest.approx(np.array([2, 4, 1]) + 2 * mean)
    assert estimates.failure_P == pytest.approx(np.array([0, 4, 4]) + 2 * (1 - mean))


def test_calibration_judges_the_second_wave_only():
    allocator = probing()
    allocator.allocate(["a", "b", "c"], 15, probe=WAVE)
    allocator.observe(WAVE[0] + ["b"] * 6 + ["c"] * 3, WAVE[1] + [1, 1, 0, 0, 0, 1] + [0, 0, 1])
    metrics = allocator.metrics()
    # b: 0.5 against 3 of 6; c: 0.25 against 1 of 3; a had no second wave.
    assert metrics["calibration_error"] == pytest.approx((6 * 0 + 3 * (1 / 3 - 1 / 4)) / 9)
    assert metrics["brier"] == pytest.approx((6 * 0.25 + 0.75**2 + 2 * 0.25**2) / 9)
    assert metrics["brier_seen"] == metrics["brier"]
    # Before the step the plain mean was 1/2.
    assert metrics["brier_prior"] == pytest.approx(0.25)
    assert metrics["failure_rate"] == pytest.approx(1 - np.mean([1, 4 / 8, 1 / 5]))
    assert "reliability_predicted_7" not in metrics


def test_step_of_a_first_wave_only_has_nothing_to_be_judged_by():
    allocator = probing()
    allocator.allocate(["a", "b", "c"], 6, probe=WAVE)
    allocator.observe(*WAVE)
    metrics = allocator.metrics()
    assert "brier" not in metrics and "brier_seen" not in metrics and metrics["failure_rate"] == pytest.approx(0.5)


def test_wave_is_forgotten_after_its_step():
    allocator = probing()
    allocator.allocate(["a", "b", "c"], 15, probe=WAVE)
    allocator.observe(WAVE[0] + ["b"] * 9, WAVE[1] + [1] * 9)
    allocator.allocate(["b"], 4)
    predicted = float(allocator.allocate(["b"], 4).pass_rate_P[0])
    allocator.observe(["b"] * 4, [1, 1, 1, 1])
    assert allocator.metrics()["brier"] == pytest.approx((1 - predicted) ** 2)


def test_newer_wave_replaces_one_that_was_never_observed():
    allocator = probing()
    allocator.allocate(["a", "b", "c"], 15, probe=WAVE)
    allocator.allocate(["b", "d"], 8, probe=(["d", "d"], [1, 1]))
    assert allocator.state_dict()["first_waves"]["prompt_ids"] == ["b", "d"]
    assert allocator.state_dict()["first_waves"]["rollouts"] == [0, 2]


def test_prompt_whose_wave_could_not_be_scored():
    allocator = probing()
    estimates = allocator.allocate(["a", "b"], 12, probe=(["a"], [1])).estimates
    assert estimates.pass_rate_P == pytest.approx([2 / 3, 1 / 2])
    assert allocator.allocate(["a", "b"], 12, probe=([], [])).pass_rate_P == pytest.approx([0.5, 0.5])
    allocator.observe(["b"] * 4, [1, 0, 0, 0])
    assert allocator.metrics()["brier"] == pytest.approx(0.25)


def test_hidden_difficulty_is_found_within_the_step():
    """What no history tells is worth a different budget after two rollouts."""
    blind, probed = Allocator(AllocationConfig()), probing()
    assert blind.allocate(["a", "b", "c"], 18).budget_P.tolist() == [6, 6, 6]
    budget_P = probed.allocate(["a", "b", "c"], 18, probe=WAVE).budget_P
    assert budget_P.sum() == 18 and len(set(budget_P.tolist())) > 1


@pytest.mark.parametrize(("probe_rollouts", "budget_min", "lowest"), [(4, 2, 4), (2, 3, 3), (1, 2, 2)])
@pytest.mark.parametrize("strategy", ["coba", "gvm", "coba_released", "knapsack", "uniform"])
def test_budgets_include_the_first_wave(strategy, probe_rollouts, budget_min, lowest):
    config = {"strategy": strategy, "probe_rollouts": probe_rollouts, "budget_min": budget_min}
    allocator = probing(**config)
    wave = [prompt_id for prompt_id in "abcde" for _ in range(probe_rollouts)]
    scores = [int(prompt_id > "b") for prompt_id in wave]
    budget_P = allocator.allocate(list("abcde"), 40, probe=(wave, scores)).budget_P
    assert budget_P.min() >= lowest and budget_P.sum() == 40
    name = "probe_rollouts" if probe_rollouts > budget_min else "budget_min"
    with pytest.raises(ValueError, match=rf"total_budget must be >= prompts \* {name}, got .* 5 \* {lowest}"):
        allocator.allocate(list("abcde"), 5 * lowest - 1)


def test_probe_larger_than_the_largest_budget_is_refused():
    with pytest.raises(ValueError, match="probe_rollouts must be <= budget_max, got 5 > 4"):
        AllocationConfig(pass_rate_source="probe", probe_rollouts=5, budget_max=4)
    AllocationConfig(pass_rate_source="posterior", probe_rollouts=5, budget_max=4)


@pytest.mark.parametrize(
    ("probe", "message"),
    [
        ((["a", "z"], [1, 0]), "probe must be of the prompts of this batch, got 'z'"),
        (
            (["a"] * 3, [1, 0, 1]),
            r"probe must have at most 2 rollouts per prompt .* got 3 for 'a'",
        ),
        ((["a"], [2]), r"scores must lie in \[0, 1\]"),
        ((["a"], [float("nan")]), "scores must be finite"),
        ((["a", "a"], [1]), "scores must have one entry per prompt id"),
        (([1.5], [1]), "prompt_ids must be str or int"),
        (("ab", [1, 1]), "probe must be prompt ids and scores"),
        ((["a"],), "probe must be prompt ids and scores"),
        (5, "probe must be prompt ids and scores"),
        (([], [1]), "scores must have one entry per prompt id"),
    ],
)
def test_wrong_waves_are_named_and_change_nothing(probe, message):
    allocator = probing()
    allocator.allocate(["a", "b"], 12, probe=(["a"], [1]))
    before = json.dumps(allocator.state_dict())
    with pytest.raises(ValueError, match=message):
        allocator.allocate(["a", "b"], 12, probe=probe)
    assert json.dumps(allocator.state_dict()) == before


def test_state_between_the_waves_continues():
    allocator, twin = probing(), probing()
    allocator.observe(["a"] * 3 + ["x"] * 2, [0, 1, 1, 0, 0])
    allocator.allocate(["a", "b", "c"], 15, probe=WAVE)
    twin.load_state_dict(json.loads(json.dumps(allocator.state_dict())))
    for one in (allocator, twin):
        one.observe(WAVE[0] + ["b"] * 6 + ["c"] * 3, WAVE[1] + [1, 1, 0, 0, 0, 1] + [0, 0, 1])
    assert json.dumps(twin.state_dict()) == json.dumps(allocator.state_dict())
    assert twin.metrics()["brier"] == allocator.metrics()["brier"]
