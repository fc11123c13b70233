"""CoBA-RL (arXiv 2602.03048): budgets by the value that the policy's present capability gives to prompts."""

# Legend: P = prompts of the batch.

import numpy as np
from numpy.typing import NDArray

from ..capability import CapabilityWindow
from ..config import AllocationConfig
from ..greedy import solve_greedy
from ..types import Allocation


def allocate_coba(
    pass_rate_P: NDArray[np.float64], capability: CapabilityWindow, total_budget: int, config: AllocationConfig
) -> Allocation:
    """Exact maximum of the summed value under the capability's alpha and beta."""
    return solve_greedy(
        pass_rate_P,
        total_budget,
        alpha=capability.alpha,
        beta=capability.beta,
        tau=config.tau,
        eps=config.eps,
        budget_min=config.budget_min,
        budget_max=config.budget_max,
        solver=config.solver,
    )
