"""Paired differences over seeds, and what is left of them after many comparisons."""

# Legend: S = seeds, C = comparisons, F = assignments of signs.

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

# Up to 2**16 assignments are all looked at; above, this many are drawn.
EXACT_SEEDS = 16


def sign_flip_p(difference_S: ArrayLike) -> float:
    """Two-sided p-value of a mean of paired differences: how often random signs give one as far from 0.

    It supposes only that a difference is as likely to be ``d`` as ``-d`` when the rules are equal. Exact up to 16
    seeds, where the smallest value is ``2 ** (1 - S)``.
    """
    values: NDArray[np.float64] = np.asarray(difference_S, np.float64)
    if len(values) <= EXACT_SEEDS:
        bit_FS = np.arange(2 ** len(values))[:, None] >> np.arange(len(values)) & 1
    else:
        bit_FS = np.random.default_rng(0).integers(2, size=(2**EXACT_SEEDS, len(values)))
        bit_FS[0] = 0  # the signs that were seen are one of the assignments
    mean_F = np.abs((1 - 2 * bit_FS) @ values)
    # Rounding must not decide between equal sums.
    return float(np.mean(mean_F >= abs(values.sum()) - 1e-12 * np.abs(values).sum()))


def holm(p_C: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: below 0.05 for one of them means at most 5 % risk of any false one among all."""
    adjusted, largest = [0.0] * len(p_C), 0.0
    for rank, index in enumerate(np.argsort(p_C, kind="stable").tolist()):
        largest = max(largest, min(1.0, (len(p_C) - rank) * p_C[index]))
        adjusted[index] = largest
    return adjusted


def reach(x_E: ArrayLike, value_E: ArrayLike, target: float) -> float:
    """Where a curve first is at ``target``, by linear interpolation between evaluations; infinity if it never is."""
    xs, values = np.asarray(x_E, np.float64), np.asarray(value_E, np.float64)
    above = np.flatnonzero(values >= target)
    if not len(above):
        return float("inf")
    at = int(above[0])
    if at == 0:
        return float(xs[0])
    share = (target - values[at - 1]) / (values[at] - values[at - 1])
    return float(xs[at - 1] + share * (xs[at] - xs[at - 1]))
