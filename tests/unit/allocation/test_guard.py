"""Estimates that predict worse than none are not used."""

import warnings

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation.guard import EstimateGuard

IDS = [f"prompt-{index}" for index in range(10)]


def mislead(allocator):
    """A step in which the easy prompts fail and the hard ones succeed, after what the history says."""
    estimates = allocator.allocate(IDS, 40).pass_rate_P
    allocator.observe(np.repeat(IDS, 4), np.repeat(estimates < 0.5, 4))


def confirm(allocator):
    """A step in which everything is as the history says."""
    estimates = allocator.allocate(IDS, 40).pass_rate_P
    allocator.observe(np.repeat(IDS, 4), np.repeat(estimates >= 0.5, 4))


def start(**settings):
    """Five prompts that always fail and five that always succeed."""
    config = {"pass_rate_window": 1, "capability_window": 5, "budget_max": 8} | settings
    allocator = Allocator(AllocationConfig(**config))
    allocator.observe(np.repeat(IDS, 4), np.repeat(np.arange(10) % 2, 4))
    return allocator


def test_budgets_become_uniform_after_k_steps_and_come_back_after_k():
    allocator = start(fallback_steps=3)
    rule = allocator.allocate(IDS, 43).budget_P.tolist()
    uniform = [5, 5, 5] + [4] * 7
    assert rule != uniform and allocator.metrics()["fallback"] == 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mislead(allocator)
        mislead(allocator)
    assert allocator.allocate(IDS, 43).budget_P.tolist() != uniform
    metrics = allocator.metrics()
    assert metrics["brier_seen"] > metrics["brier_prior"] and metrics["fallback"] == 0
    with pytest.warns(UserWarning, match=r"plain mean for 3 steps in a row \(Brier score 1.0000 against"):
        mislead(allocator)
    assert allocator.allocate(IDS, 43).budget_P.tolist() == uniform
    assert allocator.metrics()["fallback"] == 1 and "alpha" not in allocator.metrics()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        confirm(allocator)
        confirm(allocator)
    assert allocator.allocate(IDS, 43).budget_P.tolist() == uniform
    with pytest.warns(UserWarning, match="better than the plain mean again"):
        confirm(allocator)
    assert allocator.allocate(IDS, 43).budget_P.tolist() != uniform
    assert allocator.metrics()["fallback"] == 0 and "alpha" in allocator.metrics()


def test_one_good_step_starts_the_count_anew():
    allocator = start(fallback_steps=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(4):
            mislead(allocator)
            confirm(allocator)


def test_zero_steps_never_fall_back():
    allocator = start(fallback_steps=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(30):
            mislead(allocator)
            assert allocator.metrics()["fallback"] == 0


def test_unseen_prompts_say_nothing_about_estimates():
    allocator = Allocator(AllocationConfig(fallback_steps=1, unseen_pass_rate=0.0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for step in range(5):
            allocator.observe([f"new-{step}-{index}" for index in range(8)], [1.0] * 8)
    assert "brier" in allocator.metrics() and "brier_seen" not in allocator.metrics()


def test_step_is_learnt_from_although_its_warning_is_an_error():
    allocator, twin = start(fallback_steps=1), start(fallback_steps=1)
    for one, action in ((allocator, "error"), (twin, "ignore")):
        with warnings.catch_warnings():
            warnings.simplefilter(action)
            if action == "error":
                with pytest.raises(UserWarning, match="plain mean"):
                    mislead(one)
            else:
                mislead(one)
    assert allocator.state_dict() == twin.state_dict()
    assert allocator.allocate(IDS, 43).budget_P.tolist() == twin.allocate(IDS, 43).budget_P.tolist()


def test_equal_scores_are_not_worse():
    guard = EstimateGuard(1)
    assert not guard.observe(0.2, 0.2) and not guard.active
    assert guard.observe(0.2000001, 0.2) and guard.active
    assert guard.observe(0.2, 0.2) and not guard.active


def test_state_keeps_the_streak():
    guard, twin = EstimateGuard(3), EstimateGuard(3)
    for worse in (True, True):
        guard.observe(float(worse), 0.5)
    twin.load_state_dict(guard.state_dict())
    assert guard.observe(1.0, 0.5) and twin.observe(1.0, 0.5)
    assert twin.active and twin.state_dict() == guard.state_dict() == {"active": True, "streak": 0}
