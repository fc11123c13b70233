"""Mixed groups, worth more the harder the prompt."""

from ..gains import Gains
from ..problem import Problem
from .mixed import Mixed


class MixedHard(Mixed):
    """``V`` of ``mixed`` times ``E[1 - p] = b / (a+b)``: a solved prompt's mixed group teaches less."""

    def gains(self, problem: Problem) -> Gains:
        """Gains of ``mixed``, weighted."""
        return super().gains(problem).scaled(1 - problem.estimates.posterior_mean_P)
