"""The stateful allocator."""

import json
import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator

ALLOCATION_METRICS = {"budget_min", "budget_mean", "budget_max", "budget_gini", "unseen_rate", "solve_seconds"}
OBSERVATION_METRICS = {
    "failure_rate",
    "failure_rate_smoothed",
    "effective_group_rate",
    "all_correct_rate",
    "all_wrong_rate",
    "calibration_error",
}


def rows(**outcomes):
    """``a=(successes, rollouts)`` as prompt ids and scores, one row per rollout."""
    prompt_ids, scores = [], []
    for prompt_id, (successes, rollouts) in outcomes.items():
        prompt_ids += [prompt_id] * rollouts
        scores += [1.0] * successes + [0.0] * (rollouts - successes)
    return prompt_ids, scores


def step(allocator, rng, prompt_ids):
    """One training step: allocate, draw outcomes, observe; returns the budgets."""
    allocation = allocator.allocate(prompt_ids, 8 * len(prompt_ids))
    prompt_R = np.repeat(np.arange(len(prompt_ids)), allocation.budget_P)
    score_R = rng.uniform(size=len(prompt_R)) < (prompt_R % 11) / 10
    allocator.observe([prompt_ids[prompt] for prompt in prompt_R], score_R)
    return allocation.budget_P.tolist(), allocation.shadow_price


def test_metrics_of_a_worked_example():
    allocator = Allocator(AllocationConfig(capability_window=2))
    allocator.observe(*rows(a=(4, 4)))
    allocator.allocate(["a", "b", "c", "d"], 24)
    allocator.observe(*rows(a=(3, 4), b=(0, 4), c=(2, 2), d=(1, 2)))
    metrics = allocator.metrics()
    # Realised 3/4, 0, 1, 1/2: mean over prompts 0.5625, whatever their number of rollouts.
    assert metrics["failure_rate"] == pytest.approx(0.4375)
    assert metrics["failure_rate_smoothed"] == pytest.approx(0.21875)
    sigmoid = 1 / (1 + math.exp(-10 * (0.21875 - 0.5)))
    assert metrics["alpha"] == pytest.approx(1 + 8 * sigmoid)
    assert metrics["beta"] == pytest.approx(10 - 8 * sigmoid)
    assert metrics["effective_group_rate"] == 0.5
    assert metrics["all_correct_rate"] == metrics["all_wrong_rate"] == 0.25
    assert metrics["unseen_rate"] == 0.75
    # a: 1.0 predicted, 3 of 4. The others: 0.5 predicted, 3 of 8.
    assert metrics["calibration_error"] == pytest.approx((4 * 0.25 + 8 * 0.125) / 12)
    assert metrics["budget_mean"] == 6
    assert metrics["budget_min"] == 2 and type(metrics["budget_min"]) is int
    assert metrics["budget_max"] == 8 and type(metrics["budget_max"]) is int
    assert metrics["budget_gini"] == pytest.approx(0.1875)  # budgets 2, 8, 7, 7
    assert metrics["shadow_price"] > 0 and metrics["solve_seconds"] > 0
    assert set(metrics) == ALLOCATION_METRICS | OBSERVATION_METRICS | {"alpha", "beta", "shadow_price"}
    json.dumps(metrics, allow_nan=False)


def test_metrics_that_are_not_known_yet_are_absent():
    allocator = Allocator(AllocationConfig())
    assert allocator.metrics() == {"alpha": 5.0, "beta": 6.0}
    allocator.allocate(["a"], 2)  # nothing above the minimum: no shadow price
    assert set(allocator.metrics()) == ALLOCATION_METRICS | {"alpha", "beta"}


def test_uniform_has_no_preference_density():
    allocator = Allocator(AllocationConfig(strategy="uniform"))
    allocator.allocate(["a", "b"], 8)
    allocator.observe(*rows(a=(1, 4), b=(4, 4)))
    assert set(allocator.metrics()) == ALLOCATION_METRICS | OBSERVATION_METRICS
    assert allocator.metrics()["failure_rate"] == 0.375


