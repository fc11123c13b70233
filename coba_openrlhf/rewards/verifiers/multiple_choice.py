"""Letters of multiple-choice questions."""

import re

from coba_openrlhf.rewards.outcome import Outcome, correct, wrong

from .base import Limits, TextVerifier, text_label
from .boxed import last_boxed

_LETTER = r"(?P<letter>[A-J])"
# Possessive (*+): a run of spaces is never tried in other shares, whose number is the square of its length.
_WRAPPED = re.compile(rf"[\s${{}}(\[*]*+(?:\\(?:text|textbf|mathrm|mathbf)\s*\{{)?[\s(\[*]*+{_LETTER}(?![A-Za-z])")
# The first kind that occurs counts, and of it the last place.
_PLACES = (
    re.compile(rf"(?i:\b(?:answer|choice|option)\b)(?i:\s++is)?\s*+[:=]?[\s*$({{\[]*+{_LETTER}(?![A-Za-z'’])"),
    re.compile(rf"\(\s*{_LETTER}\s*\)"),
    # A and I are words too: not before another word.
    re.compile(r"(?<![A-Za-z'’])(?P<letter>[B-HJ]|[AI](?!['’]|\s+[a-z])|A(?=\s+is\b))(?![A-Za-z'’])"),
)


class MultipleChoiceVerifier(TextVerifier):
    """1 if the response chooses the letter of the reference answer, A to J.

    The choice is the letter in the last ``\\boxed{}``; else the last after "answer", "choice" or "option"; else the
    last in parentheses; else the last that stands alone.
    """

    def grade(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``."""
        choice = chosen_letter(response)
        if choice is None:
            return wrong("no letter in the response")
        return (correct if choice == letter_of(str(label)) else wrong)(f"chose {choice}")

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        text = text_label(label, "multiple_choice")
        if letter_of(text) is None:
            raise ValueError(f"the reference answer must be a letter A to J for verifier multiple_choice, got {text!r}")


def letter_of(label: str) -> str | None:
    """The letter of a reference answer such as ``B``, ``(B)``, ``B.`` or ``B) four``; None if it has none."""
    match = re.match(rf"\s*\(?{_LETTER}(?:[).:\s]|$)", label)
    return match["letter"] if match else None


def chosen_letter(response: str) -> str | None:
    """The letter that a response chooses, None if there is none."""
    boxed = last_boxed(response)
    if boxed is not None:
        match = _WRAPPED.match(boxed)
        return match["letter"] if match else None
    for place in _PLACES:
        letters = [match["letter"] for match in place.finditer(response)]
        if letters:
            return letters[-1]
    return None
