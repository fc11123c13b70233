"""Greedy with a binary max-heap: O(R log P) time for R rollouts above the minimum, O(P) memory."""

# Legend: P = prompts, K, T, N, S as in steps.py; H = heap positions (the prompts that can still grow, best first).

import numpy as np
from numpy.typing import NDArray

from ..gains import Gains
from .compiled import compiled
from .steps import first_gain, next_gain


@compiled
def _goes_first(gain: float, prompt: int, other_gain: float, other_prompt: int) -> bool:
    """Whether a prompt comes before another: by gain, and equal gains by index. Without branches to mispredict."""
    return bool((gain > other_gain) | ((gain == other_gain) & (prompt < other_prompt)))


@compiled
def _settle(
    gain_H: NDArray[np.float64], prompt_H: NDArray[np.int64], size: int, top: int, gain: float, prompt: int
) -> None:
    """Put an entry into the heap below ``top``, whose present entry it replaces, in place.

    A prompt that has just been given a rollout usually ends up far down, so the hole goes all the way to a leaf,
    one comparison per level, and the entry climbs from there.
    """
    hole = top
    child = 2 * hole + 1
    while child + 1 < size:
        if _goes_first(gain_H[child + 1], prompt_H[child + 1], gain_H[child], prompt_H[child]):
            child += 1
        gain_H[hole], prompt_H[hole] = gain_H[child], prompt_H[child]
        hole = child
        child = 2 * hole + 1
    if child < size:
        gain_H[hole], prompt_H[hole] = gain_H[child], prompt_H[child]
        hole = child
    while hole > top:
        parent = (hole - 1) // 2
        if not _goes_first(gain, prompt, gain_H[parent], prompt_H[parent]):
            break
        gain_H[hole], prompt_H[hole] = gain_H[parent], prompt_H[parent]
        hole = parent
    gain_H[hole], prompt_H[hole] = gain, prompt


@compiled
def place_by_heap(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    state_SP: NDArray[np.float64],
    gain_H: NDArray[np.float64],
    prompt_H: NDArray[np.int64],
    budget_P: NDArray[np.int64],
    spare: int,
    budget_min: int,
    budget_max: int,
) -> float:
    """Place ``spare`` rollouts one at a time where the gain is largest.

    ``state_SP``, ``gain_H``, ``prompt_H`` and ``budget_P`` are modified in place.

    Args:
        gain_H: Next gain of the prompts in ``prompt_H``, in any order.
        prompt_H: The prompts that may grow; all below ``budget_max``.

    Returns:
        The gain of the last rollout placed.
    """
    size = len(prompt_H)
    for top in range(size // 2 - 1, -1, -1):
        _settle(gain_H, prompt_H, size, top, gain_H[top], prompt_H[top])
    placed = np.nan
    for _ in range(spare):
        prompt, placed = prompt_H[0], gain_H[0]
        budget_P[prompt] += 1
        if budget_P[prompt] < budget_max:
            gain = next_gain(family, param_KP, table_TN, state_SP, prompt, budget_P[prompt], budget_min)
            _settle(gain_H, prompt_H, size, 0, gain, prompt)
        else:
            size -= 1
            _settle(gain_H, prompt_H, size, 0, gain_H[size], prompt_H[size])
    return placed


@compiled
def _heap_kernel(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    budget_P: NDArray[np.int64],
    spare: int,
    budget_min: int,
    budget_max: int,
) -> float:
    num_prompts = len(budget_P)
    state_SP = param_KP[:2].copy()
    gain_H = np.empty(num_prompts)
    for prompt in range(num_prompts):
        gain_H[prompt] = first_gain(family, param_KP, table_TN, prompt, budget_min)
    prompt_H = np.arange(num_prompts)
    return place_by_heap(
        family, param_KP, table_TN, state_SP, gain_H, prompt_H, budget_P, spare, budget_min, budget_max
    )


def solve_heap(gains: Gains, spare: int, budget_min: int, budget_max: int) -> tuple[NDArray[np.int64], float]:
    """See ``Solver``."""
    budget_P = np.full(gains.param_KP.shape[1], budget_min, np.int64)
    gain = _heap_kernel(int(gains.family), gains.param_KP, gains.table_TN, budget_P, spare, budget_min, budget_max)
    return budget_P, float(gain)
