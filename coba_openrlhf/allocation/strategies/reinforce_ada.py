"""Reinforce-Ada in its estimation form: more rollouts the rarer a success."""

# Legend: P = prompts of the batch.

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import ProportionalStrategy


class ReinforceAda(ProportionalStrategy):
    """``B ~ 1 / sqrt(p + eps)``, clipped to the bounds (arXiv 2510.04996).

    The published estimate is a decayed count: ``pass_rate_source: posterior``.
    """

    def weights(self, problem: Problem) -> NDArray[np.float64]:
        """Inverse square roots of the pass rates."""
        return 1 / np.sqrt(problem.estimates.pass_rate_P + self.config.eps)
