"""Heap and threshold solver give the same budgets to the last tie, for every family of gains."""

import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.oracles import heapq_budgets
from coba_openrlhf.allocation import Gains
from coba_openrlhf.allocation.solvers import solve
from coba_openrlhf.allocation.solvers.exact import gain_table, solve_exact
from coba_openrlhf.allocation.solvers.heap import solve_heap
from coba_openrlhf.allocation.solvers.threshold import solve_threshold

MANY = settings(max_examples=400, deadline=None, derandomize=True)


def bounds(draw, num_prompts, lowest=0, widest=60):
    """``(spare, low, high)``: at least one rollout to place; often a single one, often all that fit."""
    low = draw(st.integers(lowest, 4))
    high = low + draw(st.integers(1, widest))
    most = num_prompts * (high - low)
    return draw(st.one_of(st.integers(1, most), st.sampled_from([1, most, max(most - 1, 1)]))), low, high


@st.composite
def geometric(draw):
    """Few distinct rules, so that ties are common; slopes that vanish beside the intercept, tiny ones, huge ones."""
    plain = st.tuples(
        st.sampled_from([-800.0, -30.0, -1.5, 0.0, 0.1, 2.0]), st.sampled_from([1e-17, 0.002, 0.05, 0.1, 3.0, 1e9])
    )
    coarse = st.tuples(st.just(1e6), st.sampled_from([5e-11, 1e-10, 3e-10]))  # floats at 1e6 are 1.2e-10 apart
    smooth = st.tuples(st.floats(-5, 5), st.floats(1e-3, 1))
    rule = draw(st.sampled_from([plain, coarse, smooth]))
    rules = draw(st.lists(rule, min_size=1, max_size=40))
    spare, low, high = bounds(draw, len(rules), widest=draw(st.sampled_from([1, 8, 60])))
    return Gains.geometric(*np.array(rules).T.copy()), spare, low, high


@st.composite
def urn(draw):
    """Rates of 0 and 1, identical prompts, counts large enough that the gains underflow."""
    learns = draw(st.booleans())
    scale = st.sampled_from([0.0, 1.0, 0.25, 5e-324, 1e-300])
    if learns:
        count = st.one_of(st.sampled_from([0.02, 1.0, 2.0, 1e6]), st.floats(0.01, 50))
        rules = draw(st.lists(st.tuples(scale, scale, count, count), min_size=1, max_size=30))
    else:
        rate = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
        rules = [(x, y, p, 1 - p) for x, y, p in draw(st.lists(st.tuples(scale, scale, rate), min_size=1, max_size=30))]
    # Enough steps that a rate of one half falls below the smallest float.
    spare, low, high = bounds(draw, len(rules), widest=draw(st.sampled_from([1, 12, 1200])))
    x_P, y_P, success_P, failure_P = np.array(rules).T
    return Gains.urn(x_P, y_P, success_P, failure_P, low, learns=learns), spare, low, high


@st.composite
def table(draw):
    """Rows that fall, stay, or are all 0; weights that are negative turn a rising row."""
    num_prompts = draw(st.integers(1, 30))
    spare, low, high = bounds(draw, num_prompts)
    steps = st.sampled_from([0.0, 0.0, 1.0, 0.125, 1e-12])
    num_rows = draw(st.integers(1, 6))
    falls_TN = [draw(st.lists(steps, min_size=high - low, max_size=high - low)) for _ in range(num_rows)]
    start_T = [draw(st.sampled_from([-3.0, 0.0, 1.0, 1e-300])) for _ in range(num_rows)]
    table_TN = np.array(start_T)[:, None] - np.cumsum(falls_TN, axis=1)
    rising_T = np.array([draw(st.booleans()) for _ in range(num_rows)])
    table_TN[rising_T] *= -1
    row_P = np.array([draw(st.integers(0, num_rows - 1)) for _ in range(num_prompts)])
    weight_P = np.array([draw(st.sampled_from([0.0, 1.0, 1.0, 0.3, 1e9, 5e-324])) for _ in range(num_prompts)])
    weight_P[rising_T[row_P]] *= -1
    return Gains.table(weight_P, row_P, table_TN, low), spare, low, high


