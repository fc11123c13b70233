"""The policy's capability, as the recent failure rate, and the preference density that follows from it."""

from collections import deque
from collections.abc import Mapping
from math import exp, fsum
from typing import Any

from .checks import check_keys

# Before anything is known the policy is taken to fail half the time: alpha and beta near their middle.
UNKNOWN_FAILURE_RATE = 0.5


class CapabilityWindow:
    """Moving average of the failure rate, and alpha and beta as a function of it (arXiv 2602.03048).

        F~    = Fbar                             if Fbar > 0.5
                sigmoid(gamma * (Fbar - 0.5))    otherwise
        alpha = clip(alpha_min + lambd * F~, alpha_min, alpha_max)
        beta  = kappa - alpha

    A failing policy gets a large alpha: easy prompts are preferred (exploit). A succeeding one gets a small
    alpha: hard prompts are preferred (explore).

    Args:
        window: Steps averaged, >= 1.
        kappa: alpha + beta, > alpha_max.
        lambd: Slope of alpha over F~, >= 0.
        gamma: Steepness below one half, >= 0.
        alpha_min: Lower bound of alpha, > 0.
        alpha_max: Upper bound of alpha.
    """

    def __init__(
        self, window: int, *, kappa: float, lambd: float, gamma: float, alpha_min: float, alpha_max: float
    ) -> None:
        self._failure_rates: deque[float] = deque(maxlen=window)
        self._kappa = kappa
        self._lambd = lambd
        self._gamma = gamma
        self._alpha_min = alpha_min
        self._alpha_max = alpha_max

    def observe(self, failure_rate: float) -> None:
        """Add one step's failure rate, in [0, 1]: 1 - mean over prompts of their realised pass rates."""
        self._failure_rates.append(failure_rate)

    @property
    def failure_rate(self) -> float | None:
        """The last step's failure rate; None before any."""
        return self._failure_rates[-1] if self._failure_rates else None

    @property
    def failure_rate_smoothed(self) -> float:
        """Fbar, in [0, 1]; 0.5 before any observation."""
        if not self._failure_rates:
            return UNKNOWN_FAILURE_RATE
        return fsum(self._failure_rates) / len(self._failure_rates)

    @property
    def failure_rate_transformed(self) -> float:
        """F~, in [0, 1]."""
        failure_rate = self.failure_rate_smoothed
        if failure_rate > 0.5:
            return failure_rate
        odds = exp(self._gamma * (failure_rate - 0.5))  # the exponent is never positive: no overflow
        return odds / (1 + odds)

    @property
    def alpha(self) -> float:
        """First parameter of the preference density, in [alpha_min, alpha_max]."""
        return min(self._alpha_min + self._lambd * self.failure_rate_transformed, self._alpha_max)

    @property
    def beta(self) -> float:
        """Second parameter of the preference density, > 0."""
        return self._kappa - self.alpha

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"failure_rates": list(self._failure_rates)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing.
        """
        check_keys("capability state", state, ("failure_rates",))
        self._failure_rates = deque(state["failure_rates"], maxlen=self._failure_rates.maxlen)
