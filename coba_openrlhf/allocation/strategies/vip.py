"""VIP: budgets that minimise the variance of the policy gradient."""

# Legend: P = prompts of the batch, N = budgets budget_min .. budget_max - 1.

import numpy as np

from ..gains import Gains
from ..problem import Problem
from .base import GreedyStrategy


class Vip(GreedyStrategy):
    """Exact minimum of the summed gradient variance of the estimator (arXiv 2602.01601).

        vip_estimator rloo      variance  a / (B-1)         gain of B -> B+1:  a / (B (B-1))              B >= 2
        vip_estimator dr_grpo   variance  a (B-1) / B^2     gain of B -> B+1:  a (B^2-B-1) / (B (B+1))^2  B >= 3

    with ``a = 4 s^2 p (1-p)``; ``s``, the length of a rollout's gradient, is 1 unless the caller knows it. Dr.GRPO's
    gain of 3 -> 4 is larger than that of 2 -> 3: greedy is exact from a minimum of 3 on, which the settings require.
    """

    def gains(self, problem: Problem) -> Gains:
        """One curve for all prompts, times ``a``."""
        # No prompt can get more than the rest leave over.
        highest = min(problem.budget_max, problem.total_budget - (len(problem) - 1) * problem.budget_min)
        budget_N = np.arange(problem.budget_min, max(highest, problem.budget_min + 1), dtype=np.float64)
        if self.config.vip_estimator == "rloo":
            curve_N = 1 / (budget_N * (budget_N - 1))
        else:
            curve_N = (budget_N**2 - budget_N - 1) / (budget_N * (budget_N + 1)) ** 2
        pass_rate_P = problem.estimates.pass_rate_P
        weight_P = 4 * problem.gradient_norm_P**2 * pass_rate_P * (1 - pass_rate_P)
        return Gains.table(weight_P, np.zeros(len(problem), np.int64), curve_N[None], problem.budget_min)
