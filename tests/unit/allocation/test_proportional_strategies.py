"""Rules in closed form against their published proportions."""

import math

import numpy as np
import pytest

from coba_openrlhf import AllocationConfig, Allocator
from coba_openrlhf.allocation import STRATEGIES
from tests.unit.allocation.oracles import clipped_shares, largest_remainder
from tests.unit.allocation.problems import make_problem, random_problem

pytestmark = pytest.mark.filterwarnings("ignore:budget_max lets one prompt")


def reinforce_ada(estimates, norm_P, prompt):
    return (estimates.pass_rate_P[prompt] + 0.01) ** -0.5


def gvm(estimates, norm_P, prompt):
    p = float(estimates.pass_rate_P[prompt])
    return norm_P[prompt] / math.sqrt(p + 1e-3 / p) if p > 0 else 0.0


def duet(estimates, norm_P, prompt):
    p = float(estimates.pass_rate_P[prompt])
    return math.sqrt(p * (1 - p)) / math.sqrt(estimates.num_tokens_P[prompt])


def uniform(estimates, norm_P, prompt):
    return 1.0


@pytest.mark.parametrize("weight", [reinforce_ada, gvm, duet, uniform])
def test_budgets_are_rounded_proportional_shares_on_200_problems(weight):
    rng = np.random.default_rng(51)
    rule = STRATEGIES[weight.__name__](AllocationConfig(strategy=weight.__name__))
    for _ in range(200):
        problem = random_problem(rng)
        budget_P, price = rule.allocate(problem)
        weights = [weight(problem.estimates, problem.gradient_norm_P, prompt) for prompt in range(len(problem))]
        shares = clipped_shares(weights, problem.total_budget, problem.budget_min, problem.budget_max)
        # Pass rates of 0, 1/4, 1/2, 1 repeat: equal shares, the remainder to the first.
        shares = [round(share, 9) for share in shares]
        assert budget_P.tolist() == largest_remainder(shares, problem.total_budget)
        assert math.isnan(price)


def test_reinforce_ada_goes_by_the_inverse_root():
    rule = STRATEGIES["reinforce_ada"](AllocationConfig(strategy="reinforce_ada", eps=1e-9))
    budget_P, _ = rule.allocate(make_problem([1.0, 0.25, 0.04, 1 / 16], 48))
    assert budget_P.tolist() == [4, 8, 20, 16]
    easy, hard = STRATEGIES["reinforce_ada"](AllocationConfig(eps=0.49)).allocate(make_problem([0.51, 0.0], 24))[0]
    assert (easy, hard) == (10, 14)  # 1 : sqrt(1 / 0.49) = 7 : 10, of 24


def test_gvm_leaves_what_is_never_accepted_at_the_minimum():
    rule = STRATEGIES["gvm"](AllocationConfig(strategy="gvm"))
    budget_P, _ = rule.allocate(make_problem([0.0, 0.5, 0.0, 1.0], 60))
    assert budget_P[[0, 2]].tolist() == [2, 2]
    # Only when all others are full.
    assert rule.allocate(make_problem([0.0, 0.5, 0.0, 1.0], 27, 2, 10))[0].tolist() == [4, 10, 3, 10]
    assert rule.allocate(make_problem([0.0, 0.0], 7))[0].tolist() == [4, 3]


def test_gvm_and_vip_know_gradient_norms():
    allocator = Allocator(AllocationConfig(strategy="gvm"))
    budget_P = allocator.allocate(["a", "b"], 40, gradient_norms=[1.0, 3.0]).budget_P
    assert budget_P.tolist() == [10, 30]
    vip = Allocator(AllocationConfig(strategy="vip"))
    assert vip.allocate(["a", "b"], 42).budget_P.tolist() == [21, 21]
    # The least of 1 / (B_1 - 1) + 9 / (B_2 - 1): B - 1 goes by the norm.
    assert vip.allocate(["a", "b"], 42, gradient_norms=[1.0, 3.0]).budget_P.tolist() == [11, 31]
    coba = Allocator(AllocationConfig())
    assert coba.allocate(["a", "b"], 40, gradient_norms=[1.0, 3.0]).budget_P.tolist() == [20, 20]


def test_duet_goes_by_length():
    allocator = Allocator(AllocationConfig(strategy="duet"))
    ids, scores = ["a", "a", "b", "b", "c", "c"], [1, 0] * 3
    allocator.observe(ids, scores, num_tokens=[100, 100, 300, 500, 1500, 1700])
    # Lengths 100, 400, 1600: shares 4 : 2 : 1.
    assert allocator.allocate(["a", "b", "c"], 28).budget_P.tolist() == [16, 8, 4]
    # Unknown lengths are the mean of the known ones, 250.
    assert allocator.allocate(["a", "new", "b"], 41).estimates.num_tokens_P.tolist() == [100, 250, 400]
    # Without any length all cost the same.
    blind = Allocator(AllocationConfig(strategy="duet"))
    blind.observe(ids, scores)
    assert blind.allocate(["a", "b", "c"], 28).budget_P.tolist() == [10, 9, 9]


@pytest.mark.parametrize(
    ("total", "budgets"), [(9, [3, 3, 3]), (10, [4, 3, 3]), (11, [4, 4, 3]), (6, [2, 2, 2]), (15, [5, 5, 5])]
)
def test_uniform_gives_the_remainder_to_the_first_prompts(total, budgets):
    allocation = Allocator(AllocationConfig(strategy="uniform", budget_max=5)).allocate(["a", "b", "c"], total)
    assert allocation.budget_P.tolist() == budgets and allocation.budget_P.dtype == np.int64
    assert math.isnan(allocation.shadow_price)


def test_extreme_gradient_norms_keep_the_total():
    for norms in ([1e9, 5e-324, 0.0], [5e-324, 5e-324, 1.0], [0.0, 0.0, 0.0], [1e-300, 1e-310, 1e-320]):
        for strategy in ("gvm", "vip"):
            allocator = Allocator(AllocationConfig(strategy=strategy, budget_max=10))
            budget_P = allocator.allocate(["a", "b", "c"], 24, gradient_norms=norms).budget_P
            assert budget_P.sum() == 24 and budget_P.min() >= 2 and budget_P.max() <= 10
