"""The result of an allocation."""

# Legend: P = prompts of the batch.

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .problem import Estimates


# Equality by fields would ask two arrays for one truth value: identity is the only safe ``==``.
@dataclass(frozen=True, eq=False)
class Allocation:
    """Rollouts for every prompt of a batch.

    Attributes:
        budget_P: int64 ``[P]``, rollouts per prompt, in the order of the request; sums exactly to the total.
        shadow_price: Marginal gain (linear units of the value, not its log) of the last rollout placed above
            the minimum: what one more rollout would have to be worth. NaN when no rollout was placed above the
            minimum, and for rules without a value (``uniform``).
        solve_seconds: Wall time of the rule, in seconds.
        pass_rate_P: float64 ``[P]``, the pass-rate estimates in [0, 1] that were used, before clipping.
        estimates: All that was believed about the prompts; None from ``allocate_greedy``.
    """

    budget_P: NDArray[np.int64]
    shadow_price: float
    solve_seconds: float
    pass_rate_P: NDArray[np.float64]
    estimates: Estimates | None = None

    @property
    def gini(self) -> float:
        """Gini coefficient of the budgets: 0 when all are equal, towards 1 when few prompts get everything."""
        total = int(self.budget_P.sum())
        if total == 0:
            return 0.0
        num_prompts = len(self.budget_P)
        weight_P = 2 * np.arange(1, num_prompts + 1) - num_prompts - 1
        return float(weight_P @ np.sort(self.budget_P)) / (num_prompts * total)
