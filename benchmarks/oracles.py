"""Slow, obviously right solvers of the budget problem: oracles of the tests, opponents in the speed table."""

# Legend: P = prompts, N = admissible budgets (budget_min .. budget_max), T = totals 0 .. total_budget.

import heapq
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


def exact_budgets(value_PN: NDArray[np.float64], total_budget: int, budget_min: int) -> NDArray[np.int64]:
    """Best budgets by dynamic programming over the total, for any values: O(P * T * N) time, O(P * T) memory.

    Args:
        value_PN: ``[P, N]``, value of giving prompt p ``budget_min + n`` rollouts.
        total_budget: Feasible sum of the budgets.
        budget_min: Budget of the first column.

    Returns:
        int64 ``[P]``.
    """
    num_prompts, num_budgets = value_PN.shape
    # best_T[t]: largest value of the prompts so far with exactly t rollouts above their minima.
    spare = total_budget - num_prompts * budget_min
    best_T = np.full(spare + 1, -np.inf)
    best_T[0] = 0.0
    choice_PT = np.empty((num_prompts, spare + 1), np.int32)
    padded_T = np.full(spare + num_budgets, -np.inf)
    for prompt in range(num_prompts):
        padded_T[num_budgets - 1 :] = best_T
        # Row t, column m: the best with t - (N - 1 - m), plus the value of the step that leads from there to t.
        candidate_TN = np.lib.stride_tricks.sliding_window_view(padded_T, num_budgets) + value_PN[prompt, ::-1]
        column_T = candidate_TN.argmax(axis=1)
        best_T = candidate_TN[np.arange(spare + 1), column_T]
        choice_PT[prompt] = num_budgets - 1 - column_T
    budget_P = np.full(num_prompts, budget_min, np.int64)
    for prompt in reversed(range(num_prompts)):
        budget_P[prompt] += choice_PT[prompt, spare]
        spare -= choice_PT[prompt, spare]
    return budget_P


def heapq_budgets(
    gain: Callable[[int, int], float], num_prompts: int, total_budget: int, budget_min: int, budget_max: int
) -> list[int]:
    """Greedy with the standard library's heap: one scalar ``gain(prompt, budget)`` of B -> B + 1 per push."""
    budgets = [budget_min] * num_prompts
    heap = [(-gain(prompt, budget_min), prompt) for prompt in range(num_prompts)] if budget_min < budget_max else []
    heapq.heapify(heap)
    for _ in range(total_budget - num_prompts * budget_min):
        _, prompt = heapq.heappop(heap)
        budgets[prompt] += 1
        if budgets[prompt] < budget_max:
            heapq.heappush(heap, (-gain(prompt, budgets[prompt]), prompt))
    return budgets


def scalar_value(budget: int, pass_rate: float, alpha: float, beta: float, tau: float) -> float:
    """V(B, p) by scalar Python mathematics, for a pass rate strictly between 0 and 1."""
    log_density = (
        (alpha - 1) * math.log(pass_rate)
        + (beta - 1) * math.log(1 - pass_rate)
        - (math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta))
    )
    return (1 - math.exp(-budget * pass_rate * (1 - pass_rate) / tau)) * math.exp(log_density)


def released_budgets(
    pass_rate_P: NDArray[np.float64],
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float,
    budget_min: int,
    budget_max: int,
) -> list[int]:
    """A twin of the loop that CoBA-RL was released with: V(B+1) - V(B) evaluated anew for every push."""
    pass_rates = [min(max(float(pass_rate), 0.01), 0.99) for pass_rate in pass_rate_P]

    def gain(prompt: int, budget: int) -> float:
        pass_rate = pass_rates[prompt]
        after = scalar_value(budget + 1, pass_rate, alpha, beta, tau)
        return after - scalar_value(budget, pass_rate, alpha, beta, tau)

    return heapq_budgets(gain, len(pass_rates), total_budget, budget_min, budget_max)
