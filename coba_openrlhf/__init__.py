"""CoBA-RL: per-prompt rollout budgets for GRPO on OpenRLHF."""

from .allocation import Allocation, AllocationConfig, Allocator, allocate_greedy

__version__ = "0.1.0"

__all__ = ["Allocation", "AllocationConfig", "Allocator", "__version__", "allocate_greedy"]
