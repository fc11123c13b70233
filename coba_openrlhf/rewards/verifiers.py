"""Built-in verifiers: response text and reference answer in, score in [0, 1] out.

Each looks at the response only, never at the prompt, and raises nothing on hostile text; time limits are the
pool's business (``verifier_pool.py``).
"""

import math
import re
from collections.abc import Callable

Verifier = Callable[[str, str], float]

_NUMBER = re.compile(r"[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)(?:[eE][-+]?\d+)?")


def verify_exact(response: str, label: str) -> float:
    """1 if the texts are equal up to surrounding white space."""
    return float(response.strip() == label.strip())


def verify_numeric(response: str, label: str) -> float:
    """1 if the last number in the response equals the label within 1e-6 (relative or absolute)."""
    numbers = _NUMBER.findall(response)
    if not numbers:
        return 0.0
    return float(math.isclose(_to_float(numbers[-1]), _to_float(label), rel_tol=1e-6, abs_tol=1e-6))


def verify_math(response: str, label: str) -> float:
    """1 if math-verify finds the response's final answer equal to the label.

    The last ``\\boxed{}`` is the answer if there is one, otherwise what math-verify finds in the whole text.
    math-verify's own time limit uses signals and works in a main thread only, so it is switched off here.
    """
    from math_verify import parse, verify

    gold = parse(f"\\boxed{{{label}}}", parsing_timeout=None)
    boxed = last_boxed(response)
    answer = parse(response if boxed is None else f"\\boxed{{{boxed}}}", parsing_timeout=None)
    # Sets and relations compare too: x < 7 is (-oo, 7).
    return float(verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True))


def last_boxed(text: str) -> str | None:
    """Content of the last ``\\boxed{...}`` with balanced braces, None if there is none."""
    start = text.rfind("\\boxed{")
    if start < 0:
        return None
    depth = 0
    for i in range(start + len("\\boxed"), len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return text[start + len("\\boxed{") : i]
    return None


def check_label(verifier: str, label: str) -> None:
    """Refuse a reference answer that the verifier could never match.

    Raises:
        ValueError: The label is empty, or not a number for ``numeric``.
    """
    if not label.strip():
        raise ValueError("the reference answer is empty")
    if verifier == "numeric" and not _is_finite_number(label):
        raise ValueError(f"the reference answer must be a finite number for coba.verifier: numeric, got {label!r}")


def _is_finite_number(text: str) -> bool:
    try:
        return math.isfinite(_to_float(text))
    except ValueError:
        return False


def _to_float(text: str) -> float:
    return float(text.replace(",", "").strip())


VERIFIERS: dict[str, Verifier] = {"exact": verify_exact, "numeric": verify_numeric, "math": verify_math}
