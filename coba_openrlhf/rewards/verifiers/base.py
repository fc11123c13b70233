"""What a verifier is."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from coba_openrlhf.rewards.outcome import Outcome

# Longer responses are never looked at in the caller's process.
QUICK_CHARACTERS = 20_000


@dataclass(frozen=True)
class Limits:
    """Limits of one check.

    Attributes:
        seconds: Wall-clock time.
        memory_mb: Memory in MiB.
        tolerance: Most that numbers may differ and still be equal (``numeric``), relative or absolute.
    """

    seconds: float
    memory_mb: int
    tolerance: float = 1e-6


class Verifier(ABC):
    """Scores a response against a reference answer.

    It looks at the response only, never at the prompt. ``verify`` runs in a process that is killed at its limits
    (``checker.py``); ``quick`` and ``check_label`` run in the caller's and must be short and safe for every text.
    """

    # Seconds that a check may run over its limit because it keeps the time itself.
    grace_seconds: float = 0.0

    @abstractmethod
    def verify(self, response: str, label: object, limits: Limits) -> Outcome:
        """Score ``response``.

        Args:
            response: What the policy wrote, without the prompt.
            label: The reference answer, for which ``check_label`` raises nothing.
            limits: Those of this check.

        Raises:
            Exception: Anything: the outcome is then ``error``.
        """

    @abstractmethod
    def check_label(self, label: object) -> None:
        """Refuse a reference answer that no response could match.

        Raises:
            ValueError: With the rule and the value.
        """

    def quick(self, response: str, label: object, limits: Limits) -> Outcome | None:
        """What ``verify`` would return, where that can be told in microseconds; else None."""
        return None

    def load(self) -> None:
        """Import what ``verify`` needs, so that the first check's time is its own."""
        return

    def require_installed(self) -> None:
        """Refuse to work without an optional dependency.

        Raises:
            ImportError: It is missing; the message says how to install it.
        """
        return


class TextVerifier(Verifier):
    """A verifier whose whole work is short unless the response is long."""

    @abstractmethod
    def grade(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``verify``."""

    def verify(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``."""
        return self.grade(response, label, limits)

    def quick(self, response: str, label: object, limits: Limits) -> Outcome | None:
        """See ``Verifier``."""
        return self.grade(response, label, limits) if len(response) <= QUICK_CHARACTERS else None


def reference_text(label: object) -> str:
    """The reference answer as text; in an answer of GSM8K's form it is what follows the last ``####``."""
    return str(label).rpartition("####")[2].strip()


def text_label(label: object, verifier: str) -> str:
    """A reference answer that must be text or a number, as text.

    Raises:
        ValueError: It is something else, or empty.
    """
    if label is None or (isinstance(label, str) and not label.strip()):
        raise ValueError("the reference answer is empty")
    if not isinstance(label, str) and not hasattr(label, "__float__"):
        raise ValueError(
            f"the reference answer must be text or a number for verifier {verifier}, "
            f"got {type(label).__name__}: {label!r:.100}"
        )
    return str(label)
