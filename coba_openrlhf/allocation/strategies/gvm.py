"""GVM: budgets that minimise the variance of the gradient of accepted answers."""

# Legend: P = prompts of the batch.

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import ProportionalStrategy

PENALTY, EXPONENT = 1e-3, 2.0


class Gvm(ProportionalStrategy):
    """``B ~ G / sqrt(p + a / p^(b-1))`` with ``a = 1e-3``, ``b = 2`` (arXiv 2505.02391).

    ``G`` is the length of a rollout's gradient, 1 unless the caller knows it. The second term keeps prompts that are
    hardly ever solved from taking everything; at p = 0 the weight is 0.
    """

    def weights(self, problem: Problem) -> NDArray[np.float64]:
        """0 where nothing is ever accepted."""
        p = problem.estimates.pass_rate_P
        solvable_P = np.where(p > 0, p, 1.0)
        weight_P = problem.gradient_norm_P / np.sqrt(solvable_P + PENALTY / solvable_P ** (EXPONENT - 1))
        return np.where(p > 0, weight_P, 0.0)
