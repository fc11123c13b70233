"""What a strategy is asked, and what is known about the prompts."""

# Legend: P = prompts of the batch.

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Estimates:
    """What is believed about the prompts of a batch before their rollouts exist.

    Attributes:
        pass_rate_P: float64 ``[P]`` in [0, 1], the estimated pass rates.
        success_P: float64 ``[P]``, > 0, first parameter of the Beta distribution of the pass rate.
        failure_P: float64 ``[P]``, > 0, its second parameter.
        last_rate_P: float64 ``[P]`` in [0, 1], the pass rate of the prompt's last visit; ``pass_rate_P`` if unseen.
        num_tokens_P: float64 ``[P]``, > 0, expected tokens of a response; 1 everywhere when nothing is known.
        seen_P: bool ``[P]``, whether the prompt has a history.
        version_P: float64 ``[P]``, policy version of the prompt's last visit; -1 if unseen.
    """

    pass_rate_P: NDArray[np.float64]
    success_P: NDArray[np.float64]
    failure_P: NDArray[np.float64]
    last_rate_P: NDArray[np.float64]
    num_tokens_P: NDArray[np.float64]
    seen_P: NDArray[np.bool_]
    version_P: NDArray[np.float64]

    @property
    def posterior_mean_P(self) -> NDArray[np.float64]:
        """Mean of the Beta distribution, strictly between 0 and 1."""
        return self.success_P / (self.success_P + self.failure_P)


@dataclass(frozen=True, eq=False)
class Problem:
    """Distribute ``total_budget`` rollouts over the prompts of a batch.

    Attributes:
        estimates: What is believed about the prompts.
        total_budget: Sum of the budgets, in [P * budget_min, P * budget_max].
        budget_min: Fewest rollouts of a prompt, >= 0.
        budget_max: Most rollouts of a prompt.
        failure_rate: The policy's failure rate on the last step's prompts, in [0, 1]; 0.5 before any.
        failure_rate_smoothed: Its mean over the capability window.
        failure_rate_P: float64 ``[P]``, the same for prompts of similar difficulty (``capability_bins``).
        step: Allocations before this one.
        gradient_norm_P: float64 ``[P]``, >= 0, how long the policy gradient of a rollout is; 1 when unknown.
    """

    estimates: Estimates
    total_budget: int
    budget_min: int
    budget_max: int
    failure_rate: float
    failure_rate_smoothed: float
    failure_rate_P: NDArray[np.float64]
    step: int
    gradient_norm_P: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.estimates.pass_rate_P)
