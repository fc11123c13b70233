"""Budgets for given pass rates, without any state."""

# Legend: P = prompts of the batch.

from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike

from .checks import check_bounds, check_choice, check_real, check_total, check_unit_interval
from .solvers import SOLVER_NAMES, solve
from .types import Allocation
from .value import SATURATIONS, Saturation, value_gains


def allocate_greedy(
    pass_rate_P: ArrayLike,
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float = 5.0,
    budget_min: int = 2,
    budget_max: int = 128,
    saturation: Saturation = "variance",
    solver: str = "auto",
) -> Allocation:
    """Maximise ``sum_i V(B_i, p_i)`` over integers ``B_i`` in ``[budget_min, budget_max]`` that sum to the total.

    ``V`` is the value of CoBA-RL (arXiv 2602.03048), see ``value.py``. Its marginal gains decrease, so greedy is
    exact. Ties go to the lowest index; the result does not depend on JIT or caching.

    Args:
        pass_rate_P: ``[P]`` real numbers in [0, 1], P >= 1; clipped to [0.01, 0.99] inside the value.
        total_budget: Rollouts of the batch, in [P * budget_min, P * budget_max].
        alpha: First parameter of the preference density, in [1e-9, 1e9]; larger prefers easy prompts.
        beta: Second parameter of the preference density, in [1e-9, 1e9]; larger prefers hard prompts.
        tau: Saturation, in rollouts, in [1e-9, 1e9].
        budget_min: Fewest rollouts of a prompt, >= 0.
        budget_max: Most rollouts of a prompt, >= budget_min.
        saturation: Form of the value's first factor, see ``value.py``.
        solver: ``auto``, ``heap``, ``threshold`` (the same budgets, faster) or ``exact`` (slow; other ties).

    Returns:
        The allocation; ``pass_rate_P`` in it is the input as float64.

    Raises:
        ValueError: An argument breaks its rule; the message names argument, rule and value.

    Example:
        >>> allocate_greedy([0.1, 0.5, 0.9], 24, alpha=2.0, beta=9.0).budget_P
        array([20,  2,  2])
    """
    checked_P = check_unit_interval("pass_rate_P", pass_rate_P, "iuf").astype(np.float64)
    budget_min, budget_max = check_bounds(budget_min, budget_max, lowest=0)
    total = check_total(total_budget, len(checked_P), budget_min, budget_max)
    alpha, beta = check_real("alpha", alpha, "[]"), check_real("beta", beta, "[]")
    tau = check_real("tau", tau, "[]")
    check_choice("saturation", saturation, SATURATIONS)
    check_choice("solver", solver, SOLVER_NAMES)
    started = perf_counter()
    gains = value_gains(checked_P, alpha, beta, tau, saturation=saturation)
    budget_P, shadow_price = solve(gains, total, budget_min, budget_max, solver)
    return Allocation(budget_P, shadow_price, perf_counter() - started, checked_P)
