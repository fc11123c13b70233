"""HORA: budgets by the chance that at least one rollout succeeds, under uncertain pass rates."""

# Legend: P = prompts of the batch.

import numpy as np

from ..gains import Gains
from ..problem import Problem
from .base import GreedyStrategy


class Hora(GreedyStrategy):
    """Exact maximum of the summed utility under a Beta(a, b) distribution of the pass rate (arXiv 2605.07114).

    U(m) = 1 - prod_{j<m} (b+j) / (a+b+j) = 1 - E[(1-p)^m]
    U(m+1) - U(m) = E[(1-p)^m p]
    """

    def gains(self, problem: Problem) -> Gains:
        """Gains under the posterior."""
        a, b = problem.estimates.success_P, problem.estimates.failure_P
        return Gains.urn(np.zeros(len(problem)), a / (a + b), a, b, problem.budget_min)
