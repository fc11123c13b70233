"""Greedy by water-filling: a level of gain, all rollouts above it at once, and a heap for the last few.

Greedy places every rollout that gains more than some level before any that gains less. Halving an interval of
levels finds one where the rollouts are almost used up; what is left is placed by the heap among the few prompts
that the last interval leaves undecided. Each pass costs O(P), and the result is the heap's to the last tie,
because both compare the same computed gains.
"""

# Legend: P = prompts, K, T, N, S as in steps.py; H = heap positions.

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from ..gains import Gains
from .compiled import compiled
from .heap import place_by_heap
from .steps import GEOMETRIC, URN, first_gain, next_gain

_MAX_GUESSES = 24
# More passes than the interval of any two floats can be halved; ties at the level end the search earlier.
_MAX_PASSES = 200
_LARGEST_INT32 = 2**31 - 1


@compiled
def _search_budget(intercept: float, slope: float, level: float, low: int, high: int) -> int:
    """Smallest budget in [low, high] whose next gain is not above ``level``, or ``high``, by bisection."""
    while low < high:
        middle = (low + high) // 2
        if intercept - slope * middle > level:
            low = middle + 1
        else:
            high = middle
    return low


@compiled
def _estimate_levels(
    param_KP: NDArray[np.float64], spare: int, budget_min: int, budget_max: int, low: float, high: float, few: int
) -> tuple[float, float]:
    """Two levels close to the answer, one on each side as far as rounded division can tell.

    Illinois' variant of the secant method on the rollouts used. Ties at the level end it at the latest after
    ``_MAX_GUESSES`` passes.
    """
    intercept_P, inverse_P = param_KP[0], 1.0 / param_KP[1]
    smallest, largest = float(budget_min), float(budget_max)
    over_low = len(intercept_P) * (budget_max - budget_min) - spare
    over_high = -spare
    weight_low, weight_high = float(over_low), float(over_high)
    last_side = 0
    for guess in range(1, _MAX_GUESSES):
        if over_low - over_high <= few:
            break
        # Every fourth pass halves the interval, whatever the shape of the curve.
        share = 0.5 if guess % 4 == 0 else (0.5 - weight_high) / (weight_low - weight_high)
        level = high - share * (high - low)
        if not low < level < high:
            break
        used = 0
        for prompt in range(len(intercept_P)):
            budget = np.ceil((intercept_P[prompt] - level) * inverse_P[prompt])
            budget = smallest if budget < smallest else budget
            budget = largest if budget > largest else budget
            used += int(np.int32(budget)) - budget_min
        if used < spare:
            high, over_high, weight_high = level, used - spare, float(used - spare)
            weight_low = weight_low * 0.5 if last_side < 0 else weight_low
            last_side = -1
        else:
            low, over_low, weight_low = level, used - spare, float(used - spare)
            weight_high = weight_high * 0.5 if last_side > 0 else weight_high
            last_side = 1
    return low, high


@compiled
def _fill_geometric(
    param_KP: NDArray[np.float64], level: float, budget_min: int, budget_max: int, trial_P: NDArray[np.int64]
) -> int:
    """Budgets, in place, that take every gain above ``level``; returns the rollouts used above the minimum."""
    intercept_P, slope_P = param_KP[0], param_KP[1]
    smallest, largest = float(budget_min), float(budget_max)
    budget_P = np.empty(len(trial_P))
    for prompt in range(len(trial_P)):
        intercept, slope = intercept_P[prompt], slope_P[prompt]
        budget = np.ceil((intercept - level) / slope)
        # The division rounds; gains as the heap computes them have the last word.
        budget = budget - 1.0 if intercept - slope * (budget - 1.0) <= level else budget
        budget = budget + 1.0 if intercept - slope * budget > level else budget
        budget = smallest if budget < smallest else budget
        budget_P[prompt] = largest if budget > largest else budget
    num_wrong = 0
    for prompt in range(len(trial_P)):
        intercept, slope, budget = intercept_P[prompt], slope_P[prompt], budget_P[prompt]
        too_high = 1 if (budget > smallest) & (intercept - slope * (budget - 1.0) <= level) else 0
        too_low = 1 if (budget < largest) & (intercept - slope * budget > level) else 0
        num_wrong += too_high + too_low
    used = 0
    if num_wrong == 0:
        for prompt in range(len(trial_P)):
            trial_P[prompt] = int(budget_P[prompt])
            used += trial_P[prompt] - budget_min
        return used
    # Slopes close to the resolution of the intercept: the division was off by more than one.
    for prompt in range(len(trial_P)):
        trial_P[prompt] = _search_budget(intercept_P[prompt], slope_P[prompt], level, budget_min, budget_max)
        used += trial_P[prompt] - budget_min
    return used


