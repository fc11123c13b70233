"""The released recipe's rule against its table."""

import math
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.oracles import heapq_budgets
from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import STRATEGIES
from tests.unit.allocation.oracles import coba_value, largest_remainder, preferred_alpha
from tests.unit.allocation.problems import make_problem, random_problem

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


def released(**settings):
    return STRATEGIES["coba_released"](AllocationConfig(strategy="coba_released", **settings))


def heap_budgets(problem, kappa=11):
    """Budgets of the prompts in range, as a dict, by V(B+1) - V(B) evaluated anew for every push."""
    rates = problem.estimates.pass_rate_P
    rows = [index for index, rate in enumerate(rates) if 0.05 <= rate <= 0.99]
    spare = problem.total_budget - len(problem) * problem.budget_min
    share = Fraction(len(rows), len(problem))
    for_heap = math.floor((Fraction(8, 10) if share > Fraction(1, 2) else Fraction(6 + 4 * share, 10)) * spare)
    for_heap = min(for_heap, len(rows) * (problem.budget_max - problem.budget_min))
    tau = 3 + 9 * min(float(np.var(rates)) / 0.1667, 1)
    alpha = preferred_alpha(problem.failure_rate, kappa=kappa, lambd=kappa - 2)

    def gain(row, budget):
        after, before = (coba_value(b, rates[rows[row]], alpha, kappa - alpha, tau) for b in (budget + 1, budget))
        return after - before

    low, high = problem.budget_min, problem.budget_max
    budgets = heapq_budgets(gain, len(rows), len(rows) * low + for_heap, low, high)
    return dict(zip(rows, budgets, strict=True)), spare - for_heap


def test_200_problems_follow_the_table():
    rng = np.random.default_rng(61)
    for _ in range(200):
        problem = random_problem(rng)
        # Different rates: which of two equal prompts comes first is not what is asked here.
        rates = rng.uniform(size=len(problem)) ** rng.choice([0.3, 1, 4])
        rates = np.where(rng.uniform(size=len(rates)) < 0.2, rng.choice([0.0, 1.0]), rates)
        problem = make_problem(
            rates, problem.total_budget, problem.budget_min, problem.budget_max,
            failure_rate=problem.failure_rate, smoothed=rng.uniform(),
        )  # fmt: skip
        low, high = problem.budget_min, problem.budget_max
        budget_P, price = released().allocate(problem)
        assert budget_P.sum() == problem.total_budget and low <= budget_P.min() and budget_P.max() <= high
        by_heap, left = heap_budgets(problem)
        base_P = np.array([by_heap.get(index, low) for index in range(len(problem))])
        assert (budget_P >= base_P).all()
        assert math.isnan(price) == (sum(by_heap.values()) == len(by_heap) * low)
        hard_P, easy_P = rates < 0.05, rates > 0.99
        middle_P = ~hard_P & ~easy_P
        extra_P = budget_P - base_P
        assert extra_P.sum() == left
        for earlier_P, later_P in ((hard_P, middle_P | easy_P), (middle_P, easy_P)):
            if extra_P[later_P].any():
                assert (budget_P[earlier_P] == high).all()


@pytest.mark.parametrize(
    ("rates", "total", "for_heap", "left"),
    [
        # 4 of 5 in range: 80 % of 45.
        ([0.2, 0.4, 0.6, 0.8, 0.0], 55, 36, 9),
        # 2 of 4: 60 % + 40 % * 0.5 = 80 % of 40.
        ([0.2, 0.4, 0.0, 1.0], 48, 32, 8),
        # 1 of 4: 70 % of 30.
        ([0.2, 0.0, 0.04, 1.0], 38, 21, 9),
        # 1 of 4: 70 % of 180.
        ([0.2, 0.0, 0.0, 1.0], 188, 126, 54),
        # 0 of 2: nobody for the heap.
        ([0.0, 1.0], 14, 0, 10),
    ],
)
def test_share_of_the_heap(rates, total, for_heap, left):
    problem = make_problem(rates, total)
    by_heap, rest = heap_budgets(problem)
    assert sum(by_heap.values()) - 2 * len(by_heap) == for_heap and rest == left
    budget_P, _ = released().allocate(problem)
    hard = [index for index, rate in enumerate(rates) if rate < 0.05]
    # All that is left fits into the hard prompts, in proportion to 1 - p.
    weight = sum(1 - Fraction(rates[index]) for index in hard)
    extra = largest_remainder([left * (1 - Fraction(rates[index])) / weight for index in hard], left)
    expected = {index: 2 + more for index, more in zip(hard, extra, strict=True)} | by_heap
    assert budget_P.tolist() == [expected.get(index, 2) for index in range(len(rates))]


