"""The allocator's actor, without Ray: what it chooses, and that it continues where it stopped."""

import json

import pytest

from coba_openrlhf.actors.capability_allocator import CapabilityAllocator
from coba_openrlhf.allocation import AllocationConfig, PromptRevisits

CONFIG = AllocationConfig(strategy="uniform", pass_rate_source="posterior")


def step(actor, upcoming, version):
    """Choose and allocate as the controller does, then observe one success of four for everybody."""
    ids, count = actor.choose_prompts(upcoming, 4)
    budget_P = actor.allocate(ids, 4 * len(ids)).budget_P
    rows = [prompt_id for prompt_id, budget in zip(ids, budget_P, strict=True) for _ in range(budget)]
    actor.observe(rows, [1.0, 0.0, 0.0, 0.0] * len(ids), [1] * len(rows), version)
    return ids, count


def batches(actor, first, last):
    return [step(actor, [f"{number}-{i}" for i in range(4)], number) for number in range(first, last)]


def test_without_revisits_a_batch_is_the_upcoming_prompts():
    for ids, count in batches(CapabilityAllocator(CONFIG), 0, 4):
        assert count == 0
        assert len({prompt_id.split("-")[0] for prompt_id in ids}) == 1


def test_prompts_of_earlier_steps_take_the_last_places():
    steps = batches(CapabilityAllocator(CONFIG, PromptRevisits(share=0.5, cooldown=1)), 0, 6)
    assert [count for _, count in steps] == [0, 0, 2, 2, 2, 2]
    for number, (ids, count) in enumerate(steps):
        assert ids[: 4 - count] == [f"{number}-{i}" for i in range(4 - count)]
        assert all(int(prompt_id.split("-")[0]) < number for prompt_id in ids[4 - count :])
        assert len(set(ids)) == 4


def test_a_restarted_actor_draws_the_same():
    actor = CapabilityAllocator(CONFIG, PromptRevisits(share=0.5, cooldown=1))
    batches(actor, 0, 4)
    again = CapabilityAllocator(CONFIG, PromptRevisits(share=0.5, cooldown=1, seed=5))
    again.load_state_dict(json.loads(json.dumps(actor.state_dict())))
    assert batches(again, 4, 8) == batches(actor, 4, 8)


def test_a_state_without_revisits_is_refused():
    actor = CapabilityAllocator(CONFIG)
    state = actor.state_dict()
    del state["revisits"]
    with pytest.raises(ValueError, match="must have revisits"):
        actor.load_state_dict(state)
