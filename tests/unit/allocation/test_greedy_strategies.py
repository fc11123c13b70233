"""Rules with a value: their budgets are worth as much as the best of all, whatever the problem."""

import math
from functools import partial

import numpy as np
import pytest

from benchmarks.oracles import heapq_budgets
from coba_openrlhf import AllocationConfig
from coba_openrlhf.allocation import STRATEGIES
from coba_openrlhf.allocation.solvers.exact import best_budgets
from tests.unit.allocation.oracles import (
    any_success,
    beta_density,
    coba_value,
    enumerated_optimum,
    gradient_variance,
    knapsack_value,
    mixed_group,
    objective,
    preferred_alpha,
    value_table,
)
from tests.unit.allocation.problems import random_problem


def coba(problem, prompt, budget):
    alpha = preferred_alpha(problem.failure_rate_smoothed)
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], alpha, 11 - alpha, 5.0)


def coba_adaptive_tau(problem, prompt, budget):
    rates = problem.estimates.pass_rate_P.tolist()
    mean = sum(rates) / len(rates)
    variance = sum((rate - mean) ** 2 for rate in rates) / len(rates)
    alpha = preferred_alpha(problem.failure_rate_smoothed)
    return coba_value(budget, rates[prompt], alpha, 11 - alpha, 3 + 9 * min(variance / 0.1667, 1))


def coba_inverse_variance(problem, prompt, budget):
    alpha = preferred_alpha(problem.failure_rate_smoothed)
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], alpha, 11 - alpha, 5.0, inverse=True)


def coba_bins(problem, prompt, budget):
    alpha = preferred_alpha(problem.failure_rate_P[prompt])
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], alpha, 11 - alpha, 5.0)


def coba_other_settings(problem, prompt, budget):
    alpha = preferred_alpha(problem.failure_rate_smoothed, kappa=7, lambd=4, gamma=3)
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], alpha, 7 - alpha, 8.0, eps=0.2)


def static(problem, prompt, budget):
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], 10.5, 1.5, 5.0)


def linear_decay(problem, prompt, budget):
    alpha = max(10 - 9 * problem.step / 100, 1)
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], alpha, 11 - alpha, 5.0)


def explore_then_exploit(problem, prompt, budget):
    beta = preferred_alpha(problem.failure_rate_smoothed)
    return coba_value(budget, problem.estimates.pass_rate_P[prompt], 11 - beta, beta, 5.0)


def knapsack(problem, prompt, budget):
    return knapsack_value(budget, problem.estimates.pass_rate_P[prompt])


def vip(estimator):
    def value(problem, prompt, budget):
        norm = problem.gradient_norm_P[prompt]
        return -gradient_variance(budget, problem.estimates.pass_rate_P[prompt], norm, estimator)

    return value


def hora(problem, prompt, budget):
    return any_success(budget, problem.estimates.success_P[prompt], problem.estimates.failure_P[prompt])


def mixed(problem, prompt, budget):
    return mixed_group(budget, problem.estimates.success_P[prompt], problem.estimates.failure_P[prompt])


def mixedhard(problem, prompt, budget):
    a, b = problem.estimates.success_P[prompt], problem.estimates.failure_P[prompt]
    return mixed_group(budget, a, b) * b / (a + b)


def last_outcome(problem, prompt, budget):
    density = beta_density(problem.failure_rate_smoothed, 2, 5)
    return budget * (density if problem.estimates.last_rate_P[prompt] < 0.5 else 1 - density)


CASES = [
    pytest.param({"strategy": "coba"}, coba, id="coba"),
    pytest.param({"strategy": "coba", "tau_mode": "adaptive"}, coba_adaptive_tau, id="coba-adaptive-tau"),
    pytest.param({"strategy": "coba", "saturation": "inverse_variance"}, coba_inverse_variance, id="coba-inverse"),
    pytest.param({"strategy": "coba", "capability_bins": 4}, coba_bins, id="coba-bins"),
    pytest.param(
        {"strategy": "coba", "kappa": 7.0, "lambd": 4.0, "gamma": 3.0, "tau": 8.0, "eps": 0.2},
        coba_other_settings,
        id="coba-other-settings",
    ),
    pytest.param({"strategy": "static"}, static, id="static"),
    pytest.param({"strategy": "linear_decay"}, linear_decay, id="linear_decay"),
    pytest.param({"strategy": "explore_then_exploit"}, explore_then_exploit, id="explore_then_exploit"),
    pytest.param({"strategy": "knapsack"}, knapsack, id="knapsack"),
    pytest.param({"strategy": "vip", "vip_estimator": "dr_grpo", "budget_min": 3}, vip("dr_grpo"), id="vip-dr_grpo"),
    pytest.param({"strategy": "vip", "vip_estimator": "rloo"}, vip("rloo"), id="vip-rloo"),
    pytest.param({"strategy": "hora"}, hora, id="hora"),
    pytest.param({"strategy": "mixed"}, mixed, id="mixed"),
    pytest.param({"strategy": "mixedhard"}, mixedhard, id="mixedhard"),
    pytest.param({"strategy": "last_outcome"}, last_outcome, id="last_outcome"),
]


