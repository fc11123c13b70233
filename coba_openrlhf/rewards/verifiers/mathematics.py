"""Mathematical answers, compared by math-verify."""

import logging

from coba_openrlhf.rewards.outcome import Outcome, correct, excerpt, wrong

from .answer_text import has_symbols, normal_text, plain_number, prepared
from .base import QUICK_CHARACTERS, Limits, Verifier, reference_text, text_label
from .boxed import has_box, last_boxed

# Further ones are no answer to anything; their parsing would only use up the time limit.
LONGEST_ANSWER = 10_000
# Where an answer without a box is looked for, in characters from the end.
SEARCHED_TAIL = 20_000
# math-verify rounds decimals to six places, so numbers further apart are different for it too.
CERTAINLY_DIFFERENT = 1e-5
QUICK_ANSWER = 500


class MathVerifier(Verifier):
    """1 if the response's final answer equals the reference answer as mathematics.

    The last ``\\boxed{}`` is the answer if there is one (if it is never closed there is no answer), otherwise what
    math-verify finds in the last 20,000 characters. A list as reference answer needs all its members.
    """

    def verify(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``; math-verify's own time limits need a main thread and are off."""
        from .math_comparison import are_equal, evaluate, parse_answer, parse_response

        gold = gold_text(label)
        keep_units = has_symbols(gold)
        if has_box(response):
            answer = last_boxed(response)
            if answer is None:
                return wrong("the last box is not closed")
            if _is_same_text(answer, gold):
                return correct("equal texts")
            if len(answer) > LONGEST_ANSWER:
                return wrong(f"the answer has more than {LONGEST_ANSWER:,} characters")
            parsed = parse_answer(prepared(answer, keep_units=keep_units), keep_units=keep_units)
        else:
            parsed = parse_response(response[-SEARCHED_TAIL:], keep_units=keep_units)
        if not parsed:
            return wrong("no answer found")
        if are_equal(parse_answer(prepared(gold, keep_units=keep_units), keep_units=keep_units), parsed):
            return correct("equal by math-verify")
        evaluate(parsed)
        return wrong(f"the answer is {excerpt(parsed[-1])}" if isinstance(parsed[-1], str) else "another answer")

    def quick(self, response: str, label: object, limits: Limits) -> Outcome | None:
        """See ``Verifier``: texts that are equal, and numbers written in digits."""
        if len(response) > QUICK_CHARACTERS:
            return None
        answer, gold = last_boxed(response), gold_text(label)
        if answer is None or len(answer) > QUICK_ANSWER or len(gold) > QUICK_ANSWER:
            return None
        if _is_same_text(answer, gold):
            return correct("equal texts")
        number, expected = plain_number(normal_text(answer)), plain_number(normal_text(gold))
        if number is None or expected is None:
            return None
        if number == expected:
            return correct("equal numbers")
        return wrong("different numbers") if abs(number - expected) > CERTAINLY_DIFFERENT else None

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        members = label if isinstance(label, list | tuple) else [label]
        if not members:
            raise ValueError("the reference answer is an empty list")
        for member in members:
            if not reference_text(text_label(member, "math")):
                raise ValueError("the reference answer is empty")

    def load(self) -> None:
        """See ``Verifier``; sympy takes a second."""
        from . import math_comparison

        logging.getLogger("math_verify").setLevel(logging.ERROR)
        # The first use compiles the grammar and the expressions that answers are found by.
        math_comparison.parse_response("The final answer is $\\frac{1}{2}$. I hope it is correct.", keep_units=False)


def gold_text(label: object) -> str:
    """The reference answer as one text; the members of a list are joined as a list of mathematics."""
    if isinstance(label, list | tuple):
        return " \\text{ and } ".join(reference_text(member) for member in label)
    return reference_text(label)


def _is_same_text(answer: str, gold: str) -> bool:
    answer = normal_text(answer)
    return bool(answer) and answer == normal_text(gold)
