"""The built-in verifiers: a response and a reference answer in, an ``Outcome`` out."""

from .base import Limits, Verifier
from .code import CodeVerifier
from .exact import ExactVerifier
from .mathematics import MathVerifier
from .multiple_choice import MultipleChoiceVerifier
from .numeric import NumericVerifier
from .reasoning_gym import ReasoningGymVerifier

VERIFIERS: dict[str, Verifier] = {
    "exact": ExactVerifier(),
    "numeric": NumericVerifier(),
    "math": MathVerifier(),
    "multiple_choice": MultipleChoiceVerifier(),
    "code": CodeVerifier(),
    "reasoning_gym": ReasoningGymVerifier(),
}

__all__ = ["VERIFIERS", "Limits", "Verifier"]
