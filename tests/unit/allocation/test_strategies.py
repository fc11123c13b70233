"""Budget rules by name."""

import math
from typing import get_args

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator, allocate_greedy
from coba_openrlhf.allocation.config import StrategyName
from coba_openrlhf.allocation.strategies import STRATEGIES


def test_every_name_of_the_configuration_has_a_rule():
    assert set(STRATEGIES) == set(get_args(StrategyName))


@pytest.mark.parametrize(
    ("total", "budgets"), [(9, [3, 3, 3]), (10, [4, 3, 3]), (11, [4, 4, 3]), (6, [2, 2, 2]), (15, [5, 5, 5])]
)
def test_uniform_gives_the_remainder_to_the_first_prompts(total, budgets):
    allocation = Allocator(AllocationConfig(strategy="uniform", budget_max=5)).allocate(["a", "b", "c"], total)
    assert allocation.budget_P.tolist() == budgets and allocation.budget_P.dtype == np.int64
    assert math.isnan(allocation.shadow_price)


def test_coba_uses_every_setting():
    config = AllocationConfig(
        tau=7.0, kappa=15.0, lambd=4.0, alpha_min=2.0, budget_min=1, budget_max=20, unseen_pass_rate=0.5
    )
    allocator = Allocator(config)
    allocator.observe([1] * 4 + [2] * 4, [1, 0, 0, 0, 0, 0, 0, 0])  # failure rate 7/8: alpha = 2 + 4 * 7/8
    allocation = allocator.allocate([1, 3], 20)
    expected = allocate_greedy([0.25, 0.5], 20, alpha=5.5, beta=9.5, tau=7.0, budget_min=1, budget_max=20)
    assert allocation.budget_P.tolist() == expected.budget_P.tolist()
    assert allocation.shadow_price == expected.shadow_price
    assert allocation.pass_rate_P.tolist() == [0.25, 0.5]


def test_coba_clips_pass_rates_to_the_configured_eps():
    def shadow_price(eps):
        allocator = Allocator(AllocationConfig(eps=eps))
        allocator.observe(["a", "b"], [0, 1])
        return allocator.allocate(["a", "b"], 20).shadow_price

    expected = allocate_greedy([0.2, 0.8], 20, alpha=5.0, beta=6.0).shadow_price
    assert shadow_price(0.2) == pytest.approx(expected, rel=1e-12)
    assert shadow_price(0.01) != pytest.approx(expected, rel=1e-3)
