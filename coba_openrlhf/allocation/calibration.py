"""How well predicted pass rates agree with realised ones."""

# Legend: P = prompts, B = bins.

import numpy as np
from numpy.typing import NDArray

NUM_BINS = 10


def expected_calibration_error(
    pass_rate_P: NDArray[np.float64], successes_P: NDArray[np.int64], rollouts_P: NDArray[np.int64]
) -> float:
    """Mean over rollouts of ``|predicted - realised|`` within ten equal bins of the prediction, in [0, 1].

    In each bin, the mean prediction and the success share, both over rollouts, are compared; bins weigh as many
    rollouts as they hold (Naeini et al., 2015).

    Args:
        pass_rate_P: ``[P]``, predictions in [0, 1].
        successes_P: ``[P]``, successful rollouts, in [0, rollouts].
        rollouts_P: ``[P]``, rollouts, >= 1.
    """
    bin_P = np.minimum((pass_rate_P * NUM_BINS).astype(np.int64), NUM_BINS - 1)
    # n_b * |mean prediction - share| = |sum of expected successes - successes|: no division by empty bins.
    surplus_B = np.bincount(bin_P, weights=rollouts_P * pass_rate_P - successes_P, minlength=NUM_BINS)
    return float(np.abs(surplus_B).sum() / rollouts_P.sum())
