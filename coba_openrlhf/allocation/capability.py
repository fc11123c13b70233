"""The policy's capability, as the recent failure rate, and the preference density that follows from it."""

# Legend: P = prompts, D = difficulty bins.

from collections import deque
from collections.abc import Mapping
from math import fsum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_keys, check_unit_interval
from .config import AllocationConfig

# Before anything is known the policy is taken to fail half the time: alpha and beta near their middle.
UNKNOWN_FAILURE_RATE = 0.5


class CapabilityWindow:
    """Moving average of the failure rate, of all prompts and by difficulty.

    Args:
        window: Steps averaged, >= 1.
        num_bins: Equal bins of the pass rate with a failure rate each, >= 1.
    """

    def __init__(self, window: int, num_bins: int = 1) -> None:
        self._failure_rates: deque[float] = deque(maxlen=window)
        self._bin_rates: deque[list[float | None]] = deque(maxlen=window)
        self._num_bins = num_bins

    def observe(self, predicted_P: NDArray[np.float64], realised_P: NDArray[np.float64]) -> None:
        """Add one step.

        Args:
            predicted_P: ``[P]``, pass rates before the step, in [0, 1]: they place a prompt into its bin.
            realised_P: ``[P]``, pass rates of the step, in [0, 1].
        """
        # The mean over prompts, not over rollouts.
        self._failure_rates.append(1 - float(np.mean(realised_P)))
        if self._num_bins > 1:
            bin_P = self._bin_of(predicted_P)
            count_D = np.bincount(bin_P, minlength=self._num_bins)
            sum_D = np.bincount(bin_P, weights=1 - realised_P, minlength=self._num_bins)
            self._bin_rates.append([float(s / c) if c else None for s, c in zip(sum_D, count_D, strict=True)])

    @property
    def failure_rate(self) -> float | None:
        """The last step's failure rate, 1 - mean over prompts of their realised pass rates; None before any."""
        return self._failure_rates[-1] if self._failure_rates else None

    @property
    def failure_rate_smoothed(self) -> float:
        """Fbar, in [0, 1]; 0.5 before any observation."""
        if not self._failure_rates:
            return UNKNOWN_FAILURE_RATE
        return fsum(self._failure_rates) / len(self._failure_rates)

    def failure_rate_of(self, pass_rate_P: NDArray[np.float64]) -> NDArray[np.float64]:
        """Fbar of prompts of the same difficulty, ``[P]``; that of all prompts for a bin nobody has been in."""
        if self._num_bins == 1:
            return np.full(len(pass_rate_P), self.failure_rate_smoothed)
        rate_D = np.full(self._num_bins, self.failure_rate_smoothed)
        for d in range(self._num_bins):
            known = [rates[d] for rates in self._bin_rates if rates[d] is not None]
            if known:
                rate_D[d] = fsum(known) / len(known)  # type: ignore[arg-type]  # None has been left out
        return rate_D[self._bin_of(pass_rate_P)]

    def _bin_of(self, pass_rate_P: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.minimum((pass_rate_P * self._num_bins).astype(np.int64), self._num_bins - 1)

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"failure_rates": list(self._failure_rates), "bin_rates": [list(rates) for rates in self._bin_rates]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, a rate is no number in [0, 1], or there are more of them than steps.
        """
        check_keys("capability state", state, ("failure_rates", "bin_rates"))
        rates, bin_rates = state["failure_rates"], state["bin_rates"]
        num_binned = len(rates) if isinstance(rates, list) and self._num_bins > 1 else 0
        if (
            not isinstance(rates, list)
            or not isinstance(bin_rates, list)
            or not all(isinstance(row, list) for row in bin_rates)
            or len(rates) > (self._failure_rates.maxlen or 0)
            or len(bin_rates) != num_binned
        ):
            raise ValueError(
                f"capability state must be lists of at most {self._failure_rates.maxlen} steps, "
                f"got failure_rates {rates!r} and bin_rates {bin_rates!r}"
            )
        if rates:
            check_unit_interval("capability state failure_rates", rates, "iuf")
        for row in bin_rates:
            known = [rate for rate in row if rate is not None]
            if len(row) != self._num_bins:
                raise ValueError(f"capability state bin_rates must have {self._num_bins} bins, got {len(row)}")
            if known:
                check_unit_interval("capability state bin_rates", known, "iuf")
        rates = [float(rate) for rate in rates]
        self._failure_rates = deque(rates, maxlen=self._failure_rates.maxlen)
        self._bin_rates = deque(bin_rates, maxlen=self._bin_rates.maxlen)


def transform_failure_rate(failure_rate: NDArray[np.float64] | float, gamma: float) -> NDArray[np.float64]:
    """F~ of a failure rate, in [0, 1]: itself above one half, ``sigmoid(gamma * (F - 0.5))`` below."""
    rate = np.asarray(failure_rate, np.float64)
    odds = np.exp(gamma * np.minimum(rate - 0.5, 0.0))  # the exponent is never positive: no overflow
    return np.where(rate > 0.5, rate, odds / (1 + odds))


def preference_alpha(failure_rate: NDArray[np.float64] | float, config: AllocationConfig) -> NDArray[np.float64]:
    """First parameter of the preference density under a failure rate (arXiv 2602.03048).

        F~    = F                             if F > 0.5
                sigmoid(gamma * (F - 0.5))    otherwise
        alpha = clip(alpha_min + lambd * F~, alpha_min, alpha_max);  beta = kappa - alpha

    A failing policy gets a large alpha: easy prompts are preferred (exploit). A succeeding one gets a small
    alpha: hard prompts are preferred (explore).
    """
    transformed = transform_failure_rate(failure_rate, config.gamma)
    return np.minimum(config.alpha_min + config.lambd * transformed, config.alpha_limit)
