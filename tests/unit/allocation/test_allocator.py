"""The stateful allocator: budgets from what has been observed, numbers to be logged, clear words for wrong calls."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf import AllocationConfig, Allocator, allocate_greedy
from coba_openrlhf.allocation import STRATEGY_NAMES
from coba_openrlhf.allocation.solvers.heap import _heap_kernel
from coba_openrlhf.allocation.solvers.threshold import _threshold_kernel

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")

ALLOCATION_METRICS = {
    "budget_min", "budget_mean", "budget_max", "budget_gini", "unseen_rate", "solve_seconds", "fallback",
}  # fmt: skip
OBSERVATION_METRICS = {
    "failure_rate", "failure_rate_smoothed", "effective_group_rate", "all_correct_rate", "all_wrong_rate",
    "calibration_error", "brier",
}  # fmt: skip


def rows(**outcomes):
    """``a=(successes, rollouts)`` as prompt ids and scores, one row per rollout."""
    prompt_ids, scores = [], []
    for prompt_id, (successes, rollouts) in outcomes.items():
        prompt_ids += [prompt_id] * rollouts
        scores += [1.0] * successes + [0.0] * (rollouts - successes)
    return prompt_ids, scores


def test_metrics_of_a_worked_example():
    allocator = Allocator(AllocationConfig(capability_window=2))
    allocator.observe(*rows(a=(4, 4)))
    allocator.allocate(["a", "b", "c", "d"], 24)
    # alpha and beta are those that made these budgets: the failure rate was 0 then.
    sigmoid = 1 / (1 + math.exp(5))
    assert allocator.metrics()["alpha"] == pytest.approx(1 + 8 * sigmoid)
    allocator.observe(*rows(a=(3, 4), b=(0, 4), c=(2, 2), d=(1, 2)))
    metrics = allocator.metrics()
    # Realised 3/4, 0, 1, 1/2: mean over prompts 0.5625, whatever their number of rollouts.
    assert metrics["failure_rate"] == pytest.approx(0.4375)
    assert metrics["failure_rate_smoothed"] == pytest.approx(0.21875)
    assert metrics["alpha"] == pytest.approx(1 + 8 * sigmoid)
    assert metrics["beta"] == pytest.approx(10 - 8 * sigmoid)
    assert metrics["tau"] == 5.0 and metrics["fallback"] == 0.0
    assert metrics["effective_group_rate"] == 0.5
    assert metrics["all_correct_rate"] == metrics["all_wrong_rate"] == 0.25
    assert metrics["unseen_rate"] == 0.75
    # a: 1.0 predicted, 3 of 4. The others: 0.5 predicted, 3 of 8.
    assert metrics["calibration_error"] == pytest.approx((4 * 0.25 + 8 * 0.125) / 12)
    assert metrics["brier"] == pytest.approx((1 + 8 * 0.25) / 12)
    # Only a had a history: 1.0 predicted, and 1 the plain mean.
    assert metrics["brier_seen"] == metrics["brier_prior"] == pytest.approx(0.25)
    assert metrics["reliability_predicted_5"] == 0.5 and metrics["reliability_realised_5"] == 0.375
    assert metrics["reliability_predicted_9"] == 1.0 and metrics["reliability_realised_9"] == 0.75
    assert metrics["budget_mean"] == 6
    assert metrics["budget_min"] == 2 and type(metrics["budget_min"]) is int
    assert metrics["budget_max"] == 8 and type(metrics["budget_max"]) is int
    assert metrics["budget_gini"] == pytest.approx(0.1875)  # budgets 2, 8, 7, 7
    assert metrics["shadow_price"] > 0 and metrics["solve_seconds"] > 0
    reliability = {f"reliability_{kind}_{b}" for kind in ("predicted", "realised") for b in (5, 9)}
    rule = {"alpha", "beta", "tau", "shadow_price", "brier_seen", "brier_prior"}
    assert set(metrics) == ALLOCATION_METRICS | OBSERVATION_METRICS | reliability | rule
    json.dumps(metrics, allow_nan=False)


def test_metrics_that_are_not_known_yet_are_absent():
    allocator = Allocator(AllocationConfig())
    assert allocator.metrics() == {}
    allocator.allocate(["a"], 2)  # nothing above the minimum: no shadow price
    assert set(allocator.metrics()) == ALLOCATION_METRICS | {"alpha", "beta", "tau"}
    assert allocator.metrics()["alpha"] == 5.0


def test_uniform_has_no_preference_density():
    allocator = Allocator(AllocationConfig(strategy="uniform"))
    allocator.allocate(["a", "b"], 8)
    allocator.observe(*rows(a=(1, 4), b=(4, 4)))
    reliability = {"reliability_predicted_5", "reliability_realised_5"}
    assert set(allocator.metrics()) == ALLOCATION_METRICS | OBSERVATION_METRICS | reliability
    assert allocator.metrics()["failure_rate"] == 0.375


def test_coba_uses_every_setting():
    config = AllocationConfig(
        tau=7.0, kappa=15.0, lambd=4.0, alpha_min=2.0, budget_min=1, budget_max=20, unseen_pass_rate=0.5
    )
    allocator = Allocator(config)
    allocator.observe([1] * 4 + [2] * 4, [1, 0, 0, 0, 0, 0, 0, 0])  # failure rate 7/8: alpha = 2 + 4 * 7/8
    allocation = allocator.allocate([1, 3], 20)
    expected = allocate_greedy([0.25, 0.5], 20, alpha=5.5, beta=9.5, tau=7.0, budget_min=1, budget_max=20)
    assert allocation.budget_P.tolist() == expected.budget_P.tolist()
    assert allocation.shadow_price == expected.shadow_price
    assert allocation.pass_rate_P.tolist() == [0.25, 0.5]


def test_coba_clips_pass_rates_to_the_configured_eps():
    def shadow_price(eps):
        allocator = Allocator(AllocationConfig(eps=eps))
        allocator.observe(["a", "b"], [0, 1])
        return allocator.allocate(["a", "b"], 20).shadow_price

    expected = allocate_greedy([0.2, 0.8], 20, alpha=5.0, beta=6.0).shadow_price
    assert shadow_price(0.2) == pytest.approx(expected, rel=1e-12)
    assert shadow_price(0.01) != pytest.approx(expected, rel=1e-3)


def test_failing_policy_gets_easy_prompts_and_succeeding_policy_hard_ones():
    def budgets(successes, **config):
        allocator = Allocator(AllocationConfig(**config))
        for _ in range(20):
            allocator.observe(*rows(other=(successes, 10)))
        allocator.observe(*rows(hard=(2, 10), easy=(8, 10)))
        return allocator.allocate(["hard", "easy"], 32).budget_P

    failing, succeeding = budgets(0), budgets(10)
    assert failing[1] > failing[0] and succeeding[0] > succeeding[1]
    failing, succeeding = (budgets(successes, strategy="explore_then_exploit") for successes in (0, 10))
    assert failing[0] > failing[1] and succeeding[1] > succeeding[0]


def test_linear_decay_counts_allocations():
    allocator = Allocator(AllocationConfig(strategy="linear_decay", decay_steps=4, alpha_min=2.0))
    alphas = []
    for _ in range(6):
        allocator.allocate(["a", "b"], 8)
        alphas.append(allocator.metrics()["alpha"])
    assert alphas == [10.0, 8.0, 6.0, 4.0, 2.0, 2.0]


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


def test_rollouts_of_a_prompt_need_not_be_adjacent():
    apart, together = Allocator(AllocationConfig()), Allocator(AllocationConfig())
    apart.observe(["a", "b", "a", "b", "a"], [1, 0, 0, 1, 0])
    together.observe(["a", "a", "a", "b", "b"], [1, 0, 0, 0, 1])
    assert apart.state_dict() == together.state_dict()


def test_score_rule_reaches_estimates_and_capability():
    allocator = Allocator(AllocationConfig(success_rule="score"))
    allocator.observe(["a", "a", "b"], [0.25, 0.5, 1.0])
    assert allocator.allocate(["a", "b"], 8).pass_rate_P.tolist() == [0.375, 1.0]
    assert allocator.metrics()["failure_rate"] == pytest.approx(1 - (0.375 + 1) / 2)


@st.composite
def runs(draw):
    """A rule, a history with all pass rates different, and a feasible batch."""
    num_prompts = draw(st.integers(1, 24))
    low, width = draw(st.integers(3, 5)), draw(st.integers(0, 30))
    total = draw(st.integers(num_prompts * low, num_prompts * (low + width)))
    return draw(st.sampled_from(STRATEGY_NAMES)), num_prompts, low, low + width, total, draw(st.integers(0, 2**32 - 1))


@given(runs())
@settings(max_examples=300, deadline=None, derandomize=True)
@pytest.mark.filterwarnings("ignore:budget_max lets one prompt")
def test_sum_bounds_and_order_for_every_rule(run):
    strategy, num_prompts, low, high, total, seed = run
    rng = np.random.default_rng(seed)
    allocator = Allocator(AllocationConfig(strategy=strategy, budget_min=low, budget_max=high, success_rule="score"))
    ids, order_P = list(range(num_prompts)), rng.permutation(num_prompts)
    allocator.observe(
        [*ids, *ids], rng.uniform(0.02, 0.98, 2 * num_prompts), num_tokens=rng.uniform(1, 99, 2 * len(ids))
    )
    budget_P = allocator.allocate(ids, total).budget_P
    assert budget_P.dtype == np.int64 and budget_P.sum() == total
    assert budget_P.min() >= low and budget_P.max() <= high
    permuted_P = allocator.allocate(order_P.tolist(), total).budget_P
    if strategy in ("uniform", "last_outcome"):  # equal worth: the first come first
        assert sorted(permuted_P) == sorted(budget_P)
    elif strategy != "linear_decay":  # whose second allocation is another step
        assert permuted_P.tolist() == budget_P[order_P].tolist()


@pytest.mark.parametrize("wrong", ["x", None, 3, {"strategy": "coba"}, AllocationConfig])
def test_configuration_of_another_type_is_refused(wrong):
    with pytest.raises(ValueError, match="config must be an AllocationConfig, got"):
        Allocator(wrong)


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
        (np.array([["a"]]), 12, "prompt_ids", "must be str or int", "array(['a']"),
        (["a", "b"], 3, "total_budget", "must be >= prompts * budget_min", "3 < 2 * 2 = 4"),
        (["a", "b"], 257, "total_budget", "must be <= prompts * budget_max", "257 > 2 * 128 = 256"),
        (["a", "b"], 8.0, "total_budget", "must be an integer", "8.0"),
        (["a", "b"], math.nan, "total_budget", "must be an integer", "nan"),
        (["a", "b"], True, "total_budget", "must be an integer", "True"),
        (["a", "b"], -8, "total_budget", "must be an integer >= 0", "-8"),
        (["a", "b"], 10**30, "total_budget", "must be an integer in [0, 1,000,000,000,000]", str(10**30)),
    ],
)
@pytest.mark.parametrize("strategy", ["coba", "uniform"])
def test_wrong_requests_are_named(strategy, prompt_ids, total, argument, rule, shown):
    with pytest.raises(ValueError) as raised:
        Allocator(AllocationConfig(strategy=strategy)).allocate(prompt_ids, total)
    message = str(raised.value)
    assert message.startswith(argument) and rule in message and shown in message


@pytest.mark.parametrize(
    ("norms", "rule"),
    [
        ([1.0], r"one entry per prompt id, got shape \(1,\) for 2"),
        ([[1.0, 1.0]], r"one entry per prompt id, got shape \(1, 2\) for 2"),
        (1.0, r"one entry per prompt id, got shape \(\) for 2"),
        ([1.0, -1.0], r"lie in \[0, 1e\+09\], got -1.0 at index 1"),
        ([math.nan, 1.0], r"lie in \[0, 1e\+09\], got nan at index 0"),
        ([math.inf, 1.0], r"lie in \[0, 1e\+09\], got inf at index 0"),
        (["1", "1"], "hold real numbers"),
        ([None, 1.0], "hold real numbers"),
        ([[1.0], [1.0, 2.0]], "be a one-dimensional array of numbers"),
    ],
)
def test_wrong_gradient_norms_are_named(norms, rule):
    allocator = Allocator(AllocationConfig(strategy="gvm"))
    with pytest.raises(ValueError, match=f"gradient_norms must (have )?{rule}"):
        allocator.allocate(["a", "b"], 8, gradient_norms=norms)
    assert allocator.state_dict() == Allocator(AllocationConfig(strategy="gvm")).state_dict()


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((["a"], [math.nan]), {}, "scores must be finite"),
        ((["a"], [1.5]), {}, r"scores must lie in \[0, 1\]"),
        (([], []), {}, "prompt_ids must not be empty"),
        ((["a"], [1.0]), {"num_tokens": [0]}, "num_tokens must lie in"),
        ((["a"], [1.0]), {"policy_version": -1}, "policy_version must be an integer >= 0, got -1"),
        ((["a"], [1.0]), {"policy_version": 1.0}, "policy_version must be an integer >= 0, got 1.0"),
        ((["a"], [1.0]), {"policy_version": True}, "policy_version must be an integer >= 0, got True"),
        ((["a"], [1.0]), {"policy_version": 10**13}, "policy_version must be an integer in"),
    ],
)
def test_wrong_observations_change_nothing(arguments, options, message):
    allocator = Allocator(AllocationConfig())
    allocator.observe(["a"], [1])
    before = allocator.state_dict(), allocator.metrics()
    with pytest.raises(ValueError, match=message):
        allocator.observe(*arguments, **options)
    assert (allocator.state_dict(), allocator.metrics()) == before


@pytest.mark.parametrize("strategy", STRATEGY_NAMES)
@pytest.mark.parametrize("config", [{}, {"budget_min": 3, "budget_max": 3}, {"budget_max": 3}, {"budget_min": 9}])
def test_warm_up_leaves_no_trace(strategy, config):
    allocator = Allocator(AllocationConfig(strategy=strategy, **config))
    before = allocator.state_dict(), allocator.metrics()
    allocator.warm_up()
    assert (allocator.state_dict(), allocator.metrics()) == before


SOLVED = [name for name in STRATEGY_NAMES if name not in ("uniform", "reinforce_ada", "gvm", "duet")]


@pytest.mark.parametrize("strategy", SOLVED)
@pytest.mark.parametrize("budget_max", [3, 128])
def test_warm_up_runs_both_solvers(strategy, budget_max, monkeypatch):
    called = []
    for kernel, module in ((_heap_kernel, "heap"), (_threshold_kernel, "threshold")):

        def count(*arguments, kernel=kernel, module=module):
            called.append(module)
            return kernel(*arguments)

        monkeypatch.setattr(f"coba_openrlhf.allocation.solvers.{module}.{kernel.__name__}", count)
    Allocator(AllocationConfig(strategy=strategy, budget_max=budget_max)).warm_up()
    assert set(called) == {"heap", "threshold"}
