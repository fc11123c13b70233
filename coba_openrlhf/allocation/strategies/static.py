"""CoBA-RL's value with a preference that never changes: an ablation of the paper."""

from ..problem import Problem
from ..value import Shape
from .coba import Coba


class Static(Coba):
    """``V`` of ``coba`` with ``alpha = static_alpha``, ``beta = static_beta``, e.g. 10.5 and 1.5 (arXiv 2602.03048)."""

    def shape(self, problem: Problem) -> tuple[Shape, Shape]:
        """The two settings, whatever the policy can do."""
        return self.config.static_alpha, self.config.static_beta
