"""Built-in verifiers: response text and reference answer in, score in [0, 1] out.

Each looks at the response only, never at the prompt, and raises nothing on hostile text; time limits are the
pool's business (``verifier_pool.py``).
"""

import math
import re
from collections.abc import Callable

Verifier = Callable[[str, str], float]

_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")


def verify_exact(response: str, label: str) -> float:
    """1 if the texts are equal up to surrounding white space."""
    return float(response.strip() == label.strip())


def verify_numeric(response: str, label: str) -> float:
    """1 if the last number in the response equals the label within 1e-6 (relative or absolute)."""
    numbers = [m.group() for m in _NUMBER.finditer(response) if any(c.isdigit() for c in m.group())]
    if not numbers:
        return 0.0
    return float(math.isclose(_to_float(numbers[-1]), _to_float(label), rel_tol=1e-6, abs_tol=1e-6))


def verify_math(response: str, label: str) -> float:
    """1 if math-verify finds the response's final answer equal to the label.

    math-verify's own time limit uses signals and works in a main thread only, so it is switched off here.
    """
    from math_verify import parse, verify

    gold = parse(f"\\boxed{{{label}}}", parsing_timeout=None)
    answer = parse(response, parsing_timeout=None)
    return float(verify(gold, answer, timeout_seconds=None))


def check_label(verifier: str, label: str) -> None:
    """Refuse a reference answer that the verifier could never match.

    Raises:
        ValueError: The label is empty, or not a number for ``numeric``.
    """
    if not label.strip():
        raise ValueError("the reference answer is empty")
    if verifier == "numeric" and not math.isfinite(_to_float(label)):
        raise ValueError(f"the reference answer must be a finite number for coba.verifier: numeric, got {label!r}")


def _to_float(text: str) -> float:
    return float(text.replace(",", "").strip())


VERIFIERS: dict[str, Verifier] = {"exact": verify_exact, "numeric": verify_numeric, "math": verify_math}
