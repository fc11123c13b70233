"""Scored rollouts, counted per prompt."""

import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig
from coba_openrlhf.allocation import count_outcomes

THRESHOLD, SCORE = AllocationConfig(), AllocationConfig(success_rule="score")


@pytest.mark.parametrize(("threshold", "successes"), [(1.0, 1), (0.7, 2), (0.2, 3), (1e-9, 4)])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_graded_scores_count_from_the_threshold_on(threshold, successes, dtype):
    config = AllocationConfig(success_threshold=threshold)
    observed = count_outcomes(["a"] * 4, np.array([1.0, 0.7, 0.2, 0.1], dtype), config)
    assert observed.success_P.tolist() == [successes] and observed.rollouts_P.tolist() == [4]


def test_score_rule_takes_the_score_for_a_share_of_a_success():
    observed = count_outcomes(["a", "b", "a", "c", "b", "c"], [0.25, 0.5, 0.75, 1.0, 0.5, 1.0], SCORE)
    assert observed.prompt_ids == ["a", "b", "c"]
    assert observed.success_P.tolist() == [1.0, 1.0, 2.0] and observed.rollouts_P.tolist() == [2, 2, 2]
    assert observed.pass_rate_P.tolist() == [0.5, 0.5, 1.0]
    # A group is mixed when its scores differ, whatever they are.
    assert observed.mixed_P.tolist() == [True, False, False]
    shares = {"effective_group_rate": 1 / 3, "all_correct_rate": 1 / 3, "all_wrong_rate": 0.0}
    assert observed.metrics() == pytest.approx(shares)


def test_rounding_makes_nobody_more_than_perfect():
    observed = count_outcomes(["a"] * 3 + ["b"] * 10, [1.0] * 3 + [0.1] * 10, SCORE)
    assert (observed.pass_rate_P <= 1).all() and not observed.mixed_P.any()


def test_threshold_rule_sees_mixed_groups_by_success():
    observed = count_outcomes(["a", "a", "b", "b", "c", "c"], [0.2, 0.9, 1, 0.9, 1, 1], THRESHOLD)
    assert observed.mixed_P.tolist() == [False, True, False]
    assert observed.metrics() == pytest.approx(
        {"effective_group_rate": 1 / 3, "all_correct_rate": 1 / 3, "all_wrong_rate": 1 / 3}
    )


def test_prompts_stay_in_order_of_appearance_with_their_type():
    observed = count_outcomes(["1", 1, "1", np.int64(1), "b"], [True, False, True, True, False], THRESHOLD)
    assert observed.prompt_ids == ["1", 1, "b"]
    assert observed.success_P.tolist() == [2, 1, 0] and observed.rollouts_P.tolist() == [2, 2, 1]
    assert observed.num_tokens_P is None


def test_tokens_are_averaged_over_the_rollouts_of_a_prompt():
    observed = count_outcomes(["a", "b", "a"], [1, 0, 0], THRESHOLD, np.array([10, 7, 30]))
    assert observed.num_tokens_P.tolist() == [20, 7]


@pytest.mark.parametrize("config", [THRESHOLD, SCORE])
@pytest.mark.parametrize(
    ("prompt_ids", "scores", "num_tokens", "message"),
    [
        ([], [], None, "prompt_ids must not be empty, got 0 ids"),
        (["a"], [], None, r"scores must not be empty, got shape \(0,\)"),
        (["a", "a"], [1.0], None, "scores must have one entry per prompt id, got 1 scores for 2 ids"),
        (["a", "a"], [1.0, math.nan], None, "scores must be finite, got nan at index 1"),
        (["a"], [math.inf], None, "scores must be finite, got inf at index 0"),
        (["a"], [1.5], None, r"scores must lie in \[0, 1\], got 1.5 at index 0"),
        (["a"], [-1], None, r"scores must lie in \[0, 1\], got -1 at index 0"),
        (["a"], [None], None, "scores must hold real numbers, got dtype object"),
        (["a"], ["1"], None, "scores must hold real numbers, got dtype <U1"),
        (["a"], [1j], None, "scores must hold real numbers, got dtype complex128"),
        (["a"], [[1.0]], None, r"scores must be one-dimensional, got shape \(1, 1\)"),
        (["a", "b"], [[1.0], [1.0, 2.0]], None, "scores must be a one-dimensional array of numbers"),
        ([b"a"], [1.0], None, "prompt_ids must be str or int, got b'a'"),
        ([True], [1.0], None, "prompt_ids must be str or int, got True"),
        ([1.5], [1.0], None, "prompt_ids must be str or int, got 1.5"),
        ([None], [1.0], None, "prompt_ids must be str or int, got None"),
        ([["a"]], [1.0], None, r"prompt_ids must be str or int, got \['a'\]"),
        ("ab", [1.0, 0.0], None, "prompt_ids must be a sequence of str or int, got 'ab'"),
        (3, [1.0], None, "prompt_ids must be a sequence of str or int, got 3"),
        (["a", "b"], [1, 0], [5, 0], r"num_tokens must lie in \(0, 1e\+09\], got 0.0 at index 1"),
        (["a", "b"], [1, 0], [5, -2], r"num_tokens must lie in \(0, 1e\+09\], got -2.0 at index 1"),
        (["a", "b"], [1, 0], [5, math.nan], r"num_tokens must lie in .* got nan at index 1"),
        (["a", "b"], [1, 0], [math.inf, 5], r"num_tokens must lie in .* got inf at index 0"),
        (["a", "b"], [1, 0], [5], r"num_tokens must have one entry per prompt id, got shape \(1,\) for 2"),
        (["a", "b"], [1, 0], 5, r"num_tokens must have one entry per prompt id, got shape \(\) for 2"),
        (["a", "b"], [1, 0], [[5, 5]], r"num_tokens must have one entry per prompt id, got shape \(1, 2\)"),
        (["a", "b"], [1, 0], ["5", "5"], "num_tokens must hold real numbers"),
        (["a", "b"], [1, 0], [True, True], "num_tokens must hold real numbers"),
        (["a", "b"], [1, 0], [[5], [5, 5]], "num_tokens must be a one-dimensional array of numbers"),
    ],
)
def test_wrong_observations_are_named(config, prompt_ids, scores, num_tokens, message):
    with pytest.raises(ValueError, match=message):
        count_outcomes(prompt_ids, scores, config, num_tokens)
