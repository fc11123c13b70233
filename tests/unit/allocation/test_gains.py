"""Marginal gains in their three forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.allocation import Gains
from coba_openrlhf.allocation.solvers import solve
from coba_openrlhf.allocation.solvers.exact import gain_table
from tests.unit.allocation.oracles import any_success, knapsack_value, mixed_group


def test_geometric_gains_by_hand():
    gain_PN = gain_table(Gains.geometric(np.array([0.0, math.log(8)]), np.log([2.0, 4.0])), 1, 4)
    # 1/2, 1/4, 1/8 and 2, 1/2, 1/8, relative to the largest.
    np.testing.assert_allclose(gain_PN, [[1 / 4, 1 / 8, 1 / 16], [1, 1 / 4, 1 / 16]], rtol=1e-14)


def test_uncertain_urn_by_hand():
    # Beta(1, 1): E[p^B (1-p)] = 1 / ((B+1) (B+2)), and the same for failures.
    half = np.array([0.5])
    gains = Gains.urn(half, half, np.ones(1), np.ones(1), 2)
    np.testing.assert_allclose(gain_table(gains, 2, 6), [[2 / 12, 2 / 20, 2 / 30, 2 / 42]], rtol=1e-14)


def test_known_urn_by_hand():
    # p = 1/4: p^B (1-p) + (1-p)^B p at B = 1, 2.
    gains = Gains.urn(np.array([0.75]), np.array([0.25]), np.array([0.25]), np.array([0.75]), 1, learns=False)
    np.testing.assert_allclose(gain_table(gains, 1, 3), [[6 / 16, 12 / 64]], rtol=1e-14)


@given(st.floats(0.05, 40), st.floats(0.05, 40), st.integers(0, 5))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_urns_add_up_to_the_published_values(a, b, low):
    mean = a / (a + b)
    column = np.array([[a], [b], [mean], [1 - mean], [0.0]])
    values = {
        "mixed": (Gains.urn(column[3], column[2], column[0], column[1], low), mixed_group, (a, b)),
        "hora": (Gains.urn(column[4], column[2], column[0], column[1], low), any_success, (a, b)),
        "knapsack": (
            Gains.urn(column[3], column[2], column[2], column[3], low, learns=False).scaled(column[2] * column[3] ** 2),
            knapsack_value,
            (mean,),
        ),
    }
    for name, (gains, value, rates) in values.items():
        gain_N = gain_table(gains, low, low + 20)[0]
        first = low
        if name == "mixed" and low == 0:
            first, gain_N = 1, gain_N[1:]  # "no rollouts" is no mixed group, which the formula does not say
        expected = [value(budget, *rates) - value(first, *rates) for budget in range(first + 1, low + 21)]
        np.testing.assert_allclose(np.cumsum(gain_N), expected, rtol=1e-9, atol=1e-14)


def test_table_gains_by_hand():
    gains = Gains.table(np.array([2.0, 0.0, -1.0]), np.array([0, 0, 1]), [[3, 3, 1], [0, 1, 4]], 5)
    np.testing.assert_array_equal(gain_table(gains, 5, 8), [[6, 6, 2], [0, 0, 0], [0, -1, -4]])


@pytest.mark.parametrize(
    ("weights", "rows", "table", "message"),
    [
        ([1.0, 1.0], [0, 1], [[3, 2, 1], [2, 1, 1.5]], "got 1 for 3 -> 4 and 1.5 for 4 -> 5 at prompt 1"),
        ([1.0, -2.0], [0, 0], [[3, 2, 2]], "got -6 for 2 -> 3 and -4 for 3 -> 4 at prompt 1"),
        ([math.nan], [0], [[3, 2]], "finite, got NaN or infinity"),
        ([1.0], [0], [[math.nan, 2]], "finite, got NaN or infinity"),
        ([1.0], [0], [[math.inf, 2]], "finite, got NaN or infinity"),
        ([1.0], [1], [[3, 2]], r"rows of a table, got rows 1 .. 1 of \(1, 2\)"),
        ([1.0], [-1], [[3, 2]], r"rows of a table, got rows -1 .. -1"),
        ([1.0], [0], [3, 2], r"rows of a table, got rows 0 .. 0 of \(2,\)"),
        ([1.0], [0.0], [[3, 2]], "a row \\(an integer\\) per prompt.*float64"),
        ([1.0, 1.0], [0], [[3, 2]], r"per prompt, got shapes \(2,\) and \(1,\)"),
    ],
)
def test_wrong_tables_are_refused(weights, rows, table, message):
    with pytest.raises(ValueError, match=message):
        Gains.table(np.array(weights), np.array(rows), np.array(table), 2)


def test_increasing_rows_that_nobody_uses_are_no_error():
    gains = Gains.table(np.array([1.0, 0.0]), np.array([0, 1]), [[2, 1], [1, 2]], 0)
    assert solve(gains, 2, 0, 2)[0].tolist() == [2, 0]


@pytest.mark.parametrize(
    ("intercept", "slope", "message"),
    [
        (math.nan, 1.0, "intercepts must be finite"),
        (-math.inf, 1.0, "intercepts must be finite"),
        (0.0, 0.0, "slopes must be finite and > 0, got values in 0 .. 1"),
        (0.0, -0.5, "slopes must be finite and > 0"),
        (0.0, math.nan, "slopes must be finite and > 0"),
    ],
)
def test_wrong_geometric_gains_are_refused(intercept, slope, message):
    with pytest.raises(ValueError, match=message):
        Gains.geometric(np.array([0.0, intercept]), np.array([1.0, slope]))


@pytest.mark.parametrize(
    ("change", "learns", "message"),
    [
        ({0: -1.0}, True, "x of an urn must be finite and >= 0, got values in -1 .. 0.5"),
        ({1: math.nan}, True, "y of an urn must be finite and >= 0"),
        ({2: math.inf}, True, "success of an urn must be finite and >= 0"),
        ({3: -0.1}, False, r"failure of an urn must be in \[0, 1\]"),
        ({2: 1.5}, False, r"success of an urn must be in \[0, 1\]"),
    ],
)
def test_wrong_urns_are_refused(change, learns, message):
    columns = np.full((4, 3), 0.5)
    for row, wrong in change.items():
        columns[row, 1] = wrong
    with pytest.raises(ValueError, match=message):
        Gains.urn(*columns, 2, learns=learns)


@pytest.mark.parametrize("solver", ["auto", "heap", "threshold", "exact"])
def test_gains_for_other_budgets_are_refused(solver):
    short = Gains.table(np.ones(2), np.zeros(2, int), [[3.0, 2.0, 1.0]], 2)
    with pytest.raises(ValueError, match=r"a column for each of the budgets .* got 3 for 2 \.\. 5"):
        solve(short, 10, 2, 6, solver)
    # A prompt that can never get further needs no more columns.
    assert solve(short, 7, 2, 6, solver)[0].sum() == 7
    with pytest.raises(ValueError, match="gains must start at budget_min, got 2 for 1"):
        solve(short, 5, 1, 4, solver)
    with pytest.raises(ValueError, match="gains must start at budget_min, got 2 for 1"):
        solve(Gains.urn(*np.full((4, 2), 0.5), 2), 5, 1, 4, solver)


def test_scaled_gains_are_that_many_times_as_large():
    factor_P = np.array([0.5, 3.0])
    for gains in (
        Gains.urn(*np.random.default_rng(1).uniform(size=(4, 2)), 2),
        Gains.table(np.array([1.0, -2.0]), np.array([0, 1]), [[3, 2], [2, 3]], 2),
    ):
        expected = gain_table(gains, 2, 4) * factor_P[:, None]
        np.testing.assert_allclose(gain_table(gains.scaled(factor_P), 2, 4), expected, rtol=1e-14)
    gains = Gains.geometric(np.array([1.0, 2.0]), np.ones(2))
    np.testing.assert_allclose(gains.scaled(factor_P).param_KP[0], np.log(np.exp([1.0, 2.0]) * factor_P))
    assert gains.param_KP[0].tolist() == [1.0, 2.0]


def test_some_prompts_have_their_own_gains():
    gains = Gains.table(np.array([1.0, 2.0, 4.0]), np.array([0, 1, 0]), [[3, 2], [5, 1]], 2)
    np.testing.assert_array_equal(gain_table(gains.take(np.array([2, 1])), 2, 4), [[12, 8], [10, 2]])
    assert solve(gains.take(np.array([2, 1])), 5, 2, 4)[0].tolist() == [3, 2]