def check_all(problem):
    _, spare, low, high = problem
    heap_P, heap_price = solve_heap(*problem)
    threshold_P, threshold_price = solve_threshold(*problem)
    assert heap_P.tolist() == threshold_P.tolist()
    assert math.copysign(1, heap_price) == math.copysign(1, threshold_price) and heap_price == threshold_price
    assert heap_P.dtype == threshold_P.dtype == np.int64
    assert heap_P.sum() == spare + len(heap_P) * low and heap_P.min() >= low and heap_P.max() <= high
    return heap_P, heap_price


@given(geometric())
@MANY
def test_geometric_gains(problem):
    gains, spare, low, high = problem
    budget_P, price = check_all(problem)
    intercept_P, slope_P = gains.param_KP
    total = spare + len(budget_P) * low
    twin = heapq_budgets(lambda i, budget: float(intercept_P[i] - slope_P[i] * budget), len(slope_P), total, low, high)
    assert budget_P.tolist() == twin
    # The last rollout placed has the smallest gain of all that were placed.
    assert price == min(intercept_P[i] - slope_P[i] * (b - 1) for i, b in enumerate(budget_P) if b > low)


@given(urn())
@MANY
def test_urn_gains(problem):
    gains, spare, low, high = problem
    budget_P, _ = check_all(problem)
    if high - low <= 60:
        gain_PN = gain_table(gains, low, high)
        assert (np.diff(gain_PN, axis=1) <= 0).all()
        total = spare + len(budget_P) * low
        assert budget_P.tolist() == heapq_budgets(lambda i, b: gain_PN[i, b - low], len(budget_P), total, low, high)


@given(table())
@MANY
def test_table_gains(problem):
    gains, spare, low, high = problem
    budget_P, _ = check_all(problem)
    gain_PN = gains.param_KP[0][:, None] * gains.table_TN[gains.param_KP[1].astype(int)]
    total = spare + len(budget_P) * low
    assert budget_P.tolist() == heapq_budgets(lambda i, b: gain_PN[i, b - low], len(budget_P), total, low, high)


@given(st.one_of(geometric(), urn(), table()))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_exact_has_the_same_objective(problem):
    gains, spare, low, high = problem
    if len(gains.param_KP[0]) * (high - low) > 1000 or high - low > 60:
        return
    gain_PN = gain_table(gains, low, min(high, low + spare))
    value_PN = np.concatenate((np.zeros((len(gain_PN), 1)), gain_PN.cumsum(axis=1)), axis=1)
    worth = [
        math.fsum(value_PN[i, b - low] for i, b in enumerate(solver(gains, spare, low, min(high, low + spare))[0]))
        for solver in (solve_heap, solve_exact)
    ]
    assert worth[0] == pytest.approx(worth[1], rel=1e-12, abs=1e-12 * np.abs(value_PN).max(axis=1).sum())


def large_gains(family, rng, num_prompts, low, high):
    """Rates of small groups (ties) for half of the seeds, all different for the others."""
    rate_P = rng.integers(0, 9, num_prompts) / 8 if rng.uniform() < 0.5 else rng.uniform(size=num_prompts)
    if family == "geometric":
        slope_P = np.clip(rate_P, 0.01, 0.99) * np.clip(1 - rate_P, 0.01, 0.99) / 5
        return Gains.geometric(4 * np.log(np.clip(rate_P, 0.01, 0.99)) + np.log(slope_P), slope_P)
    if family == "urn":
        a_P, b_P = 1 + 8 * rate_P, 9 - 8 * rate_P
        return Gains.urn(b_P / (a_P + b_P), a_P / (a_P + b_P), a_P, b_P, low)
    table_TN = -np.sort(-rng.exponential(size=(7, high - low)), axis=1)
    return Gains.table(rate_P, rng.integers(0, 7, num_prompts), table_TN, low)


