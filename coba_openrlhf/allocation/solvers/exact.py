"""Dynamic programming: the best budgets for any gains, concave or not; slow, the oracle of the others."""

# Legend: P = prompts, N = admissible budgets (budget_min .. budget_max), T = rollouts above the minima, 0 .. spare.

import numpy as np
from numpy.typing import NDArray

from ..gains import Family, Gains
from .steps import first_gain, next_gain

# P * T decisions of 4 bytes are kept until the end, and N * T values of 8 bytes for one prompt at a time.
_MAX_DECISIONS = 250_000_000


def check_size(num_prompts: int, num_budgets: int, spare: int) -> None:
    """Raise ValueError for a problem that is too large for this method."""
    if max(num_prompts, num_budgets) * (spare + 1) > _MAX_DECISIONS:
        raise ValueError(
            "solver exact takes max(prompts, budgets of one prompt) * (total_budget - prompts * budget_min + 1) <= "
            f"{_MAX_DECISIONS:,}, got {max(num_prompts, num_budgets)} * {spare + 1}; use heap or threshold"
        )


def gain_table(gains: Gains, budget_min: int, budget_max: int) -> NDArray[np.float64]:
    """All gains in linear units, ``[P, budget_max - budget_min]``; geometric ones relative to the largest."""
    num_prompts = gains.param_KP.shape[1]
    gain_PN = np.empty((num_prompts, budget_max - budget_min))
    state_SP = gains.param_KP[:2].copy()
    family = int(gains.family)
    for prompt in range(num_prompts):
        gain_PN[prompt, 0] = first_gain(family, gains.param_KP, gains.table_TN, prompt, budget_min)
        for budget in range(budget_min + 1, budget_max):
            gain_PN[prompt, budget - budget_min] = next_gain(
                family, gains.param_KP, gains.table_TN, state_SP, prompt, budget, budget_min
            )
    return np.exp(gain_PN - gain_PN.max()) if gains.family == Family.GEOMETRIC else gain_PN


def best_budgets(value_PN: NDArray[np.float64], total_budget: int, budget_min: int) -> NDArray[np.int64]:
    """Best budgets for any values: O(P * T * N) time, O((P + N) * T) memory.

    Args:
        value_PN: ``[P, N]``, value of giving prompt p ``budget_min + n`` rollouts.
        total_budget: Feasible sum of the budgets.
        budget_min: Budget of the first column.

    Returns:
        int64 ``[P]``.

    Raises:
        ValueError: The problem is too large for this method.
    """
    num_prompts, num_budgets = value_PN.shape
    spare = total_budget - num_prompts * budget_min
    check_size(num_prompts, num_budgets, spare)
    # best_T[t]: largest value of the prompts so far with exactly t rollouts above their minima.
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


def solve_exact(gains: Gains, spare: int, budget_min: int, budget_max: int) -> tuple[NDArray[np.int64], float]:
    """See ``Solver``; ties go to any prompt. The gain is the smallest among the last rollouts of the prompts."""
    num_prompts = gains.param_KP.shape[1]
    budget_max = min(budget_max, budget_min + spare)
    check_size(num_prompts, budget_max - budget_min + 1, spare)  # before the table, which may be larger still
    gain_PN = gain_table(gains, budget_min, budget_max)
    value_PN = np.concatenate((np.zeros((num_prompts, 1)), gain_PN.cumsum(axis=1)), axis=1)
    budget_P = best_budgets(value_PN, spare + num_prompts * budget_min, budget_min)
    grown = np.flatnonzero(budget_P > budget_min)
    state_SP = gains.param_KP[:2].copy()
    last = np.inf
    for prompt in grown:
        gain = first_gain(int(gains.family), gains.param_KP, gains.table_TN, prompt, budget_min)
        for budget in range(budget_min + 1, budget_P[prompt]):
            gain = next_gain(int(gains.family), gains.param_KP, gains.table_TN, state_SP, prompt, budget, budget_min)
        last = min(last, gain)
    return budget_P, float(last)
