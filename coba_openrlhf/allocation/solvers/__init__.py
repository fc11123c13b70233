"""Exact solvers of the budget problem, by name."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from .heap import solve_heap

# Legend: P = prompts.


class Solver(Protocol):
    """Greedy-exact budgets for log gains that are linear in the budget; trusts its inputs."""

    def __call__(
        self,
        intercept_P: NDArray[np.float64],
        slope_P: NDArray[np.float64],
        total_budget: int,
        budget_min: int,
        budget_max: int,
        /,
    ) -> tuple[NDArray[np.int64], float]:
        """``(budget_P, log_shadow_price)``; see ``solve_heap``."""


SOLVERS: Mapping[str, Solver] = MappingProxyType({"heap": solve_heap})


def check_solver(name: object) -> None:
    """Raise ValueError unless ``name`` is an available solver."""
    if name == "threshold":
        raise ValueError("solver must be heap: threshold is reserved but not available yet, got 'threshold'")
    if not isinstance(name, str) or name not in SOLVERS:
        raise ValueError(f"solver must be one of {', '.join(SOLVERS)}, got {name!r}")