def test_str_and_int_ids_are_different_prompts():
    allocator = Allocator(AllocationConfig())
    allocator.observe(["1", "1", 1, 1], [1, 1, 0, 0])
    assert allocator.allocate(["1", 1, "2"], 9).pass_rate_P.tolist() == [1.0, 0.0, 0.5]


def test_numpy_ids_are_python_ids():
    allocator = Allocator(AllocationConfig())
    allocator.observe(np.array([3, 3]), np.array([1.0, 0.0], np.float32))
    assert allocator.allocate([3], 4).pass_rate_P.tolist() == [0.5]
    allocator.observe(np.array(["x", "x"]), [1, 1])
    assert json.loads(json.dumps(allocator.state_dict()))["pass_rate"]["prompt_ids"] == [3, "x"]


@pytest.mark.parametrize(("threshold", "pass_rate"), [(1.0, 0.25), (0.7, 0.5), (0.2, 0.75)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_graded_scores_count_from_the_threshold_on(threshold, pass_rate, dtype):
    allocator = Allocator(AllocationConfig(success_threshold=threshold))
    allocator.observe(["a"] * 4, np.array([1.0, 0.7, 0.2, 0.1], dtype))
    assert allocator.allocate(["a"], 4).pass_rate_P.tolist() == [pass_rate]


def test_rollouts_of_a_prompt_need_not_be_adjacent():
    apart, together = Allocator(AllocationConfig()), Allocator(AllocationConfig())
    apart.observe(["a", "b", "a", "b", "a"], [1, 0, 0, 1, 0])
    together.observe(["a", "a", "a", "b", "b"], [1, 0, 0, 0, 1])
    assert apart.state_dict() == together.state_dict()


def test_failing_policy_gets_easy_prompts_and_succeeding_policy_hard_ones():
    def budgets(successes):
        allocator = Allocator(AllocationConfig())
        for _ in range(20):
            allocator.observe(*rows(other=(successes, 10)))
        allocator.observe(*rows(hard=(2, 10), easy=(8, 10)))
        return allocator.allocate(["hard", "easy"], 32).budget_P

    failing, succeeding = budgets(0), budgets(10)
    assert failing[1] > failing[0]
    assert succeeding[0] > succeeding[1]


def test_state_through_json_continues_bit_for_bit():
    ids = [*(f"prompt-{number}" for number in range(20)), *range(20)]
    rng = np.random.default_rng(7)
    allocator = Allocator(AllocationConfig())
    for _ in range(13):
        step(allocator, rng, rng.permutation(np.array(ids, object))[:25].tolist())
    text = json.dumps(allocator.state_dict(), allow_nan=False)
    twin = Allocator(AllocationConfig())
    twin.load_state_dict(json.loads(text))
    assert json.dumps(twin.state_dict()) == text
    twin_rng = np.random.default_rng()
    twin_rng.bit_generator.state = rng.bit_generator.state
    for _ in range(8):
        steps = [
            step(one, one_rng, one_rng.permutation(np.array([*ids, "new"], object))[:25].tolist())
            for one, one_rng in ((allocator, rng), (twin, twin_rng))
        ]
        assert steps[0] == steps[1]
    assert json.dumps(twin.state_dict()) == json.dumps(allocator.state_dict())
    first, second = allocator.metrics(), twin.metrics()
    first.pop("solve_seconds"), second.pop("solve_seconds")
    assert first == second


def test_state_of_another_configuration_is_refused_by_field():
    state = Allocator(AllocationConfig(tau=7.0, budget_max=64)).state_dict()
    with pytest.raises(ValueError, match=r"changes in tau: 7\.0 -> 5\.0; budget_max: 64 -> 128"):
        Allocator(AllocationConfig()).load_state_dict(state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 2}, "version 1, got 2"),
        ({"version": None}, "got none for version"),
        ({"capability": None}, "got none for capability"),
        ({"pass_rate": None}, "got none for pass_rate"),
        ({"config": {}}, "allocator state config must have the keys strategy.*got none for strategy, tau"),
        ({"capability": {}}, "got none for failure_rates"),
        ({"pass_rate": {"prompt_ids": ["a"], "successes": [], "rollouts": []}}, r"\(1, 3\)"),
    ],
)
def test_broken_state_is_refused_and_changes_nothing(change, message):
    allocator = Allocator(AllocationConfig())
    allocator.observe(*rows(a=(1, 2)))
    before = json.dumps(allocator.state_dict())
    other = Allocator(AllocationConfig())
    other.observe(*rows(b=(0, 2)))
    state = {key: part for key, part in (other.state_dict() | change).items() if part is not None}
    with pytest.raises(ValueError, match=message):
        allocator.load_state_dict(state)
    assert json.dumps(allocator.state_dict()) == before


