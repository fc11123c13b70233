"""Bootstrap intervals against exact enumeration and the normal approximation."""

import itertools
import math

import numpy as np
import pytest

from coba_openrlhf.evaluation.intervals import RESAMPLES, bootstrap_mean, t_mean, t_quantile


def test_three_problems_against_all_resamples():
    """All 27 resamples of three problems, each as likely: the interval's ends are quantiles of their means."""
    values = [0.0, 0.25, 1.0]
    means = np.sort([np.mean(draw) for draw in itertools.product(values, repeat=3)])
    interval = bootstrap_mean(values, confidence=0.8)
    assert interval.value == pytest.approx(np.mean(values))
    assert interval.low == pytest.approx(means[math.ceil(0.1 * 27) - 1])
    assert interval.high == pytest.approx(means[math.ceil(0.9 * 27) - 1])


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.9])
def test_many_problems_against_the_normal_approximation(rate):
    values = np.random.default_rng(1).binomial(8, rate, 800) / 8
    interval = bootstrap_mean(values)
    half = 1.959964 * values.std() / math.sqrt(len(values))
    assert interval.low == pytest.approx(values.mean() - half, abs=0.04 * half)
    assert interval.high == pytest.approx(values.mean() + half, abs=0.04 * half)


def test_covers_the_truth_about_as_often_as_it_says():
    rng = np.random.default_rng(2)
    inside = 0
    for trial in range(300):
        interval = bootstrap_mean(rng.binomial(4, 0.4, 60) / 4, seed=trial, resamples=1000)
        inside += interval.low <= 0.4 <= interval.high
    assert 0.90 < inside / 300 < 0.98


def test_is_the_same_for_a_seed_and_contains_the_mean():
    values = np.random.default_rng(0).random(37)
    assert bootstrap_mean(values, seed=3) == bootstrap_mean(values, seed=3)
    assert bootstrap_mean(values, seed=3) != bootstrap_mean(values, seed=4)
    interval = bootstrap_mean(values)
    assert interval.low < interval.value < interval.high


def test_parts_do_not_change_the_result(monkeypatch):
    from coba_openrlhf.evaluation import intervals

    values = np.random.default_rng(0).random(50)
    whole = bootstrap_mean(values)
    monkeypatch.setattr(intervals, "_CELLS", 50 * (RESAMPLES // 7))
    assert bootstrap_mean(values) == whole


def test_one_problem_says_nothing_about_the_spread():
    interval = bootstrap_mean([0.5])
    assert interval.value == 0.5 and math.isnan(interval.low) and math.isnan(interval.high)


@pytest.mark.parametrize("values", [[], [[0.5]], [0.5, float("nan")], [0.5, float("inf")]])
def test_unusable_values_are_refused(values):
    with pytest.raises(ValueError, match="an interval needs"):
        bootstrap_mean(values)


@pytest.mark.parametrize(
    ("degrees", "quantile"),
    [
        (1, 12.7062),
        (2, 4.30265),
        (3, 3.18245),
        (4, 2.77645),
        (5, 2.57058),
        (10, 2.22814),
        (30, 2.04227),
        (100, 1.98397),
    ],
)
def test_quantiles_of_student_against_the_printed_table(degrees, quantile):
    assert t_quantile(0.975, degrees) == pytest.approx(quantile, abs=2e-4)
    assert t_quantile(0.5, degrees) == pytest.approx(0.0, abs=1e-6)


def test_interval_of_three_seeds_by_hand():
    interval = t_mean([0.1, 0.2, 0.3])
    assert interval.value == pytest.approx(0.2)
    assert (
        interval.high - 0.2
        == pytest.approx(0.2 - interval.low)
        == pytest.approx(4.30265 * 0.1 / math.sqrt(3), abs=1e-4)
    )
    assert math.isnan(t_mean([0.1]).low)
    with pytest.raises(ValueError, match="needs finite values"):
        t_mean([0.1, float("nan")])
