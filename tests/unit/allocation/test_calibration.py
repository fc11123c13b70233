"""Expected calibration error."""

import numpy as np
import pytest

from coba_openrlhf.allocation.calibration import expected_calibration_error


def test_perfect_predictions_have_no_error():
    assert expected_calibration_error(np.array([0.0, 0.5, 1.0]), np.array([0, 4, 8]), np.array([8, 8, 8])) == 0


def test_bins_are_weighted_by_rollouts():
    # Bin of 0.25: 10 rollouts, share 0.5, off by 0.25. Bin of 1.0 (the last one): 30 rollouts, 0.8, off by 0.2.
    error = expected_calibration_error(np.array([0.25, 1.0]), np.array([5, 24]), np.array([10, 30]))
    assert error == pytest.approx((10 * 0.25 + 30 * 0.2) / 40)


def test_within_a_bin_rollouts_are_pooled():
    # Mean prediction (8 * 0.52 + 2 * 0.57) / 10 = 0.53 against 6 of 10: the errors of the two prompts cancel partly.
    error = expected_calibration_error(np.array([0.52, 0.57]), np.array([6, 0]), np.array([8, 2]))
    assert error == pytest.approx(0.07)
