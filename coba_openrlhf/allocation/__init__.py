"""Rollout budgets: numpy, numba and the standard library only, usable from any training loop."""

from .allocator import Allocator
from .config import AllocationConfig
from .greedy import allocate_greedy
from .types import Allocation

__all__ = ["Allocation", "AllocationConfig", "Allocator", "allocate_greedy"]