@compiled
def _fill_walking(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    level: float,
    budget_min: int,
    budget_P: NDArray[np.int64],
    gain_P: NDArray[np.float64],
    state_SP: NDArray[np.float64],
    ceiling_P: NDArray[np.int64],
    trial_P: NDArray[np.int64],
    trial_gain_P: NDArray[np.float64],
    trial_state_SP: NDArray[np.float64],
) -> int:
    """The same for gains that follow from one another: walks up from ``budget_P``, at most to ``ceiling_P``.

    ``trial_P``, the next gains ``trial_gain_P`` and ``trial_state_SP`` are written in place. A next gain at the
    ceiling is that of the step before it: nobody asks for it.
    """
    used = 0
    trial_state_SP[:] = state_SP
    for prompt in range(len(budget_P)):
        budget, gain = budget_P[prompt], gain_P[prompt]
        while budget < ceiling_P[prompt] and gain > level:
            budget += 1
            if budget < ceiling_P[prompt]:
                gain = next_gain(family, param_KP, table_TN, trial_state_SP, prompt, budget, budget_min)
        trial_P[prompt], trial_gain_P[prompt] = budget, gain
        used += budget - budget_min
    return used


@compiled
def _level_between(low: float, high: float) -> float:
    """A level inside the interval that halves it in orders of magnitude where both ends have one sign."""
    if low > 0:
        return sqrt(low) * sqrt(high)
    if high < 0:
        return -sqrt(-low) * sqrt(-high)
    if low < 0:
        return 0.0 if high > 0 else low * 0.5
    return high * 0.5


@compiled
def _threshold_kernel(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    spare: int,
    budget_min: int,
    budget_max: int,
) -> tuple[NDArray[np.int64], float]:
    """Budgets and the gain of the last rollout placed; ``spare`` >= 1."""
    num_prompts = param_KP.shape[1]
    # Two brackets of the answer: at level ``high`` budgets are ``budget_P`` and use too little, at level ``low``
    # they are ``ceiling_P`` and use too much.
    budget_P = np.full(num_prompts, budget_min, np.int64)
    ceiling_P = np.full(num_prompts, budget_max, np.int64)
    trial_P = np.empty(num_prompts, np.int64)
    used, ceiling_used = 0, num_prompts * (budget_max - budget_min)
    walks = family != GEOMETRIC
    gain_P = np.empty(num_prompts)
    state_SP = param_KP[:2].copy() if walks else np.empty((2, 0))
    trial_gain_P = np.empty(num_prompts if walks else 0)
    trial_state_SP = np.empty_like(state_SP)
    high, low = -np.inf, np.inf
    for prompt in range(num_prompts):
        gain = first_gain(family, param_KP, table_TN, prompt, budget_min)
        gain_P[prompt] = gain
        high = max(high, gain)
        if family == GEOMETRIC:
            gain = param_KP[0, prompt] - param_KP[1, prompt] * (budget_max - 1)
        elif family == URN:
            gain = 0.0
        else:
            gain = param_KP[0, prompt] * table_TN[int(param_KP[1, prompt]), budget_max - 1 - budget_min]
        low = min(low, gain)
    few = num_prompts // 16 + 8
    level_low, level_high = low, high
    # The estimate counts in 32 bits, which the processor converts faster; nobody has larger budgets.
    if family == GEOMETRIC and budget_max < _LARGEST_INT32:
        level_low, level_high = _estimate_levels(param_KP, spare, budget_min, budget_max, low, high, few)
    for turn in range(_MAX_PASSES):
        if ceiling_used - used <= few or (turn >= 2 and spare - used <= few) or used == spare - 1:
            break
        if turn < 2 and family == GEOMETRIC:
            level = level_high if turn == 0 else level_low
        else:
            level = _level_between(low, high)
        if level == high:
            continue
        if not low <= level < high:
            break
        if walks:
            trial_used = _fill_walking(
                family, param_KP, table_TN, level, budget_min,
                budget_P, gain_P, state_SP, ceiling_P, trial_P, trial_gain_P, trial_state_SP,
            )  # fmt: skip
        else:
            trial_used = _fill_geometric(param_KP, level, budget_min, budget_max, trial_P)
        if trial_used < spare:
            high, used = level, trial_used
            budget_P, trial_P = trial_P, budget_P
            gain_P, trial_gain_P = (trial_gain_P, gain_P) if walks else (gain_P, trial_gain_P)
            state_SP, trial_state_SP = trial_state_SP, state_SP
        else:
            if level == low:
                break
            low, ceiling_used = level, trial_used
            ceiling_P, trial_P = trial_P, ceiling_P
    num_open = 0
    for prompt in range(num_prompts):
        num_open += budget_P[prompt] < ceiling_P[prompt]
    prompt_H = np.empty(num_open, np.int64)
    gain_H = np.empty(num_open)
    position = 0
    for prompt in range(num_prompts):
        if budget_P[prompt] < ceiling_P[prompt]:
            prompt_H[position] = prompt
            if walks:
                gain_H[position] = gain_P[prompt]
            else:
                gain_H[position] = param_KP[0, prompt] - param_KP[1, prompt] * budget_P[prompt]
            position += 1
    placed = place_by_heap(
        family, param_KP, table_TN, state_SP, gain_H, prompt_H, budget_P, spare - used, budget_min, budget_max
    )
    return budget_P, placed


def solve_threshold(gains: Gains, spare: int, budget_min: int, budget_max: int) -> tuple[NDArray[np.int64], float]:
    """See ``Solver``."""
    budget_P, gain = _threshold_kernel(int(gains.family), gains.param_KP, gains.table_TN, spare, budget_min, budget_max)
    return budget_P, float(gain)