@pytest.mark.parametrize(("settings", "value"), CASES)
def test_budgets_are_worth_the_optimum_of_200_problems(settings, value):
    rng = np.random.default_rng(41)
    lowest = {"dr_grpo": 3, "rloo": 2}[settings["vip_estimator"]] if settings["strategy"] == "vip" else 1
    for index in range(200):
        problem = random_problem(rng, lowest)
        low, high, total = problem.budget_min, problem.budget_max, problem.total_budget
        solver = ("auto", "heap", "threshold", "exact")[index % 4]
        rule = STRATEGIES[settings["strategy"]](AllocationConfig(**settings, solver=solver))
        budget_P, _ = rule.allocate(problem)
        assert budget_P.dtype == np.int64 and budget_P.sum() == total
        assert low <= budget_P.min() and budget_P.max() <= high
        value_PN = value_table(partial(value, problem), len(problem), low, high)
        optimum = objective(value_PN, best_budgets(value_PN, total, low), low)
        scale = math.fsum(np.abs(value_PN).max(axis=1))
        assert abs(objective(value_PN, budget_P, low) - optimum) <= 1e-12 * scale, (index, problem)


@pytest.mark.parametrize(("settings", "value"), CASES)
def test_shadow_price_is_the_value_of_the_last_rollout(settings, value):
    """It is the smallest last step among the prompts that were given more than the minimum."""
    rng = np.random.default_rng(42)
    rule = STRATEGIES[settings["strategy"]](AllocationConfig(**settings))
    for _ in range(50):
        problem = random_problem(rng, 3)
        low, worth = problem.budget_min, problem.estimates.pass_rate_P * (1 - problem.estimates.pass_rate_P) > 0
        budget_P, price = rule.allocate(problem)
        steps = [
            value(problem, prompt, int(budget)) - value(problem, prompt, int(budget) - 1)
            for prompt, budget in enumerate(budget_P)
            if budget > low
        ]
        full = settings["strategy"] == "knapsack" and (budget_P[worth] == problem.budget_max).all()
        if not steps or full:
            assert math.isnan(price)
        else:
            assert price == pytest.approx(min(steps), rel=1e-6, abs=1e-13)


def test_dynamic_programming_finds_the_optimum_of_any_values():
    rng = np.random.default_rng(43)
    for _ in range(150):
        num_prompts, num_budgets = int(rng.integers(1, 5)), int(rng.integers(1, 6))
        value_PN = rng.normal(size=(num_prompts, num_budgets)).round(int(rng.integers(0, 3)))
        low = int(rng.integers(0, 4))
        total = int(rng.integers(num_prompts * low, num_prompts * (low + num_budgets - 1) + 1))
        budget_P = best_budgets(value_PN, total, low)
        assert budget_P.sum() == total and budget_P.min() >= low and budget_P.max() < low + num_budgets
        assert objective(value_PN, budget_P, low) == pytest.approx(enumerated_optimum(value_PN, total, low), abs=1e-12)


def test_greedy_is_not_exact_for_dr_grpo_from_a_budget_of_two():
    """The step 3 -> 4 lowers the variance by more than 2 -> 3: greedy does not see what lies behind the first step."""
    norms, low, high, total = (1.0, math.sqrt(0.95)), 2, 6, 8
    value_PN = value_table(lambda i, budget: -gradient_variance(budget, 0.5, norms[i], "dr_grpo"), 2, low, high)
    assert np.diff(value_PN, axis=1)[0] == pytest.approx([1 / 36, 5 / 144, 11 / 400, 19 / 900])
    best_P = best_budgets(value_PN, total, low)
    greedy_P = heapq_budgets(lambda i, budget: np.diff(value_PN[i])[budget - low], 2, total, low, high)
    assert (best_P.tolist(), greedy_P) == ([4, 4], [5, 3])
    assert objective(value_PN, best_P, low) > objective(value_PN, greedy_P, low) + 0.005
    with pytest.raises(ValueError, match=r"budget_min must be >= 3 with strategy vip and vip_estimator dr_grpo.*got 2"):
        AllocationConfig(strategy="vip", vip_estimator="dr_grpo", budget_min=2)
    with pytest.raises(ValueError, match=r"budget_min must be >= 2 with strategy vip and vip_estimator rloo.*got 1"):
        AllocationConfig(strategy="vip", budget_min=1)
