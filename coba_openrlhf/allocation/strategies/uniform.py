"""The same budget for every prompt, as GRPO has it."""

# Legend: P = prompts of the batch.

from math import nan
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from ..capability import CapabilityWindow
from ..config import AllocationConfig
from ..types import Allocation


def allocate_uniform(
    pass_rate_P: NDArray[np.float64], capability: CapabilityWindow, total_budget: int, config: AllocationConfig
) -> Allocation:
    """``total_budget // P`` each; the remainder goes to the first prompts, one each."""
    started = perf_counter()
    share, remainder = divmod(total_budget, len(pass_rate_P))
    budget_P = np.full(len(pass_rate_P), share, np.int64)
    budget_P[:remainder] += 1
    # A feasible total has its mean within the bounds, so the two integers around the mean are too.
    assert config.budget_min <= budget_P.min() and budget_P.max() <= config.budget_max
    return Allocation(budget_P, nan, perf_counter() - started, pass_rate_P)
