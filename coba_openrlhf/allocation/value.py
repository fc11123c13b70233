"""What a rollout budget is worth: budget saturation times capability-induced preference density.

    V(B, p) = (1 - exp(-B * p(1-p) / tau)) * Beta(p; alpha, beta)            arXiv 2602.03048

With ``slope = p(1-p) / tau`` the marginal gain is geometric in B, hence strictly decreasing, hence greedy is
optimal (Proposition 2.2), and its logarithm is linear in B:

    V(B+1, p) - V(B, p) = Beta(p) * (1 - exp(-slope)) * exp(-slope * B)
    log gain            = intercept - slope * B

Gains far below the smallest float stay ordered in log space, which is why solvers only see the last line.
"""

# Legend: P = prompts.

from math import lgamma

import numpy as np
from numpy.typing import ArrayLike, NDArray

EPS = 0.01


def log_beta_density(pass_rate_P: NDArray[np.float64], alpha: float, beta: float) -> NDArray[np.float64]:
    """Log of the Beta(alpha, beta) density, float64 ``[P]``.

    Args:
        pass_rate_P: ``[P]``, strictly between 0 and 1 (see ``clip``).
        alpha: First shape parameter, > 0; larger prefers easy prompts.
        beta: Second shape parameter, > 0; larger prefers hard prompts.
    """
    log_normaliser = lgamma(alpha) + lgamma(beta) - lgamma(alpha + beta)
    return (alpha - 1) * np.log(pass_rate_P) + (beta - 1) * np.log1p(-pass_rate_P) - log_normaliser


def clip(pass_rate_P: NDArray[np.float64], eps: float = EPS) -> NDArray[np.float64]:
    """Pass rates in [eps, 1 - eps], where density and saturation are finite and positive."""
    return np.clip(pass_rate_P, eps, 1 - eps)


def log_gain_rule(
    pass_rate_P: NDArray[np.float64], alpha: float, beta: float, tau: float, eps: float = EPS
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Log marginal gains of all budgets: the step B -> B + 1 of prompt i gains ``exp(intercept - slope * B)``.

    Args:
        pass_rate_P: ``[P]`` in [0, 1]; clipped to [eps, 1 - eps].
        alpha: First shape parameter, > 0.
        beta: Second shape parameter, > 0.
        tau: Saturation, in rollouts, > 0.
        eps: In (0, 0.5).

    Returns:
        ``(intercept_P, slope_P)``, finite float64, slopes > 0.
    """
    pass_rate_P = clip(pass_rate_P, eps)
    slope_P = pass_rate_P * (1 - pass_rate_P) / tau
    return log_beta_density(pass_rate_P, alpha, beta) + np.log(-np.expm1(-slope_P)), slope_P


def value(
    budget: ArrayLike, pass_rate_P: NDArray[np.float64], alpha: float, beta: float, tau: float, eps: float = EPS
) -> NDArray[np.float64]:
    """V(B, p) itself, for plots and for comparing allocations; arguments as for ``log_gain_rule``.

    Args:
        budget: Rollouts >= 0, anything that broadcasts against ``[P]``.

    Returns:
        float64 of the broadcast shape, in [0, Beta(p; alpha, beta)].
    """
    pass_rate_P = clip(pass_rate_P, eps)
    saturation = -np.expm1(-np.asarray(budget) * pass_rate_P * (1 - pass_rate_P) / tau)
    worth: NDArray[np.float64] = saturation * np.exp(log_beta_density(pass_rate_P, alpha, beta))
    return worth
