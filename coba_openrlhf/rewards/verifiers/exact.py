"""Equality of texts."""

from coba_openrlhf.rewards.outcome import Outcome, correct, wrong

from .base import Limits, TextVerifier, text_label


class ExactVerifier(TextVerifier):
    """1 if the response equals the reference answer up to surrounding white space."""

    def grade(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``."""
        return correct("equal texts") if response.strip() == str(label).strip() else wrong("different texts")

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        text_label(label, "exact")
