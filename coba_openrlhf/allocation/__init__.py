"""Rollout budgets: numpy, numba and the standard library only, usable from any training loop."""

from .allocator import Allocator
from .concentration import concentration_warning
from .config import STRATEGY_NAMES, AllocationConfig
from .data_change import DataChange
from .gains import Gains
from .greedy import allocate_greedy
from .observation import Observation, count_outcomes
from .problem import Estimates, Problem
from .revisits import PromptRevisits, expected_signal
from .strategies import STRATEGIES, GreedyStrategy, ProportionalStrategy, Strategy
from .types import Allocation

__all__ = [
    "STRATEGIES",
    "STRATEGY_NAMES",
    "Allocation",
    "AllocationConfig",
    "Allocator",
    "DataChange",
    "Estimates",
    "Gains",
    "GreedyStrategy",
    "Observation",
    "Problem",
    "PromptRevisits",
    "ProportionalStrategy",
    "Strategy",
    "allocate_greedy",
    "concentration_warning",
    "count_outcomes",
    "expected_signal",
]
