"""Exact solvers of the budget problem, by name."""

from collections.abc import Mapping
from math import nan
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..gains import Family, Gains
from .exact import solve_exact
from .heap import solve_heap
from .threshold import solve_threshold

# Legend: P = prompts.

# From here on ``auto`` takes the threshold solver; below, its passes cost more than the few steps of the heap.
_FEW_ROLLOUTS = 64


class Solver(Protocol):
    """Budgets that maximise the summed gains within the bounds; equal gains go to the lowest index (not ``exact``)."""

    def __call__(
        self, gains: Gains, spare: int, budget_min: int, budget_max: int, /
    ) -> tuple[NDArray[np.int64], float]:
        """Trusts its inputs.

        Args:
            gains: Of the ``P`` prompts.
            spare: Rollouts to be placed above ``P * budget_min``, >= 1.
            budget_min: Fewest rollouts of a prompt, >= 0; that of the gains.
            budget_max: Most rollouts of a prompt, at most ``budget_min + spare``.

        Returns:
            ``(budget_P, gain)``: int64 ``[P]``, and the gain of the last rollout placed (``Gains.price``).
        """


SOLVERS: Mapping[str, Solver] = MappingProxyType(
    {"heap": solve_heap, "threshold": solve_threshold, "exact": solve_exact}
)
SOLVER_NAMES = ("auto", *SOLVERS)


def solve(
    gains: Gains, total_budget: int, budget_min: int, budget_max: int, solver: str = "auto"
) -> tuple[NDArray[np.int64], float]:
    """Budgets that maximise the summed gains.

    Args:
        gains: Of the ``P`` prompts.
        total_budget: Sum of the budgets, in [P * budget_min, P * budget_max].
        budget_min: Fewest rollouts of a prompt, >= 0.
        budget_max: Most rollouts of a prompt.
        solver: ``heap``, ``threshold`` (the same budgets, faster), ``exact`` (slow), or ``auto``.

    Returns:
        ``(budget_P, shadow_price)``: int64 ``[P]``, and the gain, in linear units, of the last rollout placed above
        the minimum; NaN when none was.

    Raises:
        ValueError: The gains are for other budgets, or the problem is too large for ``exact``.
    """
    num_prompts = gains.param_KP.shape[1]
    spare = total_budget - num_prompts * budget_min
    if spare == 0:
        return np.full(num_prompts, budget_min, np.int64), nan
    # No prompt can get more than its minimum and all the rest: the smaller bound also fits the kernels' integers.
    budget_max = min(budget_max, budget_min + spare)
    if gains.family != Family.GEOMETRIC and gains.budget_min != budget_min:
        raise ValueError(f"gains must start at budget_min, got {gains.budget_min} for {budget_min}")
    # Compiled code would read beyond the end.
    if gains.family == Family.TABLE and gains.table_TN.shape[1] < budget_max - budget_min:
        raise ValueError(
            "gains must have a column for each of the budgets budget_min .. budget_max - 1 (or as far as one prompt "
            f"can get), got {gains.table_TN.shape[1]} for {budget_min} .. {budget_max - 1}"
        )
    if solver == "auto":
        solver = "threshold" if spare > _FEW_ROLLOUTS else "heap"
    budget_P, gain = SOLVERS[solver](gains, spare, budget_min, budget_max)
    return budget_P, gains.price(gain)
