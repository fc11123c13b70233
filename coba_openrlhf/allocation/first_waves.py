"""What the first wave of a step has shown, until the whole step is observed."""

# Legend: P = prompts of one call.

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .checks import check_keys, check_numbers, check_saved_ids
from .estimates import PromptId
from .observation import Observation

_COLUMNS = ("successes", "rollouts", "pass_rates")


class FirstWaves:
    """Outcomes of first waves, and the estimates made from them.

    An estimate that contains the first wave must be judged by the second wave only: it would seem to have foreseen
    what it was told.
    """

    def __init__(self) -> None:
        self._waves: dict[PromptId, tuple[float, float, float]] = {}

    def remember(
        self,
        prompt_ids: Sequence[PromptId],
        success_P: NDArray[np.float64],
        rollouts_P: NDArray[np.float64],
        pass_rate_P: NDArray[np.float64],
    ) -> None:
        """Keep a first wave; waves before it that were never observed are forgotten.

        Args:
            prompt_ids: ``[P]``.
            success_P: ``[P]``, successes of the wave.
            rollouts_P: ``[P]``, its scored rollouts.
            pass_rate_P: ``[P]``, estimates that include it.
        """
        rows = zip(success_P.tolist(), rollouts_P.tolist(), pass_rate_P.tolist(), strict=True)
        self._waves = dict(zip(prompt_ids, rows, strict=True))

    def take(
        self, observed: Observation, pass_rate_P: NDArray[np.float64], seen_P: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Predictions and what they are to be judged by; forgets the waves.

        Args:
            observed: The whole step, with ``P`` prompts.
            pass_rate_P: Estimates without first waves.
            seen_P: Whether they rest on a history.

        Returns:
            Predictions, successes and rollouts after the first wave (possibly none), and whether the prediction
            rests on anything, all ``[P]``.
        """
        if not self._waves:
            return pass_rate_P, observed.success_P, observed.rollouts_P, seen_P
        unknown = (0.0, 0.0, np.nan)
        wave_P3 = np.array([self._waves.get(prompt_id, unknown) for prompt_id in observed.prompt_ids])
        self._waves = {}
        has_wave_P = wave_P3[:, 1] > 0
        rollouts_P = np.maximum(observed.rollouts_P - wave_P3[:, 1], 0.0)
        success_P = np.clip(observed.success_P - wave_P3[:, 0], 0.0, rollouts_P)
        return np.where(has_wave_P, wave_P3[:, 2], pass_rate_P), success_P, rollouts_P, seen_P | has_wave_P

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        columns = zip(*self._waves.values(), strict=True) if self._waves else ((), (), ())
        rows = {name: list(column) for name, column in zip(_COLUMNS, columns, strict=True)}
        return {"prompt_ids": list(self._waves), **rows}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, or the lists do not belong together.
        """
        check_keys("first waves state", state, ("prompt_ids", *_COLUMNS))
        ids = check_saved_ids("first waves state prompt_ids", state["prompt_ids"])
        success_P, rollouts_P, pass_rate_P = (
            check_numbers(f"first waves state {name}", state[name], (len(ids),)) for name in _COLUMNS
        )
        if (success_P > rollouts_P).any() or (pass_rate_P > 1).any():
            raise ValueError("first waves state must have successes <= rollouts and pass_rates <= 1")
        self.remember(ids, success_P, rollouts_P, pass_rate_P)
