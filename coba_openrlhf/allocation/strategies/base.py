"""What every budget rule is: a class that turns a problem into budgets."""

# Legend: P = prompts of the batch.

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from ..config import AllocationConfig
from ..gains import Gains
from ..problem import Problem
from ..rounding import proportional_budgets
from ..solvers import solve


class Strategy(ABC):
    """A budget rule. It reads the problem and its settings and keeps no state.

    Write your own by deriving from ``GreedyStrategy`` (say what the next rollout is worth),
    ``ProportionalStrategy`` (say in which proportion) or this class (say the budgets), in a file that
    ``strategy: path/to/rule.py:ClassName`` names.

    Args:
        config: Settings of the allocator.
    """

    def __init__(self, config: AllocationConfig) -> None:
        self.config = config

    @abstractmethod
    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """``(budget_P, shadow_price)``: whole budgets within the bounds that sum to the total.

        The shadow price is the gain of the last rollout placed above the minimum; NaN for rules without a value.
        """

    def metrics(self, problem: Problem) -> dict[str, float]:
        """Numbers of the rule to be logged with the allocation of ``problem``."""
        return {}


class GreedyStrategy(Strategy):
    """A rule with decreasing marginal gains, solved exactly."""

    @abstractmethod
    def gains(self, problem: Problem) -> Gains:
        """What the next rollout of each prompt is worth, at every budget."""

    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Budgets that maximise the summed gains; equal gains go to the lowest index."""
        gains = self.gains(problem)
        if not isinstance(gains, Gains) or gains.param_KP.shape[1] != len(problem):
            shown = f"those of {gains.param_KP.shape[1]}" if isinstance(gains, Gains) else repr(gains)
            raise ValueError(f"gains must be Gains of {len(problem)} prompts, got {shown}")
        if self.config.perturbation:
            # Drawn anew for every allocation, from the seed and the step alone: nothing to save, and reproducible.
            noise_P = np.random.default_rng([self.config.seed, problem.step]).uniform(-1, 1, len(problem))
            gains = gains.scaled(1 + self.config.perturbation * noise_P)
        return solve(gains, problem.total_budget, problem.budget_min, problem.budget_max, self.config.solver)


class ProportionalStrategy(Strategy):
    """A rule in closed form: budgets proportional to weights, within the bounds."""

    @abstractmethod
    def weights(self, problem: Problem) -> NDArray[np.float64]:
        """Weight of each prompt, float64 ``[P]``, finite, >= 0."""

    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Largest-remainder rounding of the clipped proportional budgets."""
        weight_P = np.asarray(self.weights(problem), np.float64)
        if weight_P.shape != (len(problem),) or not (np.isfinite(weight_P) & (weight_P >= 0)).all():
            raise ValueError(f"weights must be {len(problem)} finite numbers >= 0, got {weight_P!r}")
        return proportional_budgets(weight_P, problem.total_budget, problem.budget_min, problem.budget_max), np.nan
