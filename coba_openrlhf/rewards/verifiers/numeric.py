"""Equality of numbers."""

import math
import re

from coba_openrlhf.rewards.outcome import Outcome, correct, wrong

from .base import Limits, TextVerifier, reference_text, text_label
from .boxed import last_boxed

_NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")


class NumericVerifier(TextVerifier):
    """1 if the response's answer equals the reference answer within ``limits.tolerance``, relative or absolute.

    The answer is the last number in the last ``\\boxed{}``, or in the response if there is no number in a box.
    """

    def grade(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``.

        Raises:
            ValueError: The reference answer is no number.
        """
        numbers = _NUMBER.findall(last_boxed(response) or "") or _NUMBER.findall(response)
        if not numbers:
            return wrong("no number in the response")
        answer, expected = _to_float(numbers[-1]), _to_float(reference_text(label))
        if math.isclose(answer, expected, rel_tol=limits.tolerance, abs_tol=limits.tolerance):
            return correct("equal numbers")
        return wrong(f"the last number is {answer:g}")

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        text = reference_text(text_label(label, "numeric"))
        if not _is_finite_number(text):
            raise ValueError(f"the reference answer must be a finite number for verifier numeric, got {text!r}")


def _is_finite_number(text: str) -> bool:
    try:
        return math.isfinite(_to_float(text))
    except ValueError:
        return False


def _to_float(text: str) -> float:
    return float(text.replace(",", "").strip())
