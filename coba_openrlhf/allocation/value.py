"""What a rollout budget is worth: budget saturation times capability-induced preference density.

    V(B, p) = (1 - exp(-B * k)) * Beta(p; alpha, beta)            arXiv 2602.03048

    saturation variance           k = p(1-p) / tau                the paper's explanation and its released code
    saturation inverse_variance   k = 1 / (tau * p(1-p))          the form that one summary of the paper prints

The marginal gain is geometric in B, hence strictly decreasing, hence greedy is optimal (Proposition 2.2), and its
logarithm is linear in B:

    V(B+1, p) - V(B, p) = Beta(p) * (1 - exp(-k)) * exp(-k * B)
    log gain            = intercept - slope * B,    slope = k

Gains far below the smallest float stay ordered in log space, which is why solvers only see the last line.
"""

# Legend: P = prompts.

from math import lgamma
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .gains import Gains

EPS = 0.01

Saturation = Literal["variance", "inverse_variance"]
SATURATIONS = get_args(Saturation)

# A parameter of the density: one for all prompts, or one per prompt.
Shape = float | NDArray[np.float64]


def _log_gamma(shape: Shape) -> Shape:
    if isinstance(shape, np.ndarray):
        # A handful of different values, one per difficulty; ``lgamma`` takes one at a time.
        distinct, index_P = np.unique(shape, return_inverse=True)
        return np.array([lgamma(x) for x in distinct])[index_P]
    return lgamma(shape)


def log_beta_density(pass_rate_P: NDArray[np.float64], alpha: Shape, beta: Shape) -> NDArray[np.float64]:
    """Log of the Beta(alpha, beta) density, float64 ``[P]``.

    Args:
        pass_rate_P: ``[P]``, strictly between 0 and 1 (see ``clip``).
        alpha: First shape parameter, > 0; larger prefers easy prompts.
        beta: Second shape parameter, > 0; larger prefers hard prompts.
    """
    log_normaliser = _log_gamma(alpha) + _log_gamma(beta) - _log_gamma(alpha + beta)
    log_density_P: NDArray[np.float64] = np.log(pass_rate_P)
    log_density_P *= alpha - 1
    log_density_P += (beta - 1) * np.log1p(-pass_rate_P)
    log_density_P -= log_normaliser
    return log_density_P


def clip(pass_rate_P: NDArray[np.float64], eps: float = EPS) -> NDArray[np.float64]:
    """Pass rates in [eps, 1 - eps], where density and saturation are finite and positive."""
    clipped_P: NDArray[np.float64] = np.minimum(np.maximum(pass_rate_P, eps), 1 - eps)
    return clipped_P


def saturation_rate(
    pass_rate_P: NDArray[np.float64], tau: float, saturation: Saturation = "variance"
) -> NDArray[np.float64]:
    """``k`` of the value, float64 ``[P]``, > 0, for clipped pass rates."""
    variance_P = pass_rate_P * (1 - pass_rate_P)
    return variance_P / tau if saturation == "variance" else 1 / (tau * variance_P)


def value_gains(
    pass_rate_P: NDArray[np.float64],
    alpha: Shape,
    beta: Shape,
    tau: float,
    eps: float = EPS,
    saturation: Saturation = "variance",
) -> Gains:
    """Marginal gains of the value.

    Args:
        pass_rate_P: ``[P]`` in [0, 1]; clipped to [eps, 1 - eps].
        alpha: First shape parameter, > 0.
        beta: Second shape parameter, > 0.
        tau: Saturation, in rollouts, > 0.
        eps: In (0, 0.5).
        saturation: The form of the first factor.
    """
    pass_rate_P = clip(pass_rate_P, eps)
    slope_P = saturation_rate(pass_rate_P, tau, saturation)
    intercept_P = np.log(-np.expm1(-slope_P))
    intercept_P += log_beta_density(pass_rate_P, alpha, beta)
    return Gains.geometric(intercept_P, slope_P)


def value(
    budget: ArrayLike,
    pass_rate_P: NDArray[np.float64],
    alpha: Shape,
    beta: Shape,
    tau: float,
    eps: float = EPS,
    saturation: Saturation = "variance",
) -> NDArray[np.float64]:
    """V(B, p) itself, for plots and for comparing allocations; arguments as for ``value_gains``.

    Args:
        budget: Rollouts >= 0, anything that broadcasts against ``[P]``.

    Returns:
        float64 of the broadcast shape, in [0, Beta(p; alpha, beta)].
    """
    pass_rate_P = clip(pass_rate_P, eps)
    filled = -np.expm1(-np.asarray(budget) * saturation_rate(pass_rate_P, tau, saturation))
    worth: NDArray[np.float64] = filled * np.exp(log_beta_density(pass_rate_P, alpha, beta))
    return worth


def adaptive_tau(pass_rate_P: NDArray[np.float64], tau_min: float, tau_max: float) -> float:
    """Saturation that grows with the spread of a batch, in [tau_min, tau_max].

    Linear in the variance of the pass rates divided by 1/6 (written 0.1667 in the released code), as far as 1.
    """
    share = min(float(np.var(pass_rate_P)) / VARIANCE_SCALE, 1.0)
    return tau_min + (tau_max - tau_min) * share


VARIANCE_SCALE = 0.1667
