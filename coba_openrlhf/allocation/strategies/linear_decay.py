"""CoBA-RL's value with a preference that moves with time, not with capability: an ablation of the paper."""

from ..problem import Problem
from ..value import Shape
from .coba import Coba


class LinearDecay(Coba):
    """``V`` of ``coba`` with alpha falling linearly from ``alpha_max`` to ``alpha_min`` (arXiv 2602.03048).

        alpha(t) = alpha_max + (alpha_min - alpha_max) * min(t / decay_steps, 1),   beta = kappa - alpha

    ``t`` counts allocations from 0: easy prompts first, hard ones at the end.
    """

    def shape(self, problem: Problem) -> tuple[Shape, Shape]:
        """By the step alone."""
        progress = min(problem.step / self.config.decay_steps, 1.0)
        alpha = self.config.alpha_limit + (self.config.alpha_min - self.config.alpha_limit) * progress
        return alpha, self.config.kappa - alpha
