"""Laws of the schedule: every rollout once, even loads, few splits."""

# Legend: P = prompts.

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.trainer.engine_schedule import Assignment, schedule_rollouts

budgets_P = st.lists(st.integers(0, 40), max_size=30)


@settings(deadline=None, derandomize=True)
@given(budgets_P, st.integers(1, 9))
def test_covers_every_rollout_once(budgets, num_engines):
    covered = [
        (a.prompt, a.first + k)
        for a in schedule_rollouts(np.array(budgets, np.int64), num_engines)
        for k in range(a.count)
    ]
    assert covered == [(prompt, k) for prompt, budget in enumerate(budgets) for k in range(budget)]


@settings(deadline=None, derandomize=True)
@given(budgets_P, st.integers(1, 9))
def test_loads_differ_by_at_most_one(budgets, num_engines):
    load = np.zeros(num_engines, np.int64)
    for a in schedule_rollouts(np.array(budgets, np.int64), num_engines):
        assert a.count > 0
        load[a.engine] += a.count
    assert load.max() - load.min() <= 1


@settings(deadline=None, derandomize=True)
@given(budgets_P, st.integers(1, 9))
def test_splits_at_most_engines_minus_one(budgets, num_engines):
    assignments = schedule_rollouts(np.array(budgets, np.int64), num_engines)
    assert len(assignments) - np.count_nonzero(budgets) <= num_engines - 1
    assert len({(a.prompt, a.engine) for a in assignments}) == len(assignments)


def test_large_budget_is_split():
    assert schedule_rollouts(np.array([16, 1, 1, 1]), 2) == [
        Assignment(prompt=0, engine=0, first=0, count=9),
        Assignment(prompt=0, engine=1, first=9, count=7),
        Assignment(prompt=1, engine=1, first=0, count=1),
        Assignment(prompt=2, engine=1, first=0, count=1),
        Assignment(prompt=3, engine=1, first=0, count=1),
    ]


@pytest.mark.parametrize("num_engines", [1, 4])
def test_equal_budgets_stay_whole(num_engines):
    assignments = schedule_rollouts(np.full(8, 5), num_engines)
    assert [a.count for a in assignments] == [5] * 8
    assert [a.engine for a in assignments] == [i * num_engines // 8 for i in range(8)]
