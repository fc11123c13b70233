"""The same budget for every prompt, as GRPO has it."""

# Legend: P = prompts of the batch.

from math import nan

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import Strategy


class Uniform(Strategy):
    """``B_i = R / P``; a remainder goes to the first prompts, one each. (GRPO, arXiv 2402.03300.)"""

    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Never looks at the estimates."""
        share, remainder = divmod(problem.total_budget, len(problem))
        budget_P = np.full(len(problem), share, np.int64)
        budget_P[:remainder] += 1
        return budget_P, nan
