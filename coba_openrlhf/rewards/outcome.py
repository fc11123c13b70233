"""What became of checking one response."""

from dataclasses import dataclass
from typing import Literal

Kind = Literal["correct", "wrong", "unscorable", "error"]
KINDS: tuple[Kind, ...] = ("correct", "wrong", "unscorable", "error")


@dataclass(frozen=True)
class Outcome:
    """Result of one check.

    Attributes:
        score: In [0, 1]; None when the check did not come to an end.
        reason: Why, in a few words.
        is_error: The verifier itself failed; ``score`` is None then.
    """

    score: float | None
    reason: str
    is_error: bool = False

    @property
    def kind(self) -> Kind:
        """``correct`` (score 1), ``wrong`` (any lower score), ``unscorable`` (a limit was hit) or ``error``."""
        if self.score is not None:
            return "correct" if self.score >= 1.0 else "wrong"
        return "error" if self.is_error else "unscorable"


def excerpt(text: str) -> str:
    """The beginning of a text, one line that can be printed whatever it holds."""
    return " ".join(text[:80].encode("utf-8", "replace").decode().split()).replace("\0", "?")


def correct(reason: str) -> Outcome:
    """Score 1."""
    return Outcome(1.0, reason)


def wrong(reason: str) -> Outcome:
    """Score 0."""
    return Outcome(0.0, reason)


def unscorable(reason: str) -> Outcome:
    """No score, for want of time or memory."""
    return Outcome(None, reason)


def failed(error: BaseException) -> Outcome:
    """No score, because the verifier raised ``error``."""
    return Outcome(None, f"{type(error).__name__}: {error}"[:500].encode("utf-8", "replace").decode(), is_error=True)
