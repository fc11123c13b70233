"""The rollouts of one step: in one wave when budgets are known before it, else in two.

one wave     budgets are there ── generate
two waves    generate probe_rollouts of every prompt ── score ── allocate ── generate the rest

Both waves come from the same weights and are one training batch with the total of a uniform step. The second
allocation cannot overlap anything: it needs the scores of the first wave, and costs a few milliseconds.
"""

import time
from dataclasses import dataclass

import numpy as np
import ray

from coba_openrlhf.allocation import Allocation
from coba_openrlhf.data.prompt_stream import PromptBatch

from .rollout_batch import RolloutBatch
from .samples_generator import BudgetedSamplesGenerator


@dataclass(frozen=True)
class GeneratedStep:
    """What generation leaves behind.

    Attributes:
        rollouts: All rollouts of the step.
        allocation: Their budgets.
        first_wave: The rollouts that the budgets were made from; None with one wave.
        exposed_seconds: Wall time in which generation waited for budgets.
        seconds: Wall time of the whole, in seconds.
    """

    rollouts: RolloutBatch
    allocation: Allocation
    first_wave: RolloutBatch | None
    exposed_seconds: float
    seconds: float


def generate_in_one_wave(
    generator: BudgetedSamplesGenerator, batch: PromptBatch, allocation_ref: ray.ObjectRef, **generate_kwargs
) -> GeneratedStep:
    """Generate with budgets that were asked for a step ago."""
    started = time.perf_counter()
    allocation: Allocation = ray.get(allocation_ref)
    exposed_seconds = time.perf_counter() - started
    rollouts = generator.generate(batch, allocation.budget_P, **generate_kwargs)
    return GeneratedStep(rollouts, allocation, None, exposed_seconds, time.perf_counter() - started)


def generate_in_two_waves(
    generator: BudgetedSamplesGenerator,
    batch: PromptBatch,
    allocator: ray.actor.ActorHandle,
    total_budget: int,
    probe_rollouts: int,
    **generate_kwargs,
) -> GeneratedStep:
    """Generate ``probe_rollouts`` of every prompt, then what the budgets made from them have beyond.

    Args:
        generator: Generates and scores.
        batch: Prompts.
        allocator: Handle of the ``CapabilityAllocator`` actor.
        total_budget: Rollouts of both waves.
        probe_rollouts: Rollouts of a prompt in the first wave.
        **generate_kwargs: As for ``BudgetedSamplesGenerator.generate``.
    """
    started = time.perf_counter()
    wave_P = np.full(len(batch), probe_rollouts, np.int64)
    with generator.engines_awake():
        first = generator.generate(batch, wave_P, **generate_kwargs)
        asked = time.perf_counter()
        ids, scores, _ = first.observations()
        allocation: Allocation = ray.get(allocator.allocate.remote(batch.prompt_ids, total_budget, (ids, scores)))
        exposed_seconds = time.perf_counter() - asked
        rest = generator.generate(batch, allocation.budget_P - wave_P, **generate_kwargs)
    rollouts = first.joined(rest)
    return GeneratedStep(rollouts, allocation, first, exposed_seconds, time.perf_counter() - started)
