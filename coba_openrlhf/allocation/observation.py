"""Scored rollouts of one step, counted per prompt."""

# Legend: R = rollouts of the step, P = different prompts among them, in order of first appearance.

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .checks import check_prompt_ids, check_unit_interval
from .pass_rate import PromptId


@dataclass(frozen=True, eq=False)
class Observation:
    """Outcomes per prompt.

    Attributes:
        prompt_ids: ``[P]``, without repetition.
        successes_P: int64 ``[P]``, rollouts whose score reached the threshold.
        rollouts_P: int64 ``[P]``, scored rollouts, >= 1.
    """

    prompt_ids: list[PromptId]
    successes_P: NDArray[np.int64]
    rollouts_P: NDArray[np.int64]

    @property
    def failure_rate(self) -> float:
        """1 - mean over prompts, not over rollouts, of the realised pass rates; in [0, 1]."""
        return 1 - float(np.mean(self.successes_P / self.rollouts_P))

    @property
    def all_correct_rate(self) -> float:
        """Share of prompts with successes only."""
        return float(np.mean(self.successes_P == self.rollouts_P))

    @property
    def all_wrong_rate(self) -> float:
        """Share of prompts without any success."""
        return float(np.mean(self.successes_P == 0))

    @property
    def effective_group_rate(self) -> float:
        """Share of prompts with both outcomes."""
        return float(np.mean((self.successes_P > 0) & (self.successes_P < self.rollouts_P)))


def count_outcomes(prompt_ids: Iterable[PromptId], scores: ArrayLike, success_threshold: float) -> Observation:
    """Count successes and rollouts of every prompt.

    Args:
        prompt_ids: ``[R]``, one per rollout, repeated for a prompt's further rollouts; str or int.
        scores: ``[R]`` real numbers or bools in [0, 1].
        success_threshold: A score of at least this is a success; compared in the dtype of the scores, so that
            0.7 in float32 reaches a threshold of 0.7.

    Raises:
        ValueError: Empty, of different lengths, or an entry of wrong type or range.
    """
    ids = check_prompt_ids(prompt_ids)
    score_R = check_unit_interval("scores", scores, "biuf")
    if len(score_R) != len(ids):
        raise ValueError(f"scores must have one entry per prompt id, got {len(score_R)} scores for {len(ids)} ids")
    index_of: dict[PromptId, int] = {}
    prompt_R = np.array([index_of.setdefault(prompt_id, len(index_of)) for prompt_id in ids], np.int64)
    return Observation(
        prompt_ids=list(index_of),
        successes_P=np.bincount(prompt_R[score_R >= success_threshold], minlength=len(index_of)),
        rollouts_P=np.bincount(prompt_R),
    )
