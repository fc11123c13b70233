"""The rollouts of one step, with their identity."""

# Legend: P = prompts of the step, R = rollouts (R = budget_P.sum()).

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
from openrlhf.trainer.ppo_utils.experience import Experience

from coba_openrlhf.data.prompt_stream import PromptBatch

PADDING = -1


@dataclass(frozen=True)
class RolloutBatch:
    """Rollouts in a fixed order: by prompt, then by index in the group, however they arrived.

    Attributes:
        batch: The prompts.
        experiences: One single-sequence ``Experience`` per rollout.
        group_id_R: Index of the rollout's prompt in ``batch``; ``PADDING`` for padding.
        score_R: Correctness in [0, 1]; NaN where the response could not be scored.
        response_length_R: Generated tokens.
        truncated_R: Whether the response hit the length limit.
        error_R: Whether there is no score because the verifier failed; not given is nowhere.
        reason_R: Why the score is what it is, text; empty where nothing says so, not given is nowhere.
    """

    batch: PromptBatch
    experiences: list[Experience]
    group_id_R: NDArray[np.int64]
    score_R: NDArray[np.float64]
    response_length_R: NDArray[np.int64]
    truncated_R: NDArray[np.bool_]
    error_R: NDArray[np.bool_] = None  # type: ignore[assignment]
    reason_R: NDArray[np.object_] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        if self.error_R is None:
            object.__setattr__(self, "error_R", np.zeros(len(self.experiences), np.bool_))
        if self.reason_R is None:
            object.__setattr__(self, "reason_R", np.full(len(self.experiences), "", object))

    def __len__(self) -> int:
        return len(self.experiences)

    @property
    def scored_R(self) -> NDArray[np.bool_]:
        """Which rollouts have a score."""
        return ~np.isnan(self.score_R)

    @property
    def mixed_R(self) -> NDArray[np.bool_]:
        """Which scored rollouts are in a group whose scores differ."""
        rows = np.flatnonzero(self.scored_R & (self.group_id_R != PADDING))
        lowest_P = np.full(len(self.batch), np.inf)
        highest_P = np.full(len(self.batch), -np.inf)
        np.minimum.at(lowest_P, self.group_id_R[rows], self.score_R[rows])
        np.maximum.at(highest_P, self.group_id_R[rows], self.score_R[rows])
        mixed_R = np.zeros(len(self), np.bool_)
        mixed_R[rows] = (highest_P > lowest_P)[self.group_id_R[rows]]
        return mixed_R

    def observations(self) -> tuple[list[str], list[float], list[int]]:
        """Prompt id, score and tokens of every scored rollout, as ``CapabilityAllocator.observe`` takes them."""
        rows = np.flatnonzero(self.scored_R & (self.group_id_R != PADDING))
        ids = [self.batch.prompt_ids[self.group_id_R[r]] for r in rows]
        # A reward function of the user's own may return an empty response; it still costs a token.
        num_tokens = np.maximum(self.response_length_R[rows], 1)
        return ids, self.score_R[rows].tolist(), num_tokens.tolist()

    def joined(self, other: "RolloutBatch") -> "RolloutBatch":
        """The rollouts of both, in a prompt's group those of ``other`` last; both without padding."""
        assert other.batch is self.batch, "waves must be of the same prompts"
        order = np.argsort(np.concatenate((self.group_id_R, other.group_id_R)), kind="stable")
        experiences = self.experiences + other.experiences
        return RolloutBatch(
            batch=self.batch,
            experiences=[experiences[r] for r in order],
            group_id_R=np.concatenate((self.group_id_R, other.group_id_R))[order],
            score_R=np.concatenate((self.score_R, other.score_R))[order],
            response_length_R=np.concatenate((self.response_length_R, other.response_length_R))[order],
            truncated_R=np.concatenate((self.truncated_R, other.truncated_R))[order],
            error_R=np.concatenate((self.error_R, other.error_R))[order],
            reason_R=np.concatenate((self.reason_R, other.reason_R))[order],
        )

    def metrics(self) -> dict[str, float]:
        """``rollout/*`` and ``verifier/*`` of the step: raw scores and lengths, untouched by shaping and padding."""
        real = self.group_id_R != PADDING
        scored = self.scored_R & real
        return {
            "rollout/reward_mean": float(self.score_R[scored].mean()) if scored.any() else 0.0,
            "rollout/reward_std": float(self.score_R[scored].std(ddof=1)) if scored.sum() > 1 else 0.0,
            "rollout/unscored_rate": float(1.0 - scored.sum() / real.sum()),
            "rollout/response_length_mean": float(self.response_length_R[real].mean()),
            "rollout/truncated_rate": float(self.truncated_R[real].mean()),
            "rollout/num_samples": float(real.sum()),
            **self._verifier_rates(),
        }

    def _verifier_rates(self) -> dict[str, float]:
        """What became of the checks, in shares of the rollouts that add up to 1."""
        real, scored = self.group_id_R != PADDING, self.scored_R
        rows_of = {
            "correct": scored & (self.score_R >= 1.0),
            "wrong": scored & (self.score_R < 1.0),
            "unscorable": ~scored & ~self.error_R,
            "error": ~scored & self.error_R,
        }
        return {f"verifier/{kind}_rate": float(rows_R[real].mean()) for kind, rows_R in rows_of.items()}
