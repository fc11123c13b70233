"""``allocate_greedy``: optimal, exact, bounded, fair to order, and clear about wrong arguments."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.oracles import heapq_budgets, released_budgets
from coba_openrlhf import allocate_greedy
from coba_openrlhf.allocation.solvers.exact import best_budgets
from coba_openrlhf.allocation.value import value, value_gains

RULE = {"alpha": 5.8, "beta": 5.2}


@st.composite
def problems(draw):
    """Pass rates of small groups (many ties), a feasible total, bounds and a density."""
    pass_rate_P = draw(st.lists(st.integers(0, 16).map(lambda successes: successes / 16), min_size=1, max_size=30))
    budget_min = draw(st.integers(0, 4))
    budget_max = draw(st.integers(budget_min, 40))
    total = draw(st.integers(len(pass_rate_P) * budget_min, len(pass_rate_P) * budget_max))
    alpha = draw(st.floats(1, 10))
    arguments = {
        "alpha": alpha,
        "beta": 11 - alpha,
        "tau": draw(st.sampled_from([0.5, 5.0, 12.0])),
        "budget_min": budget_min,
        "budget_max": budget_max,
    }
    return pass_rate_P, total, arguments


def random_problem(rng):
    """A small problem without ties, for the oracles."""
    num_prompts = int(rng.integers(1, 9))
    low = int(rng.integers(0, 4))
    high = low + int(rng.integers(1, 21))
    total = int(rng.integers(num_prompts * low, num_prompts * high + 1))
    rule = {"alpha": rng.uniform(1, 10), "beta": rng.uniform(1, 10), "tau": rng.uniform(0.5, 12)}
    return rng.uniform(size=num_prompts), total, low, high, rule


def test_objective_equals_the_exact_optimum_on_200_problems():
    rng = np.random.default_rng(11)
    for _ in range(200):
        pass_rate_P, total, low, high, rule = random_problem(rng)
        greedy_P = allocate_greedy(pass_rate_P, total, budget_min=low, budget_max=high, **rule).budget_P
        exact_P = best_budgets(value(np.arange(low, high + 1), pass_rate_P[:, None], **rule), total, low)
        assert greedy_P.sum() == exact_P.sum() == total
        greedy, exact = (math.fsum(value(budget_P, pass_rate_P, **rule)) for budget_P in (greedy_P, exact_P))
        assert greedy == pytest.approx(exact, rel=1e-12, abs=1e-12)


def test_objective_equals_that_of_the_released_loop():
    rng = np.random.default_rng(12)
    for _ in range(50):
        pass_rate_P, total, low, high, rule = random_problem(rng)
        greedy_P = allocate_greedy(pass_rate_P, total, budget_min=low, budget_max=high, **rule).budget_P
        released_P = released_budgets(pass_rate_P, total, budget_min=low, budget_max=high, **rule)
        greedy, released = (math.fsum(value(budget_P, pass_rate_P, **rule)) for budget_P in (greedy_P, released_P))
        assert greedy == pytest.approx(released, rel=1e-12, abs=1e-12)


@given(problems())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_sum_bounds_and_budgets_of_the_twin(problem):
    pass_rate_P, total, arguments = problem
    allocation = allocate_greedy(pass_rate_P, total, **arguments)
    low, high = arguments["budget_min"], arguments["budget_max"]
    assert allocation.budget_P.dtype == np.int64
    assert allocation.budget_P.sum() == total
    assert allocation.budget_P.min() >= low and allocation.budget_P.max() <= high
    assert allocation.pass_rate_P.tolist() == pass_rate_P
    assert allocation.solve_seconds > 0
    rule = (arguments[name] for name in ("alpha", "beta", "tau"))
    intercept_P, slope_P = value_gains(np.array(pass_rate_P), *rule).param_KP
    twin = heapq_budgets(
        lambda i, budget: float(intercept_P[i] - slope_P[i] * budget), len(pass_rate_P), total, low, high
    )
    assert allocation.budget_P.tolist() == twin


@given(problems())
@settings(max_examples=100, deadline=None, derandomize=True)
def test_one_more_rollout_goes_to_one_prompt(problem):
    pass_rate_P, total, arguments = problem
    if total < len(pass_rate_P) * arguments["budget_max"]:
        before, after = (allocate_greedy(pass_rate_P, total + more, **arguments) for more in (0, 1))
        step_P = after.budget_P - before.budget_P
        assert step_P.min() >= 0 and step_P.sum() == 1
        assert math.isnan(before.shadow_price) or after.shadow_price <= before.shadow_price


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_permuting_prompts_permutes_budgets(seed):
    rng = np.random.default_rng(seed)
    pass_rate_P = rng.uniform(0.02, 0.98, 40)
    order_P = rng.permutation(40)
    budget_P = allocate_greedy(pass_rate_P, 640, **RULE).budget_P
    assert allocate_greedy(pass_rate_P[order_P], 640, **RULE).budget_P.tolist() == budget_P[order_P].tolist()


@given(problems(), st.sampled_from(["variance", "inverse_variance"]))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_solvers_agree(problem, saturation):
    pass_rate_P, total, arguments = problem
    done = {
        solver: allocate_greedy(pass_rate_P, total, **arguments, saturation=saturation, solver=solver)
        for solver in ("heap", "auto", "threshold", "exact")
    }
    heap = done["heap"]
    for solver in ("auto", "threshold"):
        assert done[solver].budget_P.tolist() == heap.budget_P.tolist()
        assert done[solver].shadow_price == heap.shadow_price or math.isnan(heap.shadow_price)
    low, rule = arguments["budget_min"], {name: arguments[name] for name in ("alpha", "beta", "tau")}
    worth = [
        math.fsum(value(done[solver].budget_P, np.array(pass_rate_P), **rule, saturation=saturation))
        for solver in ("heap", "exact")
    ]
    assert worth[0] == pytest.approx(worth[1], rel=1e-12, abs=1e-12) and done["exact"].budget_P.min() >= low


def test_ties_go_to_the_lowest_index():
    assert allocate_greedy([0.5] * 4, 18, **RULE).budget_P.tolist() == [5, 5, 4, 4]
    assert allocate_greedy([0.1, 0.5, 0.1, 0.5], 9, **RULE).budget_P.tolist() == [2, 3, 2, 2]


def test_shadow_price_is_the_gain_of_the_last_rollout():
    allocation = allocate_greedy([0.5, 0.5], 5, alpha=2.0, beta=2.0)
    gain = 1.5 * (math.exp(-2 * 0.05) - math.exp(-3 * 0.05))  # V(3) - V(2), in linear units
    assert allocation.shadow_price == pytest.approx(gain, rel=1e-12)
    assert math.isnan(allocate_greedy([0.5, 0.5], 4, alpha=2.0, beta=2.0).shadow_price)


def test_gini():
    assert allocate_greedy([0.5, 0.5], 8, **RULE).gini == 0
    assert allocate_greedy([0.0, 0.5], 4, budget_min=0, budget_max=4, **RULE).gini == 0.5  # budgets 0 and 4
    assert allocate_greedy([0.5], 0, budget_min=0, **RULE).gini == 0


def test_extreme_totals():
    assert allocate_greedy([0.2, 0.4], 4, **RULE).budget_P.tolist() == [2, 2]
    assert allocate_greedy([0.2, 0.4], 256, **RULE).budget_P.tolist() == [128, 128]
    assert allocate_greedy([0.2], 17, **RULE).budget_P.tolist() == [17]
    assert allocate_greedy([0.2, 0.4], 6, budget_min=3, budget_max=3, **RULE).budget_P.tolist() == [3, 3]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_any_real_dtype(dtype):
    expected = allocate_greedy([0.25, 0.5, 1.0], 24, **RULE)
    given_dtype = allocate_greedy(np.array([0.25, 0.5, 1.0], dtype), np.int32(24), **RULE)
    assert given_dtype.budget_P.tolist() == expected.budget_P.tolist()
    assert given_dtype.pass_rate_P.dtype == np.float64


def test_integer_pass_rates_and_strides():
    assert allocate_greedy(np.array([0, 1], np.uint8), 8, **RULE).budget_P.sum() == 8
    strided_P = np.linspace(0, 1, 9)[::-2]
    assert (
        allocate_greedy(strided_P, 40, **RULE).budget_P.tolist()
        == allocate_greedy(strided_P.copy(), 40, **RULE).budget_P.tolist()
    )


@pytest.mark.parametrize(
    ("change", "argument", "rule", "shown"),
    [
        ({"pass_rate_P": [0.5, math.nan]}, "pass_rate_P", "must be finite", "nan at index 1"),
        ({"pass_rate_P": [math.inf, 0.5]}, "pass_rate_P", "must be finite", "inf at index 0"),
        ({"pass_rate_P": [0.5, 1.25]}, "pass_rate_P", "must lie in [0, 1]", "1.25 at index 1"),
        ({"pass_rate_P": [-0.1]}, "pass_rate_P", "must lie in [0, 1]", "-0.1 at index 0"),
        ({"pass_rate_P": []}, "pass_rate_P", "must not be empty", "(0,)"),
        ({"pass_rate_P": 0.5}, "pass_rate_P", "must be one-dimensional", "()"),
        ({"pass_rate_P": [[0.5, 0.5]]}, "pass_rate_P", "must be one-dimensional", "(1, 2)"),
        ({"pass_rate_P": [[0.5], [0.5, 0.5]]}, "pass_rate_P", "must be a one-dimensional array", "[[0.5], [0.5, 0.5]]"),
        ({"pass_rate_P": ["0.5"]}, "pass_rate_P", "must hold real numbers", "'0.5'"),
        ({"pass_rate_P": [0.5, None]}, "pass_rate_P", "must hold real numbers", "None"),
        ({"pass_rate_P": [True, False]}, "pass_rate_P", "must hold real numbers", "bool"),
        ({"pass_rate_P": [0.5 + 0j]}, "pass_rate_P", "must hold real numbers", "complex128"),
        ({"total_budget": 8.0}, "total_budget", "must be an integer >= 0", "8.0"),
        ({"total_budget": True}, "total_budget", "must be an integer >= 0", "True"),
        ({"total_budget": "8"}, "total_budget", "must be an integer >= 0", "'8'"),
        ({"total_budget": -1}, "total_budget", "must be an integer >= 0", "-1"),
        ({"total_budget": 3}, "total_budget", "must be >= prompts * budget_min", "3 < 2 * 2 = 4"),
        ({"total_budget": 257}, "total_budget", "must be <= prompts * budget_max", "257 > 2 * 128 = 256"),
        ({"budget_min": -1}, "budget_min", "must be an integer >= 0", "-1"),
        ({"budget_min": 2.0}, "budget_min", "must be an integer >= 0", "2.0"),
        ({"budget_max": True}, "budget_max", "must be an integer >= 0", "True"),
        ({"budget_min": 5, "budget_max": 4}, "budget_min", "must be <= budget_max", "5 > 4"),
        ({"alpha": 0}, "alpha", "must be a number in [1e-09, 1e+09]", "0"),
        ({"alpha": math.inf}, "alpha", "must be a number in", "inf"),
        ({"beta": -1.0}, "beta", "must be a number in", "-1.0"),
        ({"beta": "5"}, "beta", "must be a number in", "'5'"),
        ({"tau": math.nan}, "tau", "must be a number in", "nan"),
        ({"tau": True}, "tau", "must be a number in", "True"),
        ({"total_budget": 10**13}, "total_budget", "must be an integer in [0, 1,000,000,000,000]", "10000000000000"),
        ({"budget_max": 10**30}, "budget_max", "must be an integer in [0, 1,000,000,000,000]", str(10**30)),
        ({"saturation": "none"}, "saturation", "must be one of variance, inverse_variance", "'none'"),
        ({"solver": "simplex"}, "solver", "must be one of auto, heap, threshold, exact", "'simplex'"),
        ({"solver": None}, "solver", "must be one of auto", "None"),
    ],
)
def test_wrong_arguments_are_named(change, argument, rule, shown):
    arguments = {"pass_rate_P": [0.2, 0.5], "total_budget": 8, **RULE} | change
    with pytest.raises(ValueError) as raised:
        allocate_greedy(arguments.pop("pass_rate_P"), arguments.pop("total_budget"), **arguments)
    message = str(raised.value)
    assert message.startswith(argument) and rule in message and shown in message
