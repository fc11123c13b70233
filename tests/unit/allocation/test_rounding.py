"""Whole budgets in proportion to weights."""

import warnings
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.allocation.rounding import proportional_budgets, round_to_total
from tests.unit.allocation.oracles import clipped_shares, largest_remainder


@st.composite
def proportions(draw):
    """Weights of all sizes and kinds, with equal ones and zeros, and a feasible total."""
    weight = draw(
        st.sampled_from(
            [
                st.floats(0.1, 10),
                st.sampled_from([0.0, 1.0, 2.0, 3.0]),
                st.one_of(st.floats(1e-150, 1e9), st.sampled_from([0.0, 1e-200, 1e-160, 1e9])),
            ]
        )
    )
    weights = draw(st.lists(weight, min_size=1, max_size=14))
    low = draw(st.integers(0, 4))
    high = draw(st.integers(low, low + 40))
    return weights, draw(st.integers(len(weights) * low, len(weights) * high)), low, high


@given(proportions())
@settings(max_examples=400, deadline=None, derandomize=True)
def test_budgets_are_the_rounded_shares(problem):
    weights, total, low, high = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        budget_P = proportional_budgets(np.array(weights), total, low, high)
    assert budget_P.dtype == np.int64 and budget_P.sum() == total
    assert budget_P.min() >= low and budget_P.max() <= high
    share_P = clipped_shares(weights, total, low, high)
    assert max(abs(share - int(budget)) for share, budget in zip(share_P, budget_P, strict=True)) < 1 + 1e-6
    remainders = sorted({share % 1 for share in share_P})
    clear = all(b - a > Fraction(1, 10**6) for a, b in zip([Fraction(0), *remainders], remainders, strict=False) if a)
    if clear and all(Fraction(1, 10**6) < r < 1 - Fraction(1, 10**6) for r in remainders if r):
        assert budget_P.tolist() == largest_remainder(share_P, total)


@pytest.mark.parametrize("weights", [[1e9, 5e-324, 0.0], [1.0, 5e-324, 1e-310], [5e-324, 0.0, 5e-324]])
def test_vanishing_weights_come_before_zeros(weights):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for total in range(6, 31):
            budget_P = proportional_budgets(np.array(weights), total, 2, 10)
            assert budget_P.sum() == total and budget_P.min() >= 2 and budget_P.max() <= 10
            assert (budget_P[np.array(weights) == 0] == 2).all() or (budget_P[np.array(weights) > 0] == 10).all()


def test_worked_examples():
    assert proportional_budgets(np.array([1.0, 2.0, 3.0]), 12, 0, 12).tolist() == [2, 4, 6]
    # Shares 10/6, 20/6, 30/6: the first has the largest remainder.
    assert proportional_budgets(np.array([1.0, 2.0, 3.0]), 10, 0, 12).tolist() == [2, 3, 5]
    # 1 : 2 : 9 within 2 .. 6: the last is cut at 6, the first kept at 2.
    assert proportional_budgets(np.array([1.0, 2.0, 9.0]), 11, 2, 6).tolist() == [2, 3, 6]
    assert proportional_budgets(np.array([1.0, 1.0, 1.0]), 8, 2, 6).tolist() == [3, 3, 2]


def test_weight_zero_waits_until_all_others_are_full():
    assert proportional_budgets(np.array([0.0, 1.0, 2.0]), 14, 2, 6).tolist() == [2, 6, 6]
    assert proportional_budgets(np.array([0.0, 1.0, 2.0, 0.0]), 19, 2, 6).tolist() == [4, 6, 6, 3]
    assert proportional_budgets(np.zeros(3), 10, 2, 6).tolist() == [4, 3, 3]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None, derandomize=True)
def test_permuting_prompts_permutes_budgets(seed):
    rng = np.random.default_rng(seed)
    weight_P, order_P = rng.uniform(0.1, 5, 20), rng.permutation(20)
    budget_P = proportional_budgets(weight_P, 170, 2, 30)
    assert proportional_budgets(weight_P[order_P], 170, 2, 30).tolist() == budget_P[order_P].tolist()


@pytest.mark.parametrize(
    ("shares", "total", "budgets"),
    [
        ([2.5, 2.5, 3.0], 8, [3, 2, 3]),
        ([2.9999999999999996, 3.0000000000000004, 2.0], 8, [3, 3, 2]),
        ([2.2, 2.7, 3.1], 8, [2, 3, 3]),
        ([4.0, 4.0], 6, [3, 3]),  # too much by more than rounding: everybody gives
        ([2.0, 2.0], 7, [4, 3]),
    ],
)
def test_largest_remainders_round(shares, total, budgets):
    assert round_to_total(np.array(shares), total, 0, 10).tolist() == budgets
