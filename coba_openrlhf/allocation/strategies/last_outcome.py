"""Budgets by what happened last time: the short rule of CoBA-RL's skill write-up."""

# Legend: P = prompts of the batch.

import numpy as np

from ..gains import Gains
from ..problem import Problem
from ..value import log_beta_density
from .base import GreedyStrategy

ALPHA, BETA = 2.0, 5.0


class LastOutcome(GreedyStrategy):
    """The whole budget to the prompts of the largest weight, within the bounds.

        w = Beta(F; 2, 5)        for prompts that failed last time
            1 - Beta(F; 2, 5)    for the others

    ``F`` is the smoothed failure rate. A visit failed when fewer than half of its rollouts succeeded; an unseen
    prompt goes by its estimate. Weights do not fall with the budget: the best prompts are filled one by one.
    """

    def gains(self, problem: Problem) -> Gains:
        """The weight, at every budget."""
        rate = float(np.clip(problem.failure_rate_smoothed, 1e-9, 1 - 1e-9))
        density = float(np.exp(log_beta_density(np.array([rate]), ALPHA, BETA))[0])
        weight_P = np.where(problem.estimates.last_rate_P < 0.5, density, 1 - density)
        highest = min(problem.budget_max, problem.total_budget - (len(problem) - 1) * problem.budget_min)
        curve_N = np.ones(max(highest - problem.budget_min, 1))
        return Gains.table(weight_P, np.zeros(len(problem), np.int64), curve_N[None], problem.budget_min)
