"""Moments of Beta distributions."""

import math

import numpy as np
from numpy.typing import NDArray

_log_gamma = np.frompyfunc(math.lgamma, 1, 1)


def log_gamma(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Log of the Gamma function of positive numbers, float64 of the shape of ``x``."""
    return _log_gamma(x).astype(np.float64)


def log_moment(
    a: NDArray[np.float64], b: NDArray[np.float64], success: NDArray[np.float64], failure: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``log E[p^success (1-p)^failure]`` for ``p ~ Beta(a, b)``: how likely such outcomes are, in a given order.

    Args:
        a: First parameters, > 0.
        b: Second parameters, > 0.
        success: Exponents >= 0, not necessarily whole; all four of shapes that broadcast.
        failure: The same for failures.
    """
    grown = log_gamma(a + success) - log_gamma(a) + log_gamma(b + failure) - log_gamma(b)
    return grown + log_gamma(a + b) - log_gamma(a + b + success + failure)
