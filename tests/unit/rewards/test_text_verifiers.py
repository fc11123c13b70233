"""Verifiers of texts, numbers and letters."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.config.coba_options import VERIFIER_NAMES
from coba_openrlhf.rewards.verifier_choice import check_label
from coba_openrlhf.rewards.verifiers import VERIFIERS, Limits
from coba_openrlhf.rewards.verifiers.base import QUICK_CHARACTERS
from coba_openrlhf.rewards.verifiers.boxed import last_boxed
from coba_openrlhf.rewards.verifiers.multiple_choice import letter_of

LIMITS = Limits(5.0, 1024)


def score(verifier, response, label, limits=LIMITS):
    """The score, which the quick look may not contradict."""
    outcome = VERIFIERS[verifier].verify(response, label, limits)
    assert VERIFIERS[verifier].quick(response, label, limits) in (None, outcome)
    assert outcome.reason and outcome.kind in ("correct", "wrong")
    return outcome.score


def test_the_options_name_every_verifier():
    assert tuple(VERIFIERS) == VERIFIER_NAMES


@pytest.mark.parametrize(
    ("response", "label", "right"), [(" 12\n", "12", 1), ("12.0", "12", 0), ("x12", "12", 0), ("", "12", 0)]
)
def test_exact(response, label, right):
    assert score("exact", response, label) == right


@pytest.mark.parametrize(
    ("response", "label", "right"),
    [
        ("12", "12.0", 1),
        ("3 + 4 = 7", "7", 1),
        ("7, not 8", "7", 0),
        ("it costs 1,234.50 dollars", "1234.5", 1),
        ("-0.5", "-.5", 1),
        ("1e3", "1000", 1),
        ("0.33333333", "0.3333333333", 1),
        ("about 12.1", "12", 0),
        ("no idea", "12", 0),
        ("", "0", 0),
        ("line5", "5", 1),
        ("e5", "5", 1),
        ("1e999", "5", 0),
        ("9" * 5000, "5", 0),
        ("12.", "12", 1),
        ("1.2.3", "0.3", 1),
        ("#### 18", "18", 1),
        ("so \\boxed{18} in 3 steps", "18", 1),
        ("\\boxed{18}, no: \\boxed{19}", "18", 0),
        ("\\boxed{eighteen}, that is 18", "18", 1),
        ("18", "She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", 1),
        ("9", "She makes 9 * 2 = $<<9*2=18>>18 every day.\n#### 18", 0),
        ("1000001", "1000000", 1),
        ("1000002", "1000000", 0),
    ],
)
def test_numeric(response, label, right):
    assert score("numeric", response, label) == right


@pytest.mark.parametrize(
    ("response", "label", "tolerance", "right"),
    [
        ("99.5", "100", 0.01, 1),
        ("100", "99.5", 0.01, 1),
        ("98.9", "100", 0.01, 0),
        ("0.001", "0.009", 0.01, 1),
        ("12.0", "12", 0.0, 1),
        ("1,000", "1000", 0.0, 1),
        ("12.0000000001", "12", 0.0, 0),
        ("1000001", "1000000", 0.0, 0),
        ("1e-300", "0", 0.0, 0),
        ("1e999", "5", 1e300, 0),
    ],
)
def test_numeric_within_a_tolerance(response, label, tolerance, right):
    assert score("numeric", response, label, Limits(5.0, 1024, tolerance)) == right


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text(alphabet="0123456789.,-+eE 五٣x", max_size=12))
def test_numeric_raises_nothing(response):
    assert score("numeric", response, "5") in (0.0, 1.0)


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.floats(-1e9, 1e9, allow_nan=False), st.floats(-1e9, 1e9, allow_nan=False))
def test_numeric_follows_the_last_number(first, last):
    assert score("numeric", f"{first!r} then {last!r}.", repr(last)) == 1.0


@pytest.mark.parametrize(
    ("response", "choice"),
    [
        ("B", "B"),
        ("(B)", "B"),
        ("\\boxed{B}", "B"),
        ("\\boxed{\\text{(B)}}", "B"),
        ("\\boxed{\\textbf{B}}", "B"),
        ("$\\boxed{\\mathrm{B}}$", "B"),
        ("\\boxed{B. Paris}", "B"),
        ("\\boxed{A}, no, \\boxed{B}", "B"),
        ("Answer: B", "B"),
        ("The answer is B.", "B"),
        ("The correct answer is (B) Paris, not (C) Rome.", "B"),
        ("**Answer:** **B**", "B"),
        ("answer: $B$", "B"),
        ("The correct option is B because A is too small.", "B"),
        ("(A) is wrong and (C) is wrong, so (B)", "B"),
        ("Not A, not C: B", "B"),
        ("I choose B. I am sure.", "B"),
        ("I think A is it", "A"),
        ("A", "A"),
        ("J", "J"),
        ("K", None),
        ("A cat sat on a mat.", None),
        ("I don't know", None),
        ("\\boxed{7}", None),
        ("\\boxed{Because}", None),
        ("The answer is Because", None),
        ("", None),
    ],
)
def test_multiple_choice(response, choice):
    for letter in "ABJ":
        assert score("multiple_choice", response, letter) == float(letter == choice)


@pytest.mark.parametrize(
    ("label", "letter"),
    [
        ("B", "B"),
        (" (B) ", "B"),
        ("B.", "B"),
        ("B) four", "B"),
        ("b", None),
        ("K", None),
        ("Because", None),
        ("2", None),
    ],
)
def test_letters_of_reference_answers(label, letter):
    assert letter_of(label) == letter


def test_last_boxed_balances_braces():
    assert last_boxed(r"\boxed{1} and \boxed{\frac{1}{2}} end}") == r"\frac{1}{2}"
    assert last_boxed(r"\boxed {\{1\}}") == r"\{1\}"
    assert last_boxed(r"\boxed{1} \boxed 2") == "1"
    assert last_boxed(r"\fbox{1}") == "1"
    assert last_boxed(r"\boxed{1") is None
    assert last_boxed(r"\boxed{1} then \boxed{2") is None
    assert last_boxed("none") is None


@pytest.mark.parametrize(
    ("verifier", "label", "message"),
    [
        ("exact", "  ", "the reference answer is empty"),
        ("exact", None, "the reference answer is empty"),
        ("math", "", "the reference answer is empty"),
        ("math", [], "the reference answer is an empty list"),
        ("math", ["1", ""], "the reference answer is empty"),
        ("math", "####", "the reference answer is empty"),
        ("math", {"a": 1}, "must be text or a number for verifier math, got dict"),
        ("numeric", "inf", "must be a finite number for verifier numeric, got 'inf'"),
        ("numeric", "twelve", "must be a finite number for verifier numeric, got 'twelve'"),
        ("multiple_choice", "7", "must be a letter A to J for verifier multiple_choice, got '7'"),
    ],
)
def test_labels_that_nothing_could_match(verifier, label, message):
    with pytest.raises(ValueError, match=message):
        check_label(verifier, label)


@pytest.mark.parametrize(
    ("verifier", "label"),
    [
        ("exact", "anything"),
        ("math", r"\frac12"),
        ("math", ["1", 2]),
        ("numeric", "1,200.5"),
        ("numeric", 7),
        ("numeric", "steps\n#### 7"),
        ("multiple_choice", "(C)"),
    ],
)
def test_good_labels_pass(verifier, label):
    check_label(verifier, label)


def test_every_text_verifier_scores_its_own_label():
    for name in ("exact", "numeric", "math"):
        assert score(name, "12", "12") == 1.0


@pytest.mark.parametrize("verifier", ["exact", "numeric", "math", "multiple_choice"])
def test_long_responses_are_not_looked_at_in_the_callers_process(verifier):
    assert VERIFIERS[verifier].quick("1 " * QUICK_CHARACTERS, "A", LIMITS) is None


@pytest.mark.parametrize("text", ["answer{}", "answer is{}", "\\boxed{{{}}}", "answer ({}", "A{}"])
@pytest.mark.parametrize("verifier", ["exact", "numeric", "math", "multiple_choice"])
def test_what_runs_in_the_callers_process_is_short_for_every_text(verifier, text):
    response = text.format(" " * (QUICK_CHARACTERS - 20))
    started = time.process_time()
    VERIFIERS[verifier].quick(response, "A", LIMITS)
    assert time.process_time() - started < 0.5
