"""One step of a run as its log has it."""

# Legend: P = prompts of a step.

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.allocation import Observation


@dataclass(frozen=True, eq=False)
class LoggedStep:
    """One step: what was believed, given and seen. All arrays ``[P]``, in the order of the batch.

    Attributes:
        step: Number of the step, from 1.
        policy_version: Of the policy that generated.
        prompt_ids: ``[P]``.
        pass_rate_P: Estimates that the budgets were made from, in [0, 1].
        seen_P: Whether the prompt had a history.
        budget_P: int64, rollouts, >= 1.
        wave_scored_P: Scored rollouts of the first wave; 0 in a run without.
        wave_success_P: Successes among them.
        scored_P: Scored rollouts, both waves.
        success_P: Successes among them; fractions with graded scores.
        mixed_P: Whether the scored outcomes differ.
        tokens_P: Tokens of all responses.
        scored_tokens_P: Tokens of the scored ones.
    """

    step: int
    policy_version: int
    prompt_ids: list[str]
    pass_rate_P: NDArray[np.float64]
    seen_P: NDArray[np.bool_]
    budget_P: NDArray[np.int64]
    wave_scored_P: NDArray[np.float64]
    wave_success_P: NDArray[np.float64]
    scored_P: NDArray[np.float64]
    success_P: NDArray[np.float64]
    mixed_P: NDArray[np.bool_]
    tokens_P: NDArray[np.float64]
    scored_tokens_P: NDArray[np.float64]

    @property
    def total_budget(self) -> int:
        """Rollouts of the step."""
        return int(self.budget_P.sum())

    @property
    def known_P(self) -> NDArray[np.bool_]:
        """Whether estimates rested on a history or a first wave, ``[P]``."""
        return self.seen_P | (self.wave_scored_P > 0)

    @property
    def right_P(self) -> NDArray[np.float64]:
        """Successes as a number of rollouts of one kind, the others being of the other kind, ``[P]``.

        Not the same only for graded scores that are equal and strictly between 0 and 1: such a group is as constant as
        one of failures.
        """
        return np.where(self.mixed_P | (self.success_P == self.scored_P), self.success_P, 0.0)

    def observation(self) -> Observation | None:
        """The outcomes as an allocator takes them; None if nothing was scored."""
        rows = np.flatnonzero(self.scored_P)
        if not rows.size:
            return None
        scored_P = self.scored_P[rows]
        # Responses without a token (a user's own reward function) still cost one.
        num_tokens_P = np.maximum(self.scored_tokens_P[rows] / scored_P, 1.0)
        ids = [self.prompt_ids[row] for row in rows]
        return Observation(ids, self.success_P[rows], scored_P, self.mixed_P[rows], num_tokens_P)

    def first_wave(self) -> tuple[list[str], list[float]]:
        """Prompt ids and scores of rollouts that have the counts of the first wave, one row each."""
        ids: list[str] = []
        scores: list[float] = []
        counts = zip(self.prompt_ids, self.wave_scored_P.tolist(), self.wave_success_P.tolist(), strict=True)
        for prompt_id, scored, successes in counts:
            # Ones and at most one fraction: their sum is the logged number to the last bit.
            wave = [1.0] * int(successes) + ([successes % 1] if successes % 1 else [])
            ids += [prompt_id] * int(scored)
            scores += wave + [0.0] * (int(scored) - len(wave))
        return ids, scores
