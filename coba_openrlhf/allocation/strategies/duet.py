"""DUET: budgets by variance and by the price of a response."""

# Legend: P = prompts of the batch.

import numpy as np
from numpy.typing import NDArray

from ..problem import Problem
from .base import ProportionalStrategy


class Duet(ProportionalStrategy):
    """``B = s / sqrt(lambda L)`` (arXiv 2605.08441), with ``s = sqrt(p (1-p))`` and ``L`` the expected response length.

    The published rule chooses lambda so that ``sum B L`` is a budget of tokens. Here the number of rollouts is
    given, so lambda follows from ``sum B``: the same proportions, at the rollouts of a uniform step. ``L`` is the
    mean length of the prompt's last visit (pass ``num_tokens`` to ``observe``), and the mean of the known ones for
    the others.
    """

    def weights(self, problem: Problem) -> NDArray[np.float64]:
        """Standard deviation of the outcome over the root of its price."""
        p = problem.estimates.pass_rate_P
        return np.sqrt(p * (1 - p) / problem.estimates.num_tokens_P)
