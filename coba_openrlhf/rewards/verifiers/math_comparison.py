"""The part of ``mathematics.py`` that needs math-verify and sympy, which take a second to load.

A parsed answer is math-verify's: a list of the sympy object, where there is one, and the text.
"""

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify
from math_verify.parser import NormalizationConfig, normalize_latex, parse_latex_cached
from sympy import Basic

# Numbers that are further apart are not equal for math-verify, whatever it rounds.
SMALLEST_DIFFERENCE = 1e-5
# A difference of more than this share of the larger number is no matter of rounding.
SMALL_SHARE = 1e-3
SIGNIFICANT_DIGITS = 15


def parse_answer(text: str, *, keep_units: bool) -> list:
    """Parse a text that is an answer as a whole.

    Args:
        text: LaTeX or plain, without the box.
        keep_units: Whether letters after a number are unknowns.

    Raises:
        MemoryError: The memory limit is reached.
    """
    normalized = normalize_latex(text, _normalization(keep_units))
    try:
        parsed = parse_latex_cached(normalized)
    except MemoryError:
        raise
    except Exception:  # whatever the parser stumbles over: there is still the text
        parsed = None
    return [part for part in (parsed, normalized) if part is not None and part != ""]


def parse_response(text: str, *, keep_units: bool) -> list:
    """Find and parse the answer in a text without a box; empty if there is none."""
    latex = LatexExtractionConfig(normalization_config=_normalization(keep_units))
    return parse(text, [latex, ExprExtractionConfig()], parsing_timeout=None)


def are_equal(gold: list, answer: list) -> bool:
    """Whether two parsed answers are equal; the reference answer comes first, ``verify`` is not symmetric."""
    # Sets and relations compare too: x < 7 is (-oo, 7).
    is_equal = verify(gold, answer, timeout_seconds=None, allow_set_relation_comp=True)
    return is_equal and not _is_rounded_away(gold[0], answer[0])


def _is_rounded_away(gold: object, answer: object) -> bool:
    """Whether two numbers differ by a lot of themselves, but by too little for math-verify, which rounds to 1e-6."""
    if not all(isinstance(part, Basic) and part.is_comparable and part.is_finite for part in (gold, answer)):
        return False
    first, second = (part.evalf(SIGNIFICANT_DIGITS) for part in (gold, answer))
    difference = abs(first - second)
    return bool(difference < SMALLEST_DIFFERENCE and difference > SMALL_SHARE * max(abs(first), abs(second)))


def evaluate(parsed: list) -> None:
    """Evaluate a parsed answer for the memory that it takes.

    math-verify passes over every exception while it compares, this one too, and then finds the answer different.

    Raises:
        MemoryError: The memory limit is reached.
    """
    for part in parsed:
        if isinstance(part, Basic):
            try:
                part.doit().evalf()
            except MemoryError:
                raise
            except Exception:  # there is nothing to evaluate, or no value
                continue


def _normalization(keep_units: bool) -> NormalizationConfig:
    return NormalizationConfig(
        basic_latex=True, units=not keep_units, malformed_operators=True, nits=True, boxed="none", equations=False
    )
