"""Budgets for given pass rates, without any state."""

# Legend: P = prompts of the batch.

from math import exp
from time import perf_counter

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_bounds, check_real, check_total, check_unit_interval
from .solvers import SOLVERS, check_solver
from .types import Allocation
from .value import EPS, log_gain_rule


def allocate_greedy(
    pass_rate_P: ArrayLike,
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float = 5.0,
    budget_min: int = 2,
    budget_max: int = 128,
    solver: str = "heap",
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
        solver: ``heap``.

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
    check_solver(solver)
    return solve_greedy(
        checked_P,
        check_total(total_budget, len(checked_P), budget_min, budget_max),
        alpha=check_real("alpha", alpha, "[]"),
        beta=check_real("beta", beta, "[]"),
        tau=check_real("tau", tau, "[]"),
        eps=EPS,
        budget_min=budget_min,
        budget_max=budget_max,
        solver=solver,
    )


def solve_greedy(
    pass_rate_P: NDArray[np.float64],
    total_budget: int,
    *,
    alpha: float,
    beta: float,
    tau: float,
    eps: float,
    budget_min: int,
    budget_max: int,
    solver: str,
) -> Allocation:
    """``allocate_greedy`` for inputs that are already checked, with the clipping ``eps`` in [1e-9, 0.5)."""
    started = perf_counter()
    intercept_P, slope_P = log_gain_rule(pass_rate_P, alpha, beta, tau, eps)
    budget_P, log_shadow_price = SOLVERS[solver](intercept_P, slope_P, total_budget, budget_min, budget_max)
    return Allocation(budget_P, exp(log_shadow_price), perf_counter() - started, pass_rate_P)
