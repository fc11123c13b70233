"""avg@k and pass@k."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.evaluation.metrics import avg_at_k, pass_at_k


def test_one_of_four():
    score_NK = np.array([[0.0, 1.0, 0.0, 0.0]])
    assert avg_at_k(score_NK) == 0.25
    assert pass_at_k(score_NK, 4) == 1.0
    assert pass_at_k(score_NK, 1) == 0.25
    assert pass_at_k(score_NK, 2) == pytest.approx(0.5)


@pytest.mark.parametrize("k", [0, 5])
def test_impossible_k_is_refused(k):
    with pytest.raises(ValueError, match=f"got k = {k}, responses = 4"):
        pass_at_k(np.zeros((2, 4)), k)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=4), st.integers(1, 5))
def test_unbiased_over_all_subsets(right_NK, k):
    score_NK = np.array(right_NK, np.float64)
    enumerated = [subset.any() for row in score_NK for subset in map(np.array, itertools.combinations(row, k))]
    assert pass_at_k(score_NK, k) == pytest.approx(np.mean(enumerated))


@settings(deadline=None, derandomize=True)
@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=4))
def test_pass_at_one_is_avg_of_binary_scores(right_NK):
    score_NK = np.array(right_NK, np.float64)
    assert pass_at_k(score_NK, 1) == pytest.approx(avg_at_k(score_NK))


def test_unscored_and_partly_right_count_as_wrong():
    score_NK = np.array([[np.nan, 0.9], [1.0, np.nan]])
    assert pass_at_k(score_NK, 2) == 0.5
    assert avg_at_k(score_NK) == pytest.approx(1.9 / 4)
