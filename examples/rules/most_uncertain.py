"""A budget rule of one's own: ``--coba.strategy examples/rules/most_uncertain.py:MostUncertain``

Say what one more rollout is worth, and the library finds the exact budgets. Here it is worth what it teaches about the
prompt's pass rate: useful for a first pass over a data set whose difficulty nobody knows, or to keep estimates fresh.
"""

# Legend: P = prompts of the batch, N = budgets budget_min .. highest - 1, from which a rollout can be added.

import numpy as np

from coba_openrlhf.allocation import Gains, GreedyStrategy


class MostUncertain(GreedyStrategy):
    """Exact maximum of the variance that the rollouts are expected to remove.

    The pass rate of a prompt is believed to be Beta(a, b). After ``B`` rollouts its variance is, in expectation,

        Var * (a + b) / (a + b + B),    Var = a b / ((a + b)^2 (a + b + 1))

    so the next rollout removes ``Var * (a + b) / ((a + b + B) (a + b + B + 1))``. That falls with ``B``: greedy is
    exact. Prompts that were never seen, or not for long, come first (``pass_rate_source: posterior`` forgets).
    """

    def gains(self, problem):
        """A row of gains per prompt, ``[P, N]``."""
        a_P, b_P = problem.estimates.success_P, problem.estimates.failure_P
        count_P = a_P + b_P
        variance_P = a_P * b_P / (count_P**2 * (count_P + 1))
        # No prompt can get more than what the minima of the others leave over.
        highest = min(problem.budget_max, problem.total_budget - (len(problem) - 1) * problem.budget_min)
        budget_N = np.arange(problem.budget_min, max(highest, problem.budget_min + 1))
        after_PN = count_P[:, None] + budget_N
        gain_PN = count_P[:, None] / (after_PN * (after_PN + 1))
        return Gains.table(variance_P, np.arange(len(problem)), gain_PN, problem.budget_min)

    def metrics(self, problem):
        """Logged as ``coba/estimate_std`` with every allocation."""
        a_P, b_P = problem.estimates.success_P, problem.estimates.failure_P
        return {"estimate_std": float(np.mean(np.sqrt(a_P * b_P / (a_P + b_P + 1)) / (a_P + b_P)))}
