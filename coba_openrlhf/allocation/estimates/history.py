"""What every source of pass rates remembers of a prompt, and how it becomes an estimate."""

# Legend: P = prompts of one call, K = prompts ever seen.

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..checks import check_keys, check_numbers, check_saved_ids
from ..problem import Estimates
from .rows import PromptId, PromptRows

# A prior of exactly 0 or 1 would be certain for ever.
_LEAST_PRIOR = 0.01


class History(ABC):
    """Outcomes per prompt; the subclasses differ in what they keep of older visits.

    Args:
        prior_strength: Rollouts that the prior of an unseen prompt counts as, > 0.
        optimism: Posterior standard deviations added to estimates below one half, >= 0.
        **columns: What the subclass keeps per prompt (``PromptRows``).
    """

    def __init__(self, prior_strength: float, optimism: float, **columns: int) -> None:
        self._prior_strength = prior_strength
        self._optimism = optimism
        # Of the last visit: its pass rate, the mean tokens of its responses (0 = not told), its policy version.
        self._rows = PromptRows(last_rate=0, num_tokens=0, version=0, **columns)

    def __len__(self) -> int:
        return len(self._rows)

    @abstractmethod
    def _counts(self, rows: NDArray[np.int64], version: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Successes and failures that still count at a policy version, both ``[P]``."""

    @abstractmethod
    def _point(
        self,
        success_P: NDArray[np.float64],
        failure_P: NDArray[np.float64],
        posterior_mean_P: NDArray[np.float64],
        seen_P: NDArray[np.bool_],
    ) -> NDArray[np.float64]:
        """The pass rate, from the counts and the posterior mean."""

    @abstractmethod
    def _add(
        self, rows: NDArray[np.int64], success_P: NDArray[np.float64], failure_P: NDArray[np.float64], version: int
    ) -> None:
        """Add one visit of each row."""

    def estimate(
        self,
        prompt_ids: Sequence[PromptId],
        prior: float,
        version: int,
        probe: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    ) -> Estimates:
        """What is believed about prompts.

        Args:
            prompt_ids: ``[P]``.
            prior: Pass rate of a prompt nobody knows, in [0, 1].
            version: Of the policy that is about to generate.
            probe: Successes and rollouts, both ``[P]``, of a first wave by this policy; not remembered.
        """
        row_P = self._rows.find(prompt_ids)
        seen_P = row_P >= 0
        rows = row_P[seen_P]
        success_P, failure_P = np.zeros(len(row_P)), np.zeros(len(row_P))
        success_P[seen_P], failure_P[seen_P] = self._counts(rows, version)
        if probe is not None:
            success_P = success_P + probe[0]
            failure_P = failure_P + (probe[1] - probe[0])
        mean = min(max(prior, _LEAST_PRIOR), 1 - _LEAST_PRIOR)
        a_P, b_P = success_P + self._prior_strength * mean, failure_P + self._prior_strength * (1 - mean)
        known_P = seen_P if probe is None else seen_P | (probe[1] > 0)
        pass_rate_P = self._point(success_P, failure_P, a_P / (a_P + b_P), known_P)
        if self._optimism:
            deviation_P = np.sqrt(a_P * b_P / (a_P + b_P + 1)) / (a_P + b_P)
            # Towards one half, where a rollout tells most, and never beyond: solved prompts stay solved.
            raised_P = np.minimum(pass_rate_P + self._optimism * deviation_P, 0.5)
            pass_rate_P = np.maximum(pass_rate_P, raised_P)
        last_rate_P = pass_rate_P.copy()
        last_rate_P[seen_P] = self._rows["last_rate"][rows]
        version_P = np.full(len(row_P), -1.0)
        version_P[seen_P] = self._rows["version"][rows]
        return Estimates(pass_rate_P, a_P, b_P, last_rate_P, self._num_tokens(rows, seen_P), seen_P, version_P)

    def _num_tokens(self, rows: NDArray[np.int64], seen_P: NDArray[np.bool_]) -> NDArray[np.float64]:
        num_tokens_P = np.zeros(len(seen_P))
        num_tokens_P[seen_P] = self._rows["num_tokens"][rows]
        known_P = num_tokens_P > 0
        num_tokens_P[~known_P] = num_tokens_P[known_P].mean() if known_P.any() else 1.0
        return num_tokens_P

    def update(
        self,
        prompt_ids: Sequence[PromptId],
        success_P: NDArray[np.float64],
        rollouts_P: NDArray[np.float64],
        num_tokens_P: NDArray[np.float64] | None,
        version: int,
    ) -> None:
        """Add one visit of each prompt.

        Args:
            prompt_ids: ``[P]``, without repetition.
            success_P: ``[P]``, successes, in [0, rollouts].
            rollouts_P: ``[P]``, rollouts, >= 1.
            num_tokens_P: ``[P]``, mean tokens of the responses, if known.
            version: Of the policy that generated.
        """
        rows = self._rows.add(prompt_ids)
        self._add(rows, success_P, rollouts_P - success_P, version)
        self._rows["last_rate"][rows] = success_P / rollouts_P
        self._rows["version"][rows] = np.maximum(self._rows["version"][rows], version)
        if num_tokens_P is not None:
            self._rows["num_tokens"][rows] = num_tokens_P

    def keep(self, prompt_ids: Iterable[PromptId]) -> list[PromptId]:
        """Forget all other prompts; returns the forgotten ones."""
        return self._rows.keep(prompt_ids)

    @property
    def prompt_ids(self) -> list[PromptId]:
        """Every prompt with a history."""
        return self._rows.prompt_ids

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        return self._rows.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, ids are no unique str or int, or the numbers are not finite counts >= 0 of
                the right shape.
        """
        current = self._rows.state_dict()
        check_keys("pass-rate state", state, current)
        ids = check_saved_ids("pass-rate state prompt_ids", state["prompt_ids"])
        columns = {
            name: check_numbers(f"pass-rate state {name}", state[name], (len(ids), *self._rows[name].shape[1:]))
            for name in current
            if name != "prompt_ids"
        }
        self._check_columns(columns)
        self._rows.load(ids, columns)

    def _check_columns(self, columns: dict[str, NDArray[np.float64]]) -> None:
        """Raise ValueError for numbers that cannot belong together."""
        if (columns["last_rate"] > 1).any():
            raise ValueError("pass-rate state last_rate must lie in [0, 1]")
