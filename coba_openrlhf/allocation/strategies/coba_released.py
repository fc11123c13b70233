"""CoBA-RL as its released code behaves, with its own constants."""

# Legend: P = prompts of the batch.

from math import nan

import numpy as np
from numpy.typing import NDArray

from ..capability import transform_failure_rate
from ..problem import Problem
from ..rounding import proportional_budgets
from ..solvers import solve
from ..value import Shape, adaptive_tau, value_gains
from .base import Strategy

EASY, HARD = 0.99, 0.05  # the heap takes prompts with HARD <= p <= EASY
TAU_MIN, TAU_MAX = 3.0, 12.0


class CobaReleased(Strategy):
    """A behavioural twin of the recipe published with arXiv 2602.03048, where it differs from the paper.

    - ``lambd = kappa - 2``, alpha in [1, kappa - 1], and the failure rate of the last step alone;
    - tau between 3 and 12, linear in the batch's variance of pass rates over 0.1667;
    - the heap serves the prompts with 0.05 <= p <= 0.99, and gets 80 % of the rollouts above the minimum when
      more than half of the batch is in that range, else 60 % + 40 % of the share that is;
    - the rest goes, in proportion to ``1 - p``, to hard prompts up to the maximum, then to those in range, then
      to easy ones;
    - a batch of unseen prompts only is uniform, a remainder going to the first prompts.

    ``kappa``, ``gamma``, ``eps``, the bounds and the pass-rate settings are the user's; ``tau``, ``tau_mode``,
    ``lambd``, ``alpha_min``, ``alpha_max`` and ``capability_window`` are fixed by the rule. The recipe takes an
    unseen prompt's pass rate for 0.5 (``unseen_pass_rate``).
    """

    def shape(self, problem: Problem) -> tuple[Shape, Shape]:
        """``(alpha, beta)`` from the last step's failure rate."""
        kappa = self.config.kappa
        transformed = float(transform_failure_rate(problem.failure_rate, self.config.gamma))
        alpha = min(max(1 + (kappa - 2) * transformed, 1.0), kappa - 1)
        return alpha, kappa - alpha

    def allocate(self, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Heap in the middle, weights for the rest."""
        num_prompts, low, high = len(problem), problem.budget_min, problem.budget_max
        if not problem.estimates.seen_P.any():
            return proportional_budgets(np.ones(num_prompts), problem.total_budget, low, high), nan
        pass_rate_P = problem.estimates.pass_rate_P
        in_range_P = (pass_rate_P >= HARD) & (pass_rate_P <= EASY)
        budget_P = np.full(num_prompts, low, np.int64)
        left = problem.total_budget - num_prompts * low
        price = nan
        rows = np.flatnonzero(in_range_P)
        # In fifths, as whole numbers: 70 % of 180 is 126, not 125.99.
        fifths = 4 * num_prompts if 2 * len(rows) > num_prompts else 3 * num_prompts + 2 * len(rows)
        for_heap = left * fifths // (5 * num_prompts)
        for_heap = min(for_heap, len(rows) * (high - low))
        if for_heap:
            alpha, beta = self.shape(problem)
            tau = adaptive_tau(pass_rate_P, TAU_MIN, TAU_MAX)
            gains = value_gains(pass_rate_P[rows], alpha, beta, tau, self.config.eps, self.config.saturation)
            budget_P[rows], price = solve(gains, for_heap + len(rows) * low, low, high, self.config.solver)
            left -= for_heap
        for group_P in (pass_rate_P < HARD, in_range_P, pass_rate_P > EASY):
            rows = np.flatnonzero(group_P)
            given = min(left, int((high - budget_P[rows]).sum()))
            if given:
                budget_P[rows] += _by_weight(1 - pass_rate_P[rows], given, high - budget_P[rows])
                left -= given
        return budget_P, price

    def metrics(self, problem: Problem) -> dict[str, float]:
        """``alpha``, ``beta`` and ``tau`` that made these budgets."""
        alpha, beta = self.shape(problem)
        tau = adaptive_tau(problem.estimates.pass_rate_P, TAU_MIN, TAU_MAX)
        return {"alpha": float(np.mean(alpha)), "beta": float(np.mean(beta)), "tau": tau}


def _by_weight(weight_P: NDArray[np.float64], total: int, room_P: NDArray[np.int64]) -> NDArray[np.int64]:
    """``total`` rollouts in proportion to weights, each prompt within its room."""
    given_P = np.zeros(len(weight_P), np.int64)
    while total:
        rows = np.flatnonzero(given_P < room_P)
        step_P = np.minimum(proportional_budgets(weight_P[rows], total, 0, total), room_P[rows] - given_P[rows])
        given_P[rows] += step_P
        total -= int(step_P.sum())
    return given_P