@pytest.mark.parametrize("family", ["geometric", "urn", "table"])
@pytest.mark.parametrize("num_prompts", [1, 65, 512, 3000])
def test_large_batches(family, num_prompts):
    rng = np.random.default_rng(num_prompts)
    for total in (3, 8, 9, 16, 17, 100, 127, 128):
        gains = large_gains(family, rng, num_prompts, 2, 128)
        check_all((gains, (total - 2) * num_prompts, 2, 128))


@pytest.mark.parametrize("solver", ["auto", "heap", "threshold", "exact"])
def test_nothing_to_place(solver):
    budget_P, price = solve(Gains.geometric(np.zeros(3), np.ones(3)), 6, 2, 2, solver)
    assert budget_P.tolist() == [2, 2, 2] and math.isnan(price)
    budget_P, price = solve(Gains.geometric(np.zeros(3), np.ones(3)), 6, 2, 9, solver)
    assert budget_P.tolist() == [2, 2, 2] and math.isnan(price)


@pytest.mark.parametrize("solver", ["auto", "heap", "threshold", "exact"])
def test_bound_beyond_int64_is_no_bound(solver):
    budget_P, price = solve(Gains.geometric(np.zeros(3), np.ones(3)), 10, 1, 10**30, solver)
    assert sorted(budget_P.tolist()) == [3, 3, 4] and price == pytest.approx(math.exp(-3))
    if solver != "exact":
        assert budget_P.tolist() == [4, 3, 3]


@pytest.mark.parametrize("family", ["geometric", "urn", "table"])
def test_auto_is_the_others(family):
    rng = np.random.default_rng(8)
    gains = large_gains(family, rng, 40, 2, 128)
    for total in (81, 144, 145, 2000, 40 * 128):
        expected = solve(gains, total, 2, 128, "heap")
        for solver in ("auto", "threshold"):
            budget_P, price = solve(gains, total, 2, 128, solver)
            assert budget_P.tolist() == expected[0].tolist() and price == expected[1]


@pytest.mark.parametrize("solver", [solve_heap, solve_threshold, solve_exact])
@pytest.mark.parametrize("family", ["geometric", "urn", "table"])
def test_gains_are_left_alone(solver, family):
    gains = large_gains(family, np.random.default_rng(9), 12, 2, 20)
    before = gains.param_KP.copy(), gains.table_TN.copy()
    solver(gains, 100, 2, 20)
    np.testing.assert_array_equal(gains.param_KP, before[0])
    np.testing.assert_array_equal(gains.table_TN, before[1])


@pytest.mark.parametrize("solver", [solve_heap, solve_threshold])
@pytest.mark.parametrize("family", ["geometric", "urn"])
def test_memory_does_not_grow_with_the_total(solver, family):
    gains = large_gains(family, np.random.default_rng(10), 2000, 2, 10_000)

    def peak(total):
        tracemalloc.start()
        solver(gains, total - 2 * 2000, 2, 10_000)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(100_000)  # compilation
    small, large = peak(100_000), peak(1_000_000)
    assert 2000 * 8 <= small < 4_000_000
    assert large <= 1.1 * small + 1000


def test_exact_refuses_what_it_cannot_keep_in_memory():
    """At once: not after a table of all gains has been filled."""
    for num_prompts, total, shown in ((100_000, 1_600_000, r"1400001 \* 1400001"), (1, 100_002, r"100001 \* 100001")):
        gains = Gains.geometric(np.zeros(num_prompts), np.ones(num_prompts))
        with pytest.raises(ValueError, match=rf"solver exact takes .* <= 250,000,000, got {shown}; use heap"):
            solve(gains, total, 2, 10**9, "exact")
