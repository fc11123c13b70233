"""Scores of responses: built-in verifiers, a user's file, or a reward server; loads no torch, ray or vllm."""

from .outcome import KINDS, Outcome
from .score_answers import close_pools, score_answers
from .verifier_pool import VerifierPool

__all__ = ["KINDS", "Outcome", "VerifierPool", "close_pools", "score_answers"]
