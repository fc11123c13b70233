"""How well predicted pass rates agree with realised ones."""

# Legend: P = prompts, B = bins.

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NUM_BINS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions of one step against what happened.

    Attributes:
        rollouts_B: float64 ``[B]``, rollouts in ten equal bins of the prediction.
        predicted_B: float64 ``[B]``, mean prediction over the rollouts of a bin; NaN in empty bins.
        realised_B: float64 ``[B]``, share of successes among them; NaN in empty bins.
        brier: Mean over rollouts of ``(prediction - outcome)^2``, in [0, 1] (Brier, 1950).
    """

    rollouts_B: NDArray[np.float64]
    predicted_B: NDArray[np.float64]
    realised_B: NDArray[np.float64]
    brier: float

    @property
    def expected_error(self) -> float:
        """Mean over rollouts of ``|predicted - realised|`` within the bins, in [0, 1] (Naeini et al., 2015)."""
        gap_B = np.nan_to_num(np.abs(self.predicted_B - self.realised_B))
        return float((self.rollouts_B * gap_B).sum() / self.rollouts_B.sum())

    def metrics(self) -> dict[str, float]:
        """All of it by name; empty bins are absent."""
        metrics = {"calibration_error": self.expected_error, "brier": self.brier}
        for b in np.flatnonzero(self.rollouts_B):
            metrics[f"reliability_predicted_{b}"] = float(self.predicted_B[b])
            metrics[f"reliability_realised_{b}"] = float(self.realised_B[b])
        return metrics


def calibrate(
    pass_rate_P: NDArray[np.float64], success_P: NDArray[np.float64], rollouts_P: NDArray[np.float64]
) -> Calibration:
    """Compare predictions with outcomes.

    Args:
        pass_rate_P: ``[P]``, predictions in [0, 1].
        success_P: ``[P]``, successes, in [0, rollouts]; fractions of a success count as that many.
        rollouts_P: ``[P]``, rollouts, >= 1.
    """
    bin_P = np.minimum((pass_rate_P * NUM_BINS).astype(np.int64), NUM_BINS - 1)

    def sum_B(weight_P: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(bin_P, weights=weight_P, minlength=NUM_BINS).astype(np.float64)

    rollouts_B = sum_B(rollouts_P)
    with np.errstate(invalid="ignore"):
        predicted_B, realised_B = sum_B(rollouts_P * pass_rate_P) / rollouts_B, sum_B(success_P) / rollouts_B
    return Calibration(rollouts_B, predicted_B, realised_B, brier_score(pass_rate_P, success_P, rollouts_P))


def brier_score(
    pass_rate_P: NDArray[np.float64], success_P: NDArray[np.float64], rollouts_P: NDArray[np.float64]
) -> float:
    """Mean over rollouts of ``(prediction - outcome)^2``; arguments as for ``calibrate``."""
    failure_P = rollouts_P - success_P
    squares_P = success_P * (1 - pass_rate_P) ** 2 + failure_P * pass_rate_P**2
    return float(squares_P.sum() / rollouts_P.sum())
