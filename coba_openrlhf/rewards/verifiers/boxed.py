"""The answer inside a response."""

import re

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
# Most characters between the last box's start and the end of the response that ``quick`` looks at.
QUICK_TAIL = 2_000


def last_boxed(text: str) -> str | None:
    """Content of the last ``\\boxed{...}``, braces balanced.

    Returns:
        None if there is no box, or the last one is never closed.
    """
    start = max(text.rfind("\\boxed"), text.rfind("\\fbox"))
    while start >= 0:
        opening = _BOXED.match(text, start)
        if opening:
            return _balanced(text, opening.end())
        start = max(text.rfind("\\boxed", 0, start), text.rfind("\\fbox", 0, start))
    return None


def _balanced(text: str, start: int) -> str | None:
    """``text`` from ``start`` to the brace that closes what was opened before ``start``."""
    depth = 1
    for brace in re.compile(r"\\[{}]|[{}]").finditer(text, start):
        depth += {"{": 1, "}": -1}.get(brace[0], 0)
        if depth == 0:
            return text[start : brace.start()]
    return None


def has_box(text: str) -> bool:
    """Whether there is a box, closed or not."""
    return _BOXED.search(text) is not None
