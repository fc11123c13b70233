"""Which prompts of earlier steps are worth meeting again."""

# Legend: P = prompts of one call, K = prompts that can be drawn.

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .allocator import Allocator
from .checks import check_int, check_keys, check_prompt_ids, check_real, check_saved_ids
from .estimates import PromptId
from .problem import Estimates

STATE_VERSION = 1


def expected_signal(estimates: Estimates, group_size: int) -> NDArray[np.float64]:
    """Probability of a group with both outcomes times the expected failure rate, under the posterior, ``[P]``.

        E[1 - p^n - (1-p)^n] * E[1-p],   E[p^n] = prod_{j<n} (a+j) / (a+b+j)

    The first factor is what the rule ``mixed`` adds up: such a group is the only kind that teaches. The second is
    how much there is left to learn.

    Args:
        estimates: ``P`` Beta distributions of pass rates.
        group_size: Rollouts of a group, n >= 1.
    """
    a_P, b_P = estimates.success_P, estimates.failure_P
    all_right_P, all_wrong_P = np.ones_like(a_P), np.ones_like(a_P)
    for rollout in range(group_size):
        all_right_P *= (a_P + rollout) / (a_P + b_P + rollout)
        all_wrong_P *= (b_P + rollout) / (a_P + b_P + rollout)
    signal_P: NDArray[np.float64] = np.maximum(1 - all_right_P - all_wrong_P, 0) * b_P / (a_P + b_P)
    return signal_P


class PromptRevisits:
    """Fills a share of every step with prompts of earlier steps, drawn by what they are expected to teach.

        regular, next of the data ──┐
                                    ├──> step
        visited before ──> draw ────┘

    A prompt is drawn with probability proportional to ``expected_signal ** sharpness``, without replacement. That is
    a choice of prompts on top of a choice of budgets: the policy's solved and hopeless prompts come round with the
    data, and those at the edge of what it can do come more often. Uncertain prompts are drawn too, since forgetting
    posteriors bring them back towards the prior. A prompt of the last ``cooldown`` steps is left alone: meeting the
    same few again and again cost more than their signal was worth (docs/learning.md).

    Args:
        share: Of a step's prompts, in [0, 1).
        cooldown: Steps after which a prompt may be drawn again, >= 0.
        sharpness: 0 draws visited prompts evenly, more prefers signal more, in [0, 100].
        seed: Of the draws, >= 0.

    Raises:
        ValueError: An argument is out of its range.
    """

    def __init__(self, share: float = 0.5, cooldown: int = 2, sharpness: float = 2.0, seed: int = 0) -> None:
        self._share = check_real("revisit share", share, "[)", 0, 1)
        self._cooldown = check_int("revisit cooldown", cooldown, 0, 10_000)
        self._sharpness = check_real("revisit sharpness", sharpness, "[]", 0, 100)
        self._rng = np.random.default_rng([check_int("revisit seed", seed, 0), 1])
        self._recent: deque[list[PromptId]] = deque(maxlen=self._cooldown)

    def count(self, allocator: Allocator, num_prompts: int) -> int:
        """How many prompts of a step come again: none before a step's worth can be drawn from, and never all."""
        wanted = min(round(self._share * num_prompts), num_prompts - 1)
        return wanted if wanted and len(self._drawable(allocator)) >= num_prompts else 0

    def draw(
        self, allocator: Allocator, regular_ids: Iterable[PromptId], count: int, group_size: float
    ) -> list[PromptId]:
        """Prompts to be met again in this step; to be called once per step, also when ``count`` is 0.

        Args:
            allocator: Knows what was visited, and how it went.
            regular_ids: The other prompts of the step, at least one.
            count: As ``self.count`` told.
            group_size: Mean rollouts of a group.

        Returns:
            ``count`` ids, none of them in ``regular_ids``.
        """
        regular = check_prompt_ids(regular_ids)
        drawn: list[PromptId] = []
        if count:
            taken = set(regular)
            drawable = [prompt_id for prompt_id in self._drawable(allocator) if prompt_id not in taken]
            assert count <= len(drawable), (count, len(drawable))
            signal_K = expected_signal(allocator.estimate(drawable), max(round(group_size), 2))
            # The largest of log weight + Gumbel noise are a draw without replacement by weight.
            log_weight_K = self._sharpness * np.log(np.maximum(signal_K, np.finfo(float).tiny))
            key_K = log_weight_K + self._rng.gumbel(size=len(drawable))
            drawn = [drawable[index] for index in np.argsort(-key_K, kind="stable")[:count]]
        self._recent.append(regular + drawn)
        return drawn

    def _drawable(self, allocator: Allocator) -> list[PromptId]:
        recent = {prompt_id for ids in self._recent for prompt_id in ids}
        return [prompt_id for prompt_id in allocator.visited if prompt_id not in recent]

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        return {
            "version": STATE_VERSION,
            "recent": [list(ids) for ids in self._recent],
            "rng": self._rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, or an entry is no such state.
        """
        check_keys("revisit state", state, self.state_dict())
        if state["version"] != STATE_VERSION:
            raise ValueError(f"revisit state version must be {STATE_VERSION}, got {state['version']!r}")
        if not isinstance(state["recent"], list):
            raise ValueError(f"revisit state recent must be a list of steps, got {state['recent']!r}")
        recent = [check_saved_ids("revisit state recent", ids) for ids in state["recent"]]
        try:
            self._rng.bit_generator.state = state["rng"]
        except (TypeError, ValueError, KeyError) as error:
            raise ValueError(f"revisit state rng must be a state of PCG64, got {state['rng']!r}") from error
        self._recent = deque(recent, maxlen=self._cooldown)
