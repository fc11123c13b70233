"""Pass rates of prompts, estimated from their last visits."""

# Legend: P = prompts of one call, K = prompts ever seen (rows beyond it are spare), W = visits remembered.

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_keys

PromptId = str | int


class WindowPassRate:
    """Successes / rollouts, pooled over the last ``window`` visits of each prompt.

    One visit is one ``update`` that contains the prompt. Counts live in two arrays and a prompt's row in a
    dict, so that a step costs the same after a million prompts as after a thousand.

    Args:
        window: Visits remembered per prompt, >= 1.
        unseen_pass_rate: Estimate for a prompt without history, in [0, 1].
    """

    def __init__(self, window: int, unseen_pass_rate: float) -> None:
        self._unseen_pass_rate = unseen_pass_rate
        self._row_of: dict[PromptId, int] = {}
        # Oldest visit first; visits that have not happened yet are 0 of 0 and drop out of the pooled sums.
        self._successes_KW = np.zeros((1024, window), np.int32)
        self._rollouts_KW = np.zeros((1024, window), np.int32)

    def estimate(self, prompt_ids: Sequence[PromptId]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """``(pass_rate_P, seen_P)``: float64 ``[P]`` in [0, 1], and whether there is any history, ``[P]``."""
        row_P = np.array([self._row_of.get(prompt_id, -1) for prompt_id in prompt_ids], np.int64)
        seen_P = row_P >= 0
        rows = row_P[seen_P]
        pass_rate_P = np.full(len(row_P), self._unseen_pass_rate)
        pass_rate_P[seen_P] = self._successes_KW[rows].sum(axis=1) / self._rollouts_KW[rows].sum(axis=1)
        return pass_rate_P, seen_P

    def update(
        self, prompt_ids: Sequence[PromptId], successes_P: NDArray[np.int64], rollouts_P: NDArray[np.int64]
    ) -> None:
        """Add one visit of each prompt.

        Args:
            prompt_ids: ``[P]``, without repetition.
            successes_P: ``[P]``, successful rollouts, in [0, rollouts].
            rollouts_P: ``[P]``, rollouts, >= 1.
        """
        rows = np.array([self._row_of.setdefault(prompt_id, len(self._row_of)) for prompt_id in prompt_ids], np.int64)
        self._reserve(len(self._row_of))
        for counts_KW, newest_P in ((self._successes_KW, successes_P), (self._rollouts_KW, rollouts_P)):
            counts_KW[rows, :-1] = counts_KW[rows, 1:]
            counts_KW[rows, -1] = newest_P

    def _reserve(self, num_prompts: int) -> None:
        """Double the arrays until they have ``num_prompts`` rows: a constant cost per new prompt."""
        capacity, window = self._successes_KW.shape
        if num_prompts <= capacity:
            return
        grown = max(num_prompts, 2 * capacity)
        for name in ("_successes_KW", "_rollouts_KW"):
            counts_KW = np.zeros((grown, window), np.int32)
            counts_KW[:capacity] = getattr(self, name)
            setattr(self, name, counts_KW)

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state; ids are list entries, not keys, so that an int stays an int."""
        num_prompts = len(self._row_of)
        return {
            "prompt_ids": list(self._row_of),
            "successes": self._successes_KW[:num_prompts].tolist(),
            "rollouts": self._rollouts_KW[:num_prompts].tolist(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, or the counts are not one row of ``window`` visits per prompt.
        """
        check_keys("pass-rate state", state, ("prompt_ids", "successes", "rollouts"))
        row_of = {prompt_id: row for row, prompt_id in enumerate(state["prompt_ids"])}
        shape = (len(row_of), self._successes_KW.shape[1])
        successes_KW = np.array(state["successes"], np.int32).reshape(-1, shape[1])
        rollouts_KW = np.array(state["rollouts"], np.int32).reshape(-1, shape[1])
        if successes_KW.shape != shape or rollouts_KW.shape != shape:
            raise ValueError(
                "pass-rate state must have successes and rollouts of shape [prompts, window] = "
                f"{shape}, got {successes_KW.shape} and {rollouts_KW.shape}"
            )
        self._row_of, self._successes_KW, self._rollouts_KW = row_of, successes_KW, rollouts_KW
