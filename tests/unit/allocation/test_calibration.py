"""Predicted against realised pass rates, by numbers worked out by hand."""

import math

import numpy as np
import pytest

from coba_openrlhf.allocation.calibration import brier_score, calibrate


def test_perfect_predictions_have_no_error():
    done = calibrate(np.array([0.0, 0.5, 1.0]), np.array([0.0, 4, 8]), np.array([8.0, 8, 8]))
    assert done.expected_error == 0
    assert done.brier == pytest.approx((0 + 8 * 0.25 + 0) / 24)


def test_bins_are_weighted_by_rollouts():
    # Bin of 0.25: 10 rollouts, share 0.5, off by 0.25. Bin of 1.0 (the last one): 30 rollouts, 0.8, off by 0.2.
    done = calibrate(np.array([0.25, 1.0]), np.array([5.0, 24]), np.array([10.0, 30]))
    assert done.expected_error == pytest.approx((10 * 0.25 + 30 * 0.2) / 40)
    assert done.brier == pytest.approx((5 * 0.75**2 + 5 * 0.25**2 + 6 * 1.0) / 40)
    assert done.rollouts_B.tolist() == [0, 0, 10, 0, 0, 0, 0, 0, 0, 30]
    assert done.metrics() == pytest.approx(
        {
            "calibration_error": 0.2125,
            "brier": done.brier,
            "reliability_predicted_2": 0.25,
            "reliability_realised_2": 0.5,
            "reliability_predicted_9": 1.0,
            "reliability_realised_9": 0.8,
        }
    )


def test_within_a_bin_rollouts_are_pooled():
    # Mean prediction (8 * 0.52 + 2 * 0.57) / 10 = 0.53 against 6 of 10: the errors of the two prompts cancel partly.
    done = calibrate(np.array([0.52, 0.57]), np.array([6.0, 0]), np.array([8.0, 2]))
    assert done.expected_error == pytest.approx(0.07)
    assert done.predicted_B[5] == pytest.approx(0.53) and done.realised_B[5] == pytest.approx(0.6)
    assert np.isnan(done.predicted_B[[0, 4, 6]]).all()


def test_agrees_with_a_loop_over_rollouts():
    rng = np.random.default_rng(3)
    predicted_P = rng.uniform(size=50)
    rollouts_P = rng.integers(1, 20, 50)
    success_P = rng.binomial(rollouts_P, predicted_P**2)
    rows = [
        (p, outcome)
        for p, s, n in zip(predicted_P, success_P, rollouts_P, strict=True)
        for outcome in [1] * s + [0] * (n - s)
    ]
    bins = [[row for row in rows if b <= 10 * row[0] < b + 1] for b in range(10)]
    error = sum(abs(sum(p - outcome for p, outcome in rows_b)) for rows_b in bins) / len(rows)
    done = calibrate(predicted_P, success_P.astype(float), rollouts_P.astype(float))
    assert done.expected_error == pytest.approx(error, rel=1e-12)
    assert done.brier == pytest.approx(math.fsum((p - outcome) ** 2 for p, outcome in rows) / len(rows), rel=1e-12)


def test_fractions_of_a_success_count_as_that_many():
    # 1.5 of 3 at 0.5: as much in favour as against.
    assert brier_score(np.array([0.5]), np.array([1.5]), np.array([3.0])) == pytest.approx(0.25)
    assert brier_score(np.array([0.9]), np.array([1.5]), np.array([3.0])) == pytest.approx((0.01 + 0.81) / 2)
