"""CoBA-RL: budgets by the value that the policy's present capability gives to prompts."""

# Legend: P = prompts of the batch.

import numpy as np

from ..capability import preference_alpha
from ..gains import Gains
from ..problem import Problem
from ..value import Shape, adaptive_tau, value_gains
from .base import GreedyStrategy


class Coba(GreedyStrategy):
    """Exact maximum of the summed value (arXiv 2602.03048).

        V(B, p) = (1 - exp(-B p(1-p) / tau)) * Beta(p; alpha, beta)
        alpha = clip(alpha_min + lambd * F~, alpha_min, alpha_max),   beta = kappa - alpha

    ``F~`` is the transformed failure rate of the last ``capability_window`` steps, see ``capability.py``.
    """

    def shape(self, problem: Problem) -> tuple[Shape, Shape]:
        """``(alpha, beta)`` of the preference density: numbers, or ``[P]`` with several capability bins."""
        rate = problem.failure_rate_P if self.config.capability_bins > 1 else problem.failure_rate_smoothed
        alpha = preference_alpha(rate, self.config)
        alpha_shape: Shape = alpha if alpha.ndim else float(alpha)
        return alpha_shape, self.config.kappa - alpha_shape

    def tau(self, problem: Problem) -> float:
        """Saturation of the value for this batch."""
        if self.config.tau_mode == "fixed":
            return self.config.tau
        return adaptive_tau(problem.estimates.pass_rate_P, self.config.tau_min, self.config.tau_max)

    def gains(self, problem: Problem) -> Gains:
        """Geometric gains of the value."""
        alpha, beta = self.shape(problem)
        pass_rate_P = problem.estimates.pass_rate_P
        return value_gains(pass_rate_P, alpha, beta, self.tau(problem), self.config.eps, self.config.saturation)

    def metrics(self, problem: Problem) -> dict[str, float]:
        """``alpha``, ``beta`` (means over prompts) and ``tau`` that made these budgets."""
        alpha, beta = self.shape(problem)
        return {"alpha": float(np.mean(alpha)), "beta": float(np.mean(beta)), "tau": self.tau(problem)}
