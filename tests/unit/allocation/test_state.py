"""A saved allocator continues bit for bit."""

import json
import warnings

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import STRATEGY_NAMES

pytestmark = pytest.mark.filterwarnings("ignore")  # small batches and misleading histories warn

SOURCES = ("window", "posterior", "probe")
IDS = np.array([*(f"prompt-{number}" for number in range(20)), *range(20)], object)


def step(allocator, rng, probes):
    """One training step with a random batch, policy version and outcomes; returns the budgets."""
    ids = rng.permutation(IDS)[: int(rng.integers(5, 25))].tolist()
    wave = None
    if probes:
        wave_ids = [prompt_id for prompt_id in ids for _ in range(int(rng.integers(0, 3)))]
        wave = wave_ids, rng.integers(0, 2, len(wave_ids))
    total = int(rng.integers(3 * len(ids), 12 * len(ids)))
    done = allocator.allocate(ids, total, probe=wave, gradient_norms=rng.uniform(0.1, 2, len(ids)))
    index_R = np.repeat(np.arange(len(ids)), done.budget_P)
    score_R = rng.uniform(size=len(index_R)) < rng.uniform(size=len(ids))[index_R]
    version = None if rng.uniform() < 0.5 else int(rng.integers(0, 9))
    tokens_R = rng.integers(1, 900, len(index_R)) if rng.uniform() < 0.5 else None
    keep_R = rng.uniform(size=len(index_R)) < 0.8  # some could not be scored
    keep_R[0] = True
    allocator.observe(
        [ids[index] for index in index_R[keep_R]],
        score_R[keep_R],
        num_tokens=None if tokens_R is None else tokens_R[keep_R],
        policy_version=version,
    )
    return done.budget_P.tolist(), done.shadow_price.hex(), done.pass_rate_P.tolist()


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
def test_state_through_json_continues_bit_for_bit(strategy, source):
    config = AllocationConfig(
        strategy=strategy, pass_rate_source=source, capability_bins=3, capability_window=4, optimism=0.3,
        perturbation=0.02, budget_max=24, fallback_steps=2, decay_steps=9, pass_rate_decay=0.8,
    )  # fmt: skip
    for seed in range(3):
        rng = np.random.default_rng([seed, len(strategy)])
        allocator = Allocator(config)
        if seed:
            allocator.set_data(IDS)
        for _ in range((0, 3, 8)[seed]):
            step(allocator, rng, source == "probe")
        text = json.dumps(allocator.state_dict(), allow_nan=False)
        twin = Allocator(config)
        twin.load_state_dict(json.loads(text))
        assert json.dumps(twin.state_dict()) == text
        twin_rng = np.random.default_rng()
        twin_rng.bit_generator.state = rng.bit_generator.state
        for _ in range(3):
            steps = [step(one, its, source == "probe") for one, its in ((allocator, rng), (twin, twin_rng))]
            assert steps[0] == steps[1]
        assert json.dumps(twin.state_dict()) == json.dumps(allocator.state_dict())
        first, second = allocator.metrics(), twin.metrics()
        first.pop("solve_seconds"), second.pop("solve_seconds")
        assert first == second


def test_same_calls_give_the_same_budgets():
    for strategy in STRATEGY_NAMES:
        config = AllocationConfig(strategy=strategy, perturbation=0.05, budget_max=24)
        runs = []
        for _ in range(2):
            allocator, rng = Allocator(config), np.random.default_rng(9)
            runs.append([step(allocator, rng, False) for _ in range(4)])
        assert runs[0] == runs[1]


def test_state_is_a_copy():
    allocator = Allocator(AllocationConfig(capability_bins=2))
    step(allocator, np.random.default_rng(1), False)
    state = allocator.state_dict()
    text = json.dumps(state)
    step(allocator, np.random.default_rng(2), False)
    allocator.set_data(["a"])
    assert json.dumps(state) == text
    twin = Allocator(AllocationConfig(capability_bins=2))
    twin.load_state_dict(state)
    step(twin, np.random.default_rng(2), False)
    assert json.dumps(state) == text


def test_perturbation_follows_seed_and_step():
    def budgets(steps=1, **settings):
        allocator = Allocator(AllocationConfig(budget_max=40, **settings))
        return [allocator.allocate(range(20), 331).budget_P.tolist() for _ in range(steps)]

    plain = budgets(2)
    assert plain[0] == plain[1]
    noisy = budgets(2, perturbation=0.05)
    assert noisy[0] != plain[0] and noisy[0] != noisy[1]
    assert budgets(2, perturbation=0.05) == noisy
    assert budgets(perturbation=0.05, seed=1)[0] != noisy[0]


def test_loading_replaces_what_was_known():
    allocator, other = Allocator(AllocationConfig()), Allocator(AllocationConfig())
    allocator.observe(["a", "a"], [1, 1])
    allocator.set_data(["a"])
    other.observe(["b", "b"], [0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        allocator.load_state_dict(other.state_dict())
        assert allocator.allocate(["a", "b"], 8).estimates.seen_P.tolist() == [False, True]
    assert not allocator.set_data(["b", "c"])  # nothing was known about the data of the other run
