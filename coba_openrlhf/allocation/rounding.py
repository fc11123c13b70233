"""Whole budgets in proportion to weights."""

# Legend: P = prompts.

import numpy as np
from numpy.typing import NDArray

_SMALLEST_SHARE = 1e-280


def proportional_budgets(
    weight_P: NDArray[np.float64], total_budget: int, budget_min: int, budget_max: int
) -> NDArray[np.int64]:
    """Budgets proportional to ``weight_P``, clipped to the bounds, with exactly the total.

    The real-valued budgets are ``clip(c * weight, budget_min, budget_max)`` with the one ``c`` that makes them sum to
    the total; largest remainders round them (ties go to the lowest index). Prompts of weight 0 stay at the
    minimum until all others are at the maximum, and then share what is left evenly.

    Args:
        weight_P: float64 ``[P]``, finite, >= 0.
        total_budget: In [P * budget_min, P * budget_max].
        budget_min: Fewest rollouts of a prompt.
        budget_max: Most rollouts of a prompt.

    Returns:
        int64 ``[P]``.
    """
    positive_P = weight_P > 0
    num_positive, num_zero = int(positive_P.sum()), int((~positive_P).sum())
    overflow = total_budget - num_positive * budget_max - num_zero * budget_min
    if overflow >= 0:
        share_P = np.full(len(weight_P), float(budget_max))
        share_P[~positive_P] = budget_min + overflow / max(num_zero, 1)
    else:
        share_P = _clipped_shares(weight_P, total_budget, budget_min, budget_max)
    return round_to_total(share_P, total_budget, budget_min, budget_max)


def _clipped_shares(
    weight_P: NDArray[np.float64], total_budget: int, budget_min: int, budget_max: int
) -> NDArray[np.float64]:
    """``clip(c * weight, budget_min, budget_max)`` whose sum is the total, as closely as floats allow."""
    # So small a weight that the division would overflow counts as the smallest that does not.
    scaled_P = np.where(weight_P > 0, np.maximum(weight_P / weight_P.max(), _SMALLEST_SHARE), 0.0)
    low, high = 0.0, budget_max / scaled_P[scaled_P > 0].min()
    # The sum grows with c. Halving goes on until c cannot be told apart from its neighbours.
    for _ in range(1100):
        factor = 0.5 * (low + high)
        if not low < factor < high:
            break
        if np.clip(factor * scaled_P, budget_min, budget_max).sum() < total_budget:
            low = factor
        else:
            high = factor
    share_P: NDArray[np.float64] = np.clip(high * scaled_P, budget_min, budget_max)
    return share_P


def round_to_total(
    share_P: NDArray[np.float64], total_budget: int, budget_min: int, budget_max: int
) -> NDArray[np.int64]:
    """Largest-remainder rounding of shares that lie within the bounds and sum to about the total."""
    # A share that misses a whole number by rounding error is that number.
    nearest_P = np.rint(share_P)
    share_P = np.where(np.abs(share_P - nearest_P) <= 1e-9 * np.maximum(nearest_P, 1.0), nearest_P, share_P)
    budget_P = np.floor(share_P).astype(np.int64)
    left = total_budget - int(budget_P.sum())
    while left != 0:
        step = 1 if left > 0 else -1
        may_P = budget_P < budget_max if step > 0 else budget_P > budget_min
        candidate = np.flatnonzero(may_P)
        # How much a prompt is short of its share (or above it); a stable sort keeps ties in order.
        order = np.argsort(-step * (share_P - budget_P)[candidate], kind="stable")
        chosen = candidate[order[: abs(left)]]
        budget_P[chosen] += step
        left -= step * len(chosen)
    return budget_P
