"""One step up in budget, for every family of gains: the only place where solvers compute a gain."""

# Legend: P = prompts, K = parameters of the family, T, N = rows and columns of the table, S = 2 (x and y).

import numpy as np
from numpy.typing import NDArray

from .compiled import compiled

# Values of ``Family``; compiled code takes plain globals.
GEOMETRIC, URN, TABLE = 0, 1, 2


@compiled
def first_gain(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    prompt: int,
    budget_min: int,
) -> float:
    """Gain of ``budget_min -> budget_min + 1``; a logarithm for ``GEOMETRIC``."""
    if family == GEOMETRIC:
        return float(param_KP[0, prompt] - param_KP[1, prompt] * budget_min)
    if family == URN:
        return float(param_KP[0, prompt] + param_KP[1, prompt])
    return float(param_KP[0, prompt] * table_TN[int(param_KP[1, prompt]), 0])


@compiled
def next_gain(
    family: int,
    param_KP: NDArray[np.float64],
    table_TN: NDArray[np.float64],
    state_SP: NDArray[np.float64],
    prompt: int,
    budget: int,
    budget_min: int,
) -> float:
    """Gain of ``budget -> budget + 1``, right after that of ``budget - 1 -> budget``.

    ``state_SP`` (x and y of an urn; unused otherwise) moves on in place: an urn's gain follows from the one
    before it, so that rounding can never make it the larger of the two.
    """
    if family == GEOMETRIC:
        # From the rule, never by subtracting the slope again: no rounding error builds up.
        return float(param_KP[0, prompt] - param_KP[1, prompt] * budget)
    if family == URN:
        drawn = param_KP[5, prompt] * (budget - 1)
        denominator = param_KP[4, prompt] + drawn
        state_SP[0, prompt] *= (param_KP[2, prompt] + drawn) / denominator
        state_SP[1, prompt] *= (param_KP[3, prompt] + drawn) / denominator
        return float(state_SP[0, prompt] + state_SP[1, prompt])
    return float(param_KP[0, prompt] * table_TN[int(param_KP[1, prompt]), budget - budget_min])
