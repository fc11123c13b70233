"""Budgets by the expected number of groups with both outcomes, under uncertain pass rates."""

# Legend: P = prompts of the batch.

from ..gains import Gains
from ..problem import Problem
from .base import GreedyStrategy


class Mixed(GreedyStrategy):
    """Exact maximum of the expected number of mixed groups under a Beta(a, b) distribution of the pass rate.

        V(B) = E[1 - p^B - (1-p)^B],   E[p^B] = prod_{j<B} (a+j) / (a+b+j)
        V(B+1) - V(B) = E[p^B (1-p)] + E[(1-p)^B p]

    A group with one outcome only has no advantage, so this counts the prompts that teach anything.
    """

    def gains(self, problem: Problem) -> Gains:
        """Gains under the posterior."""
        a, b = problem.estimates.success_P, problem.estimates.failure_P
        return Gains.urn(b / (a + b), a / (a + b), a, b, problem.budget_min)
