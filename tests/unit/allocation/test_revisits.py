"""Prompts that come round again: which, when, and the same ones after a restart."""

import json

import numpy as np
import pytest

from coba_openrlhf.allocation import AllocationConfig, Allocator, PromptRevisits, expected_signal


def allocator_of(successes, rollouts=20):
    """Visited prompts 0, 1, ..., with their successes of ``rollouts``."""
    allocator = Allocator(AllocationConfig(pass_rate_source="posterior", pass_rate_decay=1.0))
    for prompt, count in enumerate(successes):
        allocator.observe([prompt] * rollouts, [1.0] * count + [0.0] * (rollouts - count))
    return allocator


@pytest.mark.parametrize("group_size", [2, 3, 8])
def test_signal_is_the_expectation_under_the_posterior(group_size):
    estimates = allocator_of([0, 3, 10, 20]).estimate([0, 1, 2, 3, "new"])
    rng = np.random.default_rng(0)
    p_DP = rng.beta(estimates.success_P, estimates.failure_P, size=(200_000, 5))
    mixed_P = (1 - p_DP**group_size - (1 - p_DP) ** group_size).mean(axis=0)
    expected_P = mixed_P * estimates.failure_P / (estimates.success_P + estimates.failure_P)
    np.testing.assert_allclose(expected_signal(estimates, group_size), expected_P, atol=3e-3)


def test_one_rollout_never_has_both_outcomes():
    assert expected_signal(allocator_of([5]).estimate([0]), 1) == pytest.approx(0, abs=1e-15)


def test_prompts_come_round_in_proportion_to_their_weight():
    allocator = allocator_of([20, 10, 4, 0])
    weight_P = expected_signal(allocator.estimate([0, 1, 2, 3]), 4) ** 2
    revisits = PromptRevisits(cooldown=0, sharpness=2.0)
    drawn = [revisits.draw(allocator, ["other"], 1, 4)[0] for _ in range(4000)]
    share_P = np.bincount(drawn, minlength=4) / len(drawn)
    np.testing.assert_allclose(share_P, weight_P / weight_P.sum(), atol=0.03)


def test_sharpness_zero_draws_evenly_and_a_high_one_takes_the_best():
    allocator = allocator_of([20, 10, 7, 0])
    even = PromptRevisits(cooldown=0, sharpness=0)
    share_P = np.bincount([even.draw(allocator, ["other"], 1, 4)[0] for _ in range(4000)], minlength=4) / 4000
    np.testing.assert_allclose(share_P, 0.25, atol=0.03)
    best = int(expected_signal(allocator.estimate([0, 1, 2, 3]), 4).argmax())
    sharp = PromptRevisits(cooldown=0, sharpness=100)
    assert {sharp.draw(allocator, ["other"], 1, 4)[0] for _ in range(50)} == {best}


def test_no_prompt_twice_in_a_step_nor_within_the_cooldown():
    allocator = allocator_of([10] * 30)
    revisits = PromptRevisits(share=0.5, cooldown=2)
    rng, steps = np.random.default_rng(0), []
    for _ in range(40):
        regular = rng.choice(30, 3, replace=False).tolist()
        drawn = revisits.draw(allocator, regular, 3, 8)
        assert len({*regular, *drawn}) == 6
        assert not set(drawn) & {prompt for step in steps[-2:] for prompt in step}
        steps.append(regular + drawn)


def test_nothing_is_revisited_before_a_step_can_be_drawn():
    revisits = PromptRevisits(share=0.5, cooldown=1)
    assert revisits.count(allocator_of([]), 4) == 0
    assert revisits.count(allocator_of([1] * 3), 4) == 0
    allocator = allocator_of([1] * 4)
    assert revisits.count(allocator, 4) == 2
    revisits.draw(allocator, [0, 1], 0, 8)
    assert revisits.count(allocator, 4) == 0  # two of four have just been met
    assert revisits.count(allocator_of([1] * 6), 4) == 2
    assert PromptRevisits(share=0).count(allocator, 4) == 0


@pytest.mark.parametrize(("num_prompts", "count"), [(1, 0), (2, 1), (4, 3), (100, 99), (200, 198)])
def test_every_step_goes_on_in_the_data(num_prompts, count):
    assert PromptRevisits(share=0.99).count(allocator_of([1] * 200, rollouts=2), num_prompts) == count


def test_solved_and_hopeless_prompts_are_seldom_drawn_and_never_shut_out():
    allocator = allocator_of([20] * 40 + [8] * 10, rollouts=20)
    revisits = PromptRevisits(cooldown=0)
    drawn = [prompt for _ in range(300) for prompt in revisits.draw(allocator, ["other"], 5, 8)]
    solved = np.mean([prompt < 40 for prompt in drawn])
    assert 0 < solved < 0.05


def test_a_restart_through_json_draws_the_same():
    allocator = allocator_of(range(20))
    revisits = PromptRevisits(seed=3)
    for step in range(3):
        revisits.draw(allocator, [step], 4, 8)
    again = PromptRevisits(seed=9)
    again.load_state_dict(json.loads(json.dumps(revisits.state_dict())))
    for step in range(5):
        assert again.draw(allocator, [step], 4, 8) == revisits.draw(allocator, [step], 4, 8)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"share": 1.0}, "share"), ({"share": -0.1}, "share"), ({"share": float("nan")}, "share"),
        ({"cooldown": -1}, "cooldown"), ({"cooldown": 1.5}, "cooldown"), ({"sharpness": -1}, "sharpness"),
        ({"sharpness": 1e6}, "sharpness"), ({"seed": -1}, "seed"),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused_by_name(arguments, name):
    with pytest.raises(ValueError, match=f"revisit {name} must be"):
        PromptRevisits(**arguments)


@pytest.mark.parametrize(
    "change",
    [
        {"version": 0},
        {"recent": [["a", "a"]]},
        {"recent": [3]},
        {"recent": 3},
        {"rng": {"bit_generator": "x"}},
        {"rng": 1},
    ],
)
def test_broken_states_are_refused_and_change_nothing(change):
    allocator, revisits = allocator_of(range(20)), PromptRevisits(seed=3)
    revisits.draw(allocator, [1], 4, 8)
    before = revisits.state_dict()
    with pytest.raises(ValueError, match="revisit state"):
        revisits.load_state_dict({**before, **change})
    assert revisits.state_dict() == before
    with pytest.raises(ValueError, match="revisit state"):
        revisits.load_state_dict({"version": 1})
