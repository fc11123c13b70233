"""Scored rollouts of one step, counted per prompt."""

# Legend: R = rollouts of the step, P = different prompts among them, in order of first appearance.

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_column, check_prompt_ids, check_unit_interval
from .config import AllocationConfig
from .estimates import PromptId


@dataclass(frozen=True, eq=False)
class Observation:
    """Outcomes per prompt.

    Attributes:
        prompt_ids: ``[P]``, without repetition.
        success_P: float64 ``[P]``, successes, in [0, rollouts]; a fraction where the score itself is the success.
        rollouts_P: float64 ``[P]``, scored rollouts, >= 1.
        mixed_P: bool ``[P]``, whether a prompt's rollouts had different outcomes.
        num_tokens_P: float64 ``[P]``, mean tokens of the prompt's responses, > 0; None when nobody counted them.
    """

    prompt_ids: list[PromptId]
    success_P: NDArray[np.float64]
    rollouts_P: NDArray[np.float64]
    mixed_P: NDArray[np.bool_]
    num_tokens_P: NDArray[np.float64] | None = None

    @property
    def pass_rate_P(self) -> NDArray[np.float64]:
        """Realised pass rates, in [0, 1]."""
        return self.success_P / self.rollouts_P

    def metrics(self) -> dict[str, float]:
        """Shares of prompts by outcome.

        They add up to 1, but for constant groups of graded scores strictly between 0 and 1.
        """
        constant_P = ~self.mixed_P
        return {
            "effective_group_rate": float(np.mean(self.mixed_P)),
            "all_correct_rate": float(np.mean(constant_P & (self.success_P == self.rollouts_P))),
            "all_wrong_rate": float(np.mean(constant_P & (self.success_P == 0))),
        }


def count_outcomes(
    prompt_ids: Iterable[PromptId],
    scores: ArrayLike,
    config: AllocationConfig,
    num_tokens: ArrayLike | None = None,
) -> Observation:
    """Count successes and rollouts of every prompt.

    Args:
        prompt_ids: ``[R]``, one per rollout, repeated for a prompt's further rollouts; str or int.
        scores: ``[R]`` real numbers or bools in [0, 1].
        config: For ``success_rule`` and ``success_threshold``. A score of at least the threshold is a success,
            compared in the dtype of the scores, so that 0.7 in float32 reaches a threshold of 0.7.
        num_tokens: ``[R]``, tokens of the responses, > 0.

    Raises:
        ValueError: Empty, of different lengths, or an entry of wrong type or range.
    """
    ids = check_prompt_ids(prompt_ids)
    score_R = check_unit_interval("scores", scores, "biuf")
    if len(score_R) != len(ids):
        raise ValueError(f"scores must have one entry per prompt id, got {len(score_R)} scores for {len(ids)} ids")
    index_of: dict[PromptId, int] = {}
    prompt_R = np.array([index_of.setdefault(prompt_id, len(index_of)) for prompt_id in ids], np.int64)
    rollouts_P = np.bincount(prompt_R).astype(np.float64)

    def sum_P(weight_R: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(prompt_R, weights=weight_R, minlength=len(index_of)).astype(np.float64)

    if config.success_rule == "threshold":
        success_P = sum_P((score_R >= config.success_threshold).astype(np.float64))
        mixed_P = (success_P > 0) & (success_P < rollouts_P)
    else:
        score_R = score_R.astype(np.float64)
        # Rounding must not make a group of ones more than perfect.
        success_P = np.minimum(sum_P(score_R), rollouts_P)
        first_P = np.empty(len(index_of))
        first_P[prompt_R[::-1]] = score_R[::-1]
        mixed_P = sum_P((score_R != first_P[prompt_R]).astype(np.float64)) > 0
    num_tokens_P = None
    if num_tokens is not None:
        num_tokens_P = sum_P(check_column("num_tokens", num_tokens, len(ids), "prompt id", zero=False)) / rollouts_P
    return Observation(list(index_of), success_P, rollouts_P, mixed_P, num_tokens_P)
