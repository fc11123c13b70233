"""Slow, obviously right solvers of the budget problem: oracles of the tests, opponents in the speed table."""

# Legend: P = prompts, N = budgets budget_min .. budget_max - 1, from which a rollout can be added.

import heapq
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.allocation.value import EPS, value_gains


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


def numpy_scalar_value(budget: int, pass_rate: np.float64, alpha: float, beta: float, tau: float) -> float:
    """V(B, p) at the price that the released code pays for it, for a pass rate in [0, 1].

    There, pass rates are NumPy scalars, ``np.clip`` clips them in the value and once more in the density, the density
    is computed anew for each value and checked with ``np.isfinite``, and ``np.exp`` takes the saturation.
    """
    clipped = np.clip(pass_rate, EPS, 1 - EPS)
    inside = np.clip(clipped, 1e-10, 1 - 1e-10)
    log_normaliser = math.log(math.exp(math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)))
    density = math.exp((alpha - 1) * math.log(inside) + (beta - 1) * math.log(1 - inside) - log_normaliser)
    assert np.isfinite(density)
    return float((1 - np.exp(-budget / tau * clipped * (1 - clipped))) * density)


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
    """A twin of the loop that CoBA-RL was released with: V(B+1) - V(B) on NumPy scalars, anew for every push."""
    pass_rate_P = np.asarray(pass_rate_P, np.float64)

    def gain(prompt: int, budget: int) -> float:
        before = numpy_scalar_value(budget, pass_rate_P[prompt], alpha, beta, tau)
        return numpy_scalar_value(budget + 1, pass_rate_P[prompt], alpha, beta, tau) - before

    return heapq_budgets(gain, len(pass_rate_P), total_budget, budget_min, budget_max)


def float_budgets(
    pass_rate_P: NDArray[np.float64],
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float,
    budget_min: int,
    budget_max: int,
) -> list[int]:
    """The same loop without avoidable cost: Python floats, clipped once, and no NumPy inside."""
    pass_rates = [min(max(float(pass_rate), EPS), 1 - EPS) for pass_rate in pass_rate_P]

    def gain(prompt: int, budget: int) -> float:
        pass_rate = pass_rates[prompt]
        after = scalar_value(budget + 1, pass_rate, alpha, beta, tau)
        return after - scalar_value(budget, pass_rate, alpha, beta, tau)

    return heapq_budgets(gain, len(pass_rates), total_budget, budget_min, budget_max)


def log_linear_budgets(
    pass_rate_P: NDArray[np.float64],
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float,
    budget_min: int,
    budget_max: int,
) -> list[int]:
    """The fastest pure-Python loop we know: this library's gains, whose logarithm is ``intercept - slope * B``."""
    intercepts, slopes = value_gains(pass_rate_P, alpha, beta, tau).param_KP.tolist()
    return heapq_budgets(
        lambda prompt, budget: intercepts[prompt] - slopes[prompt] * budget,
        len(intercepts), total_budget, budget_min, budget_max,
    )  # fmt: skip


def sorted_budgets(
    pass_rate_P: NDArray[np.float64],
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float,
    budget_min: int,
    budget_max: int,
) -> NDArray[np.int64]:
    """Greedy without a heap: all P * N gains, sorted by NumPy; the largest ones get the rollouts."""
    num_prompts = len(pass_rate_P)
    intercept_P, slope_P = value_gains(pass_rate_P, alpha, beta, tau).param_KP
    gain_PN = intercept_P[:, None] - slope_P[:, None] * np.arange(budget_min, budget_max)
    # A stable sort of the rows one after the other: equal gains go to the lowest index.
    best = np.argsort(-gain_PN, axis=None, kind="stable")[: total_budget - num_prompts * budget_min]
    return budget_min + np.bincount(best // max(budget_max - budget_min, 1), minlength=num_prompts)
