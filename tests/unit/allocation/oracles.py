"""What every rule maximises, and in which proportion: the published formulas, with plain Python numbers."""

# Legend: P = prompts, N = budgets budget_min .. budget_max.

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise, product

import numpy as np


def value_table(value: Callable[[int, int], float], num_prompts: int, budget_min: int, budget_max: int) -> np.ndarray:
    """``value(prompt, budget)`` for every budget, ``[P, N]``."""
    budgets = range(budget_min, budget_max + 1)
    return np.array([[value(prompt, budget) for budget in budgets] for prompt in range(num_prompts)])


def objective(value_PN: np.ndarray, budget_P: Sequence[int], budget_min: int) -> float:
    """Summed value of some budgets."""
    return math.fsum(value_PN[prompt, budget - budget_min] for prompt, budget in enumerate(budget_P))


def enumerated_optimum(value_PN: np.ndarray, total: int, budget_min: int) -> float:
    """The largest summed value, by trying all budgets."""
    num_prompts, num_budgets = value_PN.shape
    spare = total - num_prompts * budget_min
    return max(
        math.fsum(value_PN[prompt, extra] for prompt, extra in enumerate(extras))
        for extras in product(range(num_budgets), repeat=num_prompts)
        if sum(extras) == spare
    )


# --- Values of one prompt -------------------------------------------------------------------------------------------


def beta_density(p: float, alpha: float, beta: float) -> float:
    """``p^(a-1) (1-p)^(b-1) / B(a, b)``."""
    log_normaliser = math.lgamma(alpha) + math.lgamma(beta) - math.lgamma(alpha + beta)
    return math.exp((alpha - 1) * math.log(p) + (beta - 1) * math.log(1 - p) - log_normaliser)


def coba_value(
    budget: int, p: float, alpha: float, beta: float, tau: float, eps: float = 0.01, *, inverse: bool = False
) -> float:
    """Saturation times preference density."""
    p = min(max(p, eps), 1 - eps)
    rate = 1 / (tau * p * (1 - p)) if inverse else p * (1 - p) / tau
    return (1 - math.exp(-budget * rate)) * beta_density(p, alpha, beta)


def preferred_alpha(failure_rate: float, kappa: float = 11, lambd: float = 8, gamma: float = 10) -> float:
    """alpha for ``alpha_min`` 1 and ``alpha_max`` kappa - 1."""
    transformed = failure_rate if failure_rate > 0.5 else 1 / (1 + math.exp(-gamma * (failure_rate - 0.5)))
    return min(max(1 + lambd * transformed, 1), kappa - 1)


def knapsack_value(budget: int, p: float) -> float:
    """Chance of a mixed group, times what it teaches."""
    return (1 - p**budget - (1 - p) ** budget) * p * (1 - p) ** 2


def gradient_variance(budget: int, p: float, norm: float, estimator: str) -> float:
    """Of one prompt's gradient under RLOO or Dr.GRPO."""
    a = 4 * norm**2 * p * (1 - p)
    return a / (budget - 1) if estimator == "rloo" else a * (budget - 1) / budget**2


def expected_power(budget: int, a: float, b: float) -> float:
    """``E[p^B]`` under Beta(a, b)."""
    return math.prod((a + j) / (a + b + j) for j in range(budget))


def any_success(budget: int, a: float, b: float) -> float:
    """Chance that one of the rollouts succeeds, under Beta(a, b)."""
    return 1 - expected_power(budget, b, a)


def mixed_group(budget: int, a: float, b: float) -> float:
    """Chance of a mixed group under Beta(a, b)."""
    return 1 - expected_power(budget, a, b) - expected_power(budget, b, a)


# --- Proportions ----------------------------------------------------------------------------------------------------


def clipped_shares(weights: Sequence[float], total: int, low: int, high: int) -> list[Fraction]:
    """``clip(c w, low, high)`` with the sum ``total``, without rounding; weights 0 share what the others leave."""
    exact = [Fraction(float(weight)) for weight in weights]
    positive = [weight for weight in exact if weight > 0]
    num_zero = len(exact) - len(positive)
    if total >= len(positive) * high + num_zero * low:
        rest = Fraction(total - len(positive) * high, num_zero) if num_zero else Fraction(0)
        return [Fraction(high) if weight > 0 else rest for weight in exact]

    def shares(c: Fraction) -> list[Fraction]:
        return [min(max(c * weight, Fraction(low)), Fraction(high)) for weight in exact]

    # The sum is linear in c between the points where a share meets a bound.
    corners = sorted({Fraction(bound) / weight for weight in positive for bound in (low, high)} | {Fraction(0)})
    for left, right in pairwise(corners):
        if sum(shares(right)) >= total:
            rise = sum(shares(right)) - sum(shares(left))
            part = (total - sum(shares(left))) / rise if rise else Fraction(0)
            return shares(left + part * (right - left))
    raise AssertionError("no such total")


def largest_remainder(shares: Sequence[Fraction], total: int) -> list[int]:
    """Whole numbers with the sum ``total``: floors, and one more for the largest remainders, the first of equals."""
    floors = [math.floor(share) for share in shares]
    order = sorted(range(len(shares)), key=lambda index: (floors[index] - shares[index], index))
    for index in order[: total - sum(floors)]:
        floors[index] += 1
    return floors
