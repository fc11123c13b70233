"""Mathematical answers as texts: what can be told without parsing, and what is put right before it."""

import re
from decimal import Decimal, InvalidOperation

_SPACING = re.compile(r"\\[,;:!]|\\ |~|\\q?quad(?![a-zA-Z])|\\displaystyle")
_SIZES = re.compile(r"\\(?:left|right|[bB]igg?[lr]?)(?![a-zA-Z])")
_DOLLARS = re.compile(r"\\\(|\\\)|(?<!\\)\$")
# Spaces matter between letters and digits only: 1 1/2 is not 11/2.
_LOOSE_SPACE = re.compile(r"(?<![0-9A-Za-z])\s+|\s+(?![0-9A-Za-z])")
_PLAIN_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d{1,300})?(?:\.\d{0,300})?", re.ASCII)
_THOUSANDS = re.compile(r"(?<=\d)(?:\\[,;:! ]\s*|\{,\}\s*|,\\!\s*)(?=\d{3}(?!\d))")
_SPACED_NUMBER = re.compile(r"[-+]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_MIXED = re.compile(r"([-+]?\d+) (\d+)/(\d+)")
_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_POWER_OF_TEN = r"(?:\\times|\\cdot)\s*10\s*\^\s*(?:\{\s*[-+]?\d+\s*\}|\d)"
# \text{erg/s}, \mathrm{~m}\,\mathrm{s}^{-1}, \text{km}/\text{s}
_NAMED = r"\\(?:text|mathrm|mbox|operatorname)\s*\{[^{}]*\}"
_UNIT = (
    rf"(?:\s|~|\\[,;:! ])*{_NAMED}"
    rf"(?:{_NAMED}|\^\s*(?:\{{\s*-?\d+\s*\}}|\d)|\\[,;:! ]|\\cdot(?![a-z])|[/\s~])*"
)
_MEASURED = re.compile(rf"(?P<number>{_NUMBER}\s*(?:{_POWER_OF_TEN}|[eE][-+]?\d{{1,4}})){_UNIT}")
_SCIENTIFIC = re.compile(r"([-+]?\d+(?:\.\d+)?)[eE]\+?(-?\d{1,4})")


def normal_text(text: str) -> str:
    """``text`` without what changes nothing: sizes, spacing, dollars, a full stop; all fractions spelt alike."""
    text = _SPACING.sub(" ", _DOLLARS.sub("", text)).replace("−", "-")
    text = _SIZES.sub("", text).replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac")
    return _LOOSE_SPACE.sub("", text.strip().rstrip(".").strip())


def plain_number(text: str) -> Decimal | None:
    """The number that ``text`` is, written in digits with or without thousands separators; None if it is none."""
    if not any(c.isdigit() for c in text) or not _PLAIN_NUMBER.fullmatch(text):
        return None
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


def prepared(text: str, *, keep_units: bool = True) -> str:
    """``text`` as the parser understands it better: see the comments.

    Args:
        text: LaTeX or plain, without the box.
        keep_units: Whether a unit after a power of ten stays; after other numbers it is the parser that leaves it out.
    """
    text = _DOLLARS.sub("", text).replace("−", "-").strip()
    text = re.sub(r"(?:\s|\\q?quad(?![a-zA-Z])|\\[,;:!])+$", "", text)
    text = re.sub(r"^\\(?:approx|simeq)(?![a-zA-Z])", "", text).rstrip(".").strip()  # a relation, a full stop
    text = _THOUSANDS.sub("", text)  # 10\,000, 10{,}000
    if not keep_units and (measured := _MEASURED.fullmatch(text)):  # 4.5 \times 10^{33} \text{ erg/s}
        text = measured["number"]
    if _SPACED_NUMBER.fullmatch(text):  # 10 000
        return text.replace(" ", "")
    if mixed := _MIXED.fullmatch(text):  # 3 1/4
        return f"{mixed[1]}\\frac{{{mixed[2]}}}{{{mixed[3]}}}"
    if scientific := _SCIENTIFIC.fullmatch(text):  # 1e3, where e is not Euler's number
        return f"{scientific[1]} \\times 10^{{{scientific[2]}}}"
    return text


# Short words that are no products of unknowns.
_UNITS = frozenset(
    ("cm", "mm", "km", "kg", "ft", "lb", "hr", "oz", "mg", "ml", "mi", "am", "pm", "st", "nd", "rd", "th")
)
_JOINING = frozenset(("in", "and", "or", "of", "an"))
_COMMANDS = re.compile(
    r"\\(?:text|mathrm|mbox|operatorname)\s*\{[^{}]*\}|\\[a-zA-Z]+|\\begin\{[a-z]+\}|\\end\{[a-z]+\}"
)
_WORDS = re.compile(r"[A-Za-z]+")


def has_symbols(text: str) -> bool:
    """Whether single letters stand for unknowns, so that ``6m`` is a product and not six metres."""
    if _SCIENTIFIC.fullmatch(text.strip()):
        return False
    return any(len(word) <= 2 and word not in _UNITS | _JOINING for word in _WORDS.findall(_COMMANDS.sub(" ", text)))
