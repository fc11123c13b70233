"""The mathematical verifier: a table of answers by hand, and public benchmarks where they are at hand."""

import json
import os
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.rewards.verifier_choice import check_label
from coba_openrlhf.rewards.verifiers import VERIFIERS, Limits
from tests.unit.rewards.math_pairs import PAIRS

MATH = VERIFIERS["math"]
LIMITS = Limits(5.0, 1024)
DATA = Path(os.environ.get("COBA_TEST_DATA", Path(__file__).parents[4] / "shared" / "data"))
needs_data = pytest.mark.skipif(
    not (DATA / "math500.jsonl").is_file(), reason=f"no benchmark files in {DATA} (set COBA_TEST_DATA)"
)


def score(response, label):
    """The score; what can be told at a glance must be the same."""
    outcome = MATH.verify(response, label, LIMITS)
    quick = MATH.quick(response, label, LIMITS)
    assert quick is None or quick.score == outcome.score, (response, label, quick, outcome)
    return outcome.score


def rows_of(name):
    return [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(("kind", "label", "answer", "right"), PAIRS)
def test_pairs(kind, label, answer, right):
    assert score(f"So the answer is $\\boxed{{{answer}}}$.", label) == float(right)


def test_the_table_has_both_kinds_of_pairs_in_every_part():
    assert len(PAIRS) >= 150
    kinds = Counter((kind, right) for kind, _, _, right in PAIRS)
    assert all(kinds[kind, right] for kind, _ in kinds for right in (True, False)), kinds
    assert len({(str(label), answer) for _, label, answer, _ in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(
    ("response", "label", "right"),
    [
        ("12", "12.0", 1),
        ("The answer is 12.", "12.0", 1),
        ("The final answer is $\\frac{3}{8}$.", "\\dfrac{3}{8}", 1),
        ("9 * 2 = 18\n#### 18", "18", 1),
        (r"\boxed{12}", "12.0", 1),
        (r"First \boxed{7}, no: \boxed{12}", "12", 1),
        (r"First \boxed{12}, no: \boxed{7}", "12", 0),
        (r"\boxed{1} and \boxed{2}", "1, 2", 0),
        (r"\boxed{}", "12", 0),
        (r"\boxed{12", "12", 0),
        (r"\boxed{12} or \boxed{1", "12", 0),
        (r"\boxed{12}. Check: 6 + 6 = 13.", "12", 1),
        ("", "12", 0),
        ("I do not know", "12", 0),
        ("9", "5 and 9", 0),
        ("5 and 9", "She counts 5 and 9\n#### 14", 0),
        (r"\boxed{14}", "She counts 5 and 9\n#### 14", 1),
    ],
)
def test_where_the_answer_is(response, label, right):
    assert score(response, label) == right


@pytest.mark.parametrize(
    "response",
    [
        "{" * 3000,
        r"\boxed{" * 500,
        r"\boxed{" + "(" * 500 + "}",
        r"\boxed{" + "\\sqrt{" * 300 + "2" + "}" * 300 + "}",
        r"\boxed{" + "x+" * 10_000 + "1}",
        "\x00\ud800",
        "\\boxed{\x00\ud800}",
        r"\boxed{\frac{1}{0}}",
        r"\boxed{0/0}",
        "^_" * 500,
    ],
)
def test_strange_answers_are_wrong(response):
    assert score(response, "12") == 0.0


@settings(max_examples=150, deadline=None, derandomize=True)
@given(
    st.decimals(-10_000, 10_000, places=3),
    st.sampled_from([Decimal(0), Decimal("0.000001"), Decimal("0.00001"), Decimal("0.001"), Decimal(1)]),
    st.booleans(),
)
def test_numbers_are_told_at_a_glance_as_math_verify_tells_them(number, difference, separators):
    other = number + difference
    assert score(f"\\boxed{{{number:,f}}}" if separators else f"\\boxed{{{number:f}}}", f"{other:f}") in (0.0, 1.0)


@needs_data
def test_math500_solutions_are_right_and_neighbours_wrong():
    rows = rows_of("math500")
    assert [row["unique_id"] for row in rows if score(row["solution"], row["answer"]) != 1.0] == []
    right = [
        (row["answer"], after["answer"])
        for row, after in zip(rows, rows[1:] + rows[:1], strict=True)
        if score(f"\\boxed{{{row['answer']}}}", after["answer"]) != 0.0
    ]
    assert right == [("5", "x=5"), ("7", "7"), ("3", "3")]  # equal answers


@needs_data
def test_olympiadbench_answers_are_right_and_neighbours_wrong():
    rows = rows_of("olympiadbench")
    golds = [row["final_answer"] for row in rows]
    for gold in golds:
        check_label("math", gold)
    assert [gold for gold in golds if score(f"\\boxed{{{', '.join(gold)}}}", gold) != 1.0] == []
    right = [
        (gold, after)
        for gold, after in zip(golds, golds[1:] + golds[:1], strict=True)
        if gold != after and score(f"\\boxed{{{gold[0]}}}", after) != 0.0
    ]
    assert right == []


@needs_data
def test_olympiadbench_lists_need_all_their_members():
    """The first member alone of an answer with several, where the text shows where it ends."""
    several = [
        row["final_answer"][0]
        for row in rows_of("olympiadbench")
        if row["is_multiple_answer"] and row["answer_type"] == "Numerical"
    ]
    assert len(several) > 50
    right = [gold for gold in several if score(f"\\boxed{{{gold.partition(',')[0]}}}", gold) != 0.0]
    # Sets: -2,-2 has one member.
    assert right == ["-2,-2"]


@needs_data
@pytest.mark.parametrize(
    ("name", "column", "num_rows"),
    [
        ("gsm8k_train", "answer", 7473),
        ("gsm8k_test", "answer", 1319),
        ("aime24", "answer", 30),
        ("aime25", "answer", 30),
    ],
)
def test_short_answers_are_verifiable(name, column, num_rows):
    golds = [row[column] for row in rows_of(name)]
    assert len(golds) == num_rows
    for gold in golds:
        check_label("math", gold)
        check_label("numeric", gold)
        answer = str(gold).rpartition("####")[2].strip()
        assert MATH.quick(f"\\boxed{{{answer}}}", gold, LIMITS).score == 1.0
        assert VERIFIERS["numeric"].quick(f"#### {answer}", gold, LIMITS).score == 1.0
