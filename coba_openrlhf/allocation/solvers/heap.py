"""Greedy with a binary max-heap that is spared the rollouts whose place is certain: O(P log P) time, O(P) memory.

Every prompt's gains decrease, so greedy places all steps above a level of gain before any step at or below it.
``_head_start`` looks for a level whose steps nearly use the rollouts up and places those at once; the heap then
places the rest one at a time. The result is that of the heap alone, ties included, at a tenth of its time.
"""

# Legend: P = prompts; H = heap positions (the prompts that can still grow, best first).

from collections.abc import Callable
from math import nan
from typing import ParamSpec, TypeVar, cast

import numpy as np
from numba import njit  # type: ignore[import-untyped]
from numpy.typing import NDArray

_Args = ParamSpec("_Args")
_Result = TypeVar("_Result")

# Halvings of the interval of levels: enough to reach the resolution of a float from any sensible interval. More
# or fewer only change how much is left to the heap.
_MAX_HALVINGS = 64


def _compiled(function: Callable[_Args, _Result]) -> Callable[_Args, _Result]:
    """Compile with an on-disk cache, or without where no cache location is writable (read-only images)."""
    try:
        return cast(Callable[_Args, _Result], njit(cache=True)(function))
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        return cast(Callable[_Args, _Result], njit(function))


@_compiled
def _head_start(
    intercept_P: NDArray[np.float64],
    slope_P: NDArray[np.float64],
    budget_P: NDArray[np.int64],
    spare: int,
    budget_min: int,
    budget_max: int,
) -> int:
    """Raise ``budget_P``, in place, from ``budget_min`` to a level of gain that greedy certainly goes beyond.

    Returns the rollouts that are still to be placed, of ``spare``; at least 1.
    """
    low = np.min(intercept_P - slope_P * budget_max)
    high = np.max(intercept_P - slope_P * budget_min)
    left = spare
    trial_P = budget_P.copy()
    for _ in range(_MAX_HALVINGS):
        if left <= len(budget_P):
            break
        level = 0.5 * (low + high)
        trial_left = spare
        for prompt in range(len(budget_P)):
            intercept, slope = intercept_P[prompt], slope_P[prompt]
            budget = int(np.ceil(min(max((intercept - level) / slope, float(budget_min)), float(budget_max))))
            # The division rounds; the gains as the heap computes them have the last word.
            while budget > budget_min and intercept - slope * (budget - 1) <= level:
                budget -= 1
            while budget < budget_max and intercept - slope * budget > level:
                budget += 1
            trial_P[prompt] = budget
            trial_left -= budget - budget_min
        if trial_left >= 1:
            high, left = level, trial_left
            budget_P[:] = trial_P
        else:
            low = level
    return left


@_compiled
def _sift_down(gain_H: NDArray[np.float64], prompt_H: NDArray[np.int64], size: int, position: int) -> None:
    """Restore the heap order below ``position``, in place. Equal gains: the lower prompt index goes first."""
    gain, prompt = gain_H[position], prompt_H[position]
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        right = child + 1
        if right < size and (
            gain_H[right] > gain_H[child] or (gain_H[right] == gain_H[child] and prompt_H[right] < prompt_H[child])
        ):
            child = right
        if gain > gain_H[child] or (gain == gain_H[child] and prompt < prompt_H[child]):
            break
        gain_H[position], prompt_H[position] = gain_H[child], prompt_H[child]
        position = child
    gain_H[position], prompt_H[position] = gain, prompt


@_compiled
def _heap_kernel(
    intercept_P: NDArray[np.float64],
    slope_P: NDArray[np.float64],
    budget_P: NDArray[np.int64],
    spare: int,
    budget_max: int,
) -> float:
    """Place ``spare`` rollouts, one at a time where the gain is largest; ``budget_P`` is modified in place.

    Returns the log gain of the last rollout placed.
    """
    prompt_H = np.flatnonzero(budget_P < budget_max)
    gain_H = intercept_P[prompt_H] - slope_P[prompt_H] * budget_P[prompt_H]
    size = len(prompt_H)
    for position in range(size // 2 - 1, -1, -1):
        _sift_down(gain_H, prompt_H, size, position)
    log_gain = np.nan
    for _ in range(spare):
        prompt, log_gain = prompt_H[0], gain_H[0]
        budget_P[prompt] += 1
        if budget_P[prompt] < budget_max:
            # From the rule, never by subtracting the slope again: no rounding error builds up.
            gain_H[0] = intercept_P[prompt] - slope_P[prompt] * budget_P[prompt]
        else:
            size -= 1
            gain_H[0], prompt_H[0] = gain_H[size], prompt_H[size]
        _sift_down(gain_H, prompt_H, size, 0)
    return log_gain


def solve_heap(
    intercept_P: NDArray[np.float64],
    slope_P: NDArray[np.float64],
    total_budget: int,
    budget_min: int,
    budget_max: int,
) -> tuple[NDArray[np.int64], float]:
    """Budgets that maximise the summed gains within the bounds; ties go to the lowest index.

    Args:
        intercept_P: float64 ``[P]``, finite.
        slope_P: float64 ``[P]``, finite, > 0.
        total_budget: Sum of the budgets, in [P * budget_min, P * budget_max].
        budget_min: Fewest rollouts of a prompt, >= 0.
        budget_max: Most rollouts of a prompt.

    Returns:
        ``(budget_P, log_shadow_price)``: int64 ``[P]``, and the log gain of the last rollout placed above the
        minimum, NaN when none was.
    """
    num_prompts = len(intercept_P)
    spare = total_budget - num_prompts * budget_min
    budget_P = np.full(num_prompts, budget_min, np.int64)
    if spare == 0:
        return budget_P, nan
    # No prompt can get more than the total; the smaller bound also fits the kernels' integers.
    budget_max = min(budget_max, total_budget)
    left = _head_start(intercept_P, slope_P, budget_P, spare, budget_min, budget_max)
    log_gain = _heap_kernel(intercept_P, slope_P, budget_P, left, budget_max)
    return budget_P, float(log_gain)
