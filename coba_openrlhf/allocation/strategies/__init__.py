"""Budget rules by name: one file each."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from ..capability import CapabilityWindow
from ..config import AllocationConfig, StrategyName
from ..types import Allocation
from .coba import allocate_coba
from .uniform import allocate_uniform

# (pass_rate_P in [0, 1], capability, total_budget, config) -> Allocation. The total is feasible for the bounds
# of the config; the capability is read, never changed.
Strategy = Callable[[NDArray[np.float64], CapabilityWindow, int, AllocationConfig], Allocation]

STRATEGIES: Mapping[StrategyName, Strategy] = MappingProxyType({"coba": allocate_coba, "uniform": allocate_uniform})

__all__ = ["STRATEGIES", "Strategy"]
