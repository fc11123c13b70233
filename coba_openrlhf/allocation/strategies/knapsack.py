"""Knapsack RL: budgets by the chance of a mixed group, times what is to be learnt from it."""

# Legend: P = prompts of the batch.

from math import nan

import numpy as np
from numpy.typing import NDArray

from ..gains import Gains
from ..problem import Problem
from ..rounding import round_to_total
from .base import GreedyStrategy


class Knapsack(GreedyStrategy):
    """Exact maximum of the summed value (arXiv 2509.25849).

        V(B, p) = (1 - p^B - (1-p)^B) * p (1-p)^2
        V(B+1, p) - V(B, p) = p (1-p)^2 * [p^B (1-p) + (1-p)^B p]

    Prompts with p in {0, 1} are worth nothing and stay at the minimum. What the others cannot take goes evenly to
    the prompts with p = 0, and then to those with p = 1 (the published fall-back rule could not be confirmed).
    """

    def gains(self, problem: Problem) -> Gains:
        """Gains with known pass rates."""
        p = problem.estimates.pass_rate_P
        weight_P = p * (1 - p) ** 2
        return Gains.urn(weight_P * (1 - p), weight_P * p, p, 1 - p, problem.budget_min, learns=False)

    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Greedy as long as anybody gains."""
        pass_rate_P = problem.estimates.pass_rate_P
        low, high = problem.budget_min, problem.budget_max
        worth_P = (pass_rate_P > 0) & (pass_rate_P < 1)
        left = problem.total_budget - low * len(problem) - int(worth_P.sum()) * (high - low)
        if left < 0:
            # Prompts without value have gains of exactly 0 and come last by themselves.
            return super().allocate(problem)
        budget_P = np.where(worth_P, high, low)
        for rows in (np.flatnonzero(pass_rate_P == 0), np.flatnonzero(pass_rate_P == 1)):
            given = min(left, len(rows) * (high - low))
            if given:
                share_P = np.full(len(rows), low + given / len(rows))
                budget_P[rows] = round_to_total(share_P, low * len(rows) + given, low, high)
                left -= given
        return budget_P, nan