@pytest.mark.parametrize(
    ("prompt_ids", "total", "argument", "rule", "shown"),
    [
        (["a", "b", "a"], 12, "prompt_ids", "must be unique", "'a' 2 times"),
        ([], 0, "prompt_ids", "must not be empty", "0 ids"),
        ("abc", 12, "prompt_ids", "must be a sequence of str or int", "'abc'"),
        (3, 12, "prompt_ids", "must be a sequence of str or int", "3"),
        ([1, True], 12, "prompt_ids", "must be str or int", "True"),
        ([1.5], 12, "prompt_ids", "must be str or int", "1.5"),
        ([None], 12, "prompt_ids", "must be str or int", "None"),
        (["a", "b"], 3, "total_budget", "must be >= prompts * budget_min", "3 < 2 * 2 = 4"),
        (["a", "b"], 257, "total_budget", "must be <= prompts * budget_max", "257 > 2 * 128 = 256"),
        (["a", "b"], 8.0, "total_budget", "must be an integer", "8.0"),
        (["a", "b"], True, "total_budget", "must be an integer", "True"),
    ],
)
@pytest.mark.parametrize("strategy", ["coba", "uniform"])
def test_wrong_requests_are_named(strategy, prompt_ids, total, argument, rule, shown):
    with pytest.raises(ValueError) as raised:
        Allocator(AllocationConfig(strategy=strategy)).allocate(prompt_ids, total)
    message = str(raised.value)
    assert message.startswith(argument) and rule in message and shown in message


@pytest.mark.parametrize(
    ("prompt_ids", "scores", "argument", "rule", "shown"),
    [
        ([], [], "prompt_ids", "must not be empty", "0 ids"),
        (["a"], [], "scores", "must not be empty", "(0,)"),
        (["a", "a"], [1.0], "scores", "must have one entry per prompt id", "1 scores for 2 ids"),
        (["a", "a"], [1.0, math.nan], "scores", "must be finite", "nan at index 1"),
        (["a"], [1.5], "scores", "must lie in [0, 1]", "1.5 at index 0"),
        (["a"], [-1], "scores", "must lie in [0, 1]", "-1 at index 0"),
        (["a"], [None], "scores", "must hold real numbers", "None"),
        (["a"], ["1"], "scores", "must hold real numbers", "'1'"),
        (["a"], [[1.0]], "scores", "must be one-dimensional", "(1, 1)"),
        ([b"a"], [1.0], "prompt_ids", "must be str or int", "b'a'"),
    ],
)
def test_wrong_observations_are_named_and_change_nothing(prompt_ids, scores, argument, rule, shown):
    allocator = Allocator(AllocationConfig())
    before = allocator.state_dict()
    with pytest.raises(ValueError) as raised:
        allocator.observe(prompt_ids, scores)
    message = str(raised.value)
    assert message.startswith(argument) and rule in message and shown in message
    assert allocator.state_dict() == before


@pytest.mark.parametrize("config", [{}, {"strategy": "uniform"}, {"budget_min": 3, "budget_max": 3}, {"budget_min": 9}])
def test_warm_up_leaves_no_trace(config):
    allocator = Allocator(AllocationConfig(**config))
    before = allocator.state_dict(), allocator.metrics()
    allocator.warm_up()
    assert (allocator.state_dict(), allocator.metrics()) == before