def test_both_ends_of_the_range_belong_to_it():
    problem = make_problem([0.05, 0.99, 0.0499, 0.9901], 40)
    by_heap, _ = heap_budgets(problem)
    assert set(by_heap) == {0, 1}
    budget_P, _ = released().allocate(problem)
    assert budget_P[2] > 2 and budget_P[3] == 2


def test_what_the_hard_cannot_take_goes_on():
    # 24 above the minimum: 16.8 for the heap, which takes 16; the hard prompt takes 8, and nothing is left.
    problem = make_problem([0.5, 0.6, 0.0, 1.0], 32, 2, 10)
    assert released().allocate(problem)[0].tolist() == [10, 10, 10, 2]
    # 30: the heap's 24 do not fit either, 6 more than the rest can take go to the easy prompt.
    assert released().allocate(make_problem([0.5, 0.6, 0.0, 1.0], 38, 2, 10))[0].tolist() == [10, 10, 10, 8]
    # Two easy prompts, 16 : 0 by weight 1 - p while there is room, then evenly.
    assert released().allocate(make_problem([1.0, 0.995], 13, 2, 10))[0].tolist() == [3, 10]


@pytest.mark.parametrize(("total", "budgets"), [(9, [3, 3, 3]), (10, [4, 3, 3]), (11, [4, 4, 3])])
def test_unseen_batch_is_uniform(total, budgets):
    allocator = Allocator(AllocationConfig(strategy="coba_released"))
    assert allocator.allocate(["a", "b", "c"], total).budget_P.tolist() == budgets
    allocator.observe(["x", "x"], [1, 0])
    assert allocator.allocate(["a", "b", "c"], total).budget_P.tolist() == budgets
    # One that is known is enough for the rule; the others count as 0.5.
    allocator.observe(["a", "a"], [0, 0])
    allocation = allocator.allocate(["a", "b", "c"], 36)
    assert allocation.pass_rate_P.tolist() == [0.0, 0.5, 0.5]
    assert allocation.budget_P.tolist() == [8, 14, 14]


def test_only_the_last_step_counts():
    allocator = Allocator(AllocationConfig(strategy="coba_released", capability_window=10))
    for score in (0, 0, 0, 1):
        allocator.observe(["x", "x"], [score, score])
    allocator.observe(["a", "a", "b", "b", "b", "b"], [1, 0, 0, 0, 1, 1])
    allocator.allocate(["a", "b"], 20)
    metrics = allocator.metrics()
    sigmoid = 1 / (1 + math.exp(-10 * (0.5 - 0.5)))  # the last failure rate is 1/2
    assert metrics["alpha"] == pytest.approx(1 + 9 * sigmoid) and metrics["beta"] == pytest.approx(10 - 9 * sigmoid)
    assert metrics["tau"] == 3.0  # no variance


def test_alpha_is_that_of_the_recipe():
    rule = released(kappa=7.0, lambd=1.0, alpha_min=3.0, alpha_max=4.0)
    assert rule.shape(make_problem([0.5], 4, failure_rate=1.0)) == (6.0, 1.0)
    alpha, beta = rule.shape(make_problem([0.5], 4, failure_rate=0.3, smoothed=0.9))
    assert alpha == pytest.approx(1 + 5 / (1 + math.exp(2))) and beta == pytest.approx(7 - alpha)
