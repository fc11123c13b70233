"""The guard rail: estimates that predict worse than no estimates are not used."""

from collections.abc import Mapping
from typing import Any

from .checks import check_int, check_keys


class EstimateGuard:
    """Watches whether estimates predict outcomes better than the plain mean of the policy's successes.

    After ``steps`` steps in a row in which they did not, it is ``active``: budgets ought to be uniform. After as many
    in which they did, it lets go.

    Args:
        steps: Steps in a row, >= 0; 0 = never active.
    """

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._active = False
        self._streak = 0

    @property
    def active(self) -> bool:
        """Whether the estimates are not to be used."""
        return self._active

    def observe(self, estimate_brier: float, prior_brier: float) -> bool:
        """Add one step's Brier scores over prompts with a history; returns whether ``active`` has changed."""
        is_worse = estimate_brier > prior_brier
        # A streak counts what speaks against the present state.
        self._streak = self._streak + 1 if is_worse != self._active else 0
        if not self._steps or self._streak < self._steps:
            return False
        self._active, self._streak = not self._active, 0
        return True

    def message(self, estimate_brier: float, prior_brier: float) -> str:
        """What to tell the user after a change."""
        scores = f"Brier score {estimate_brier:.4f} against {prior_brier:.4f} in the last step"
        if self._active:
            return (
                f"pass-rate estimates predicted worse than the plain mean for {self._steps} steps in a row ({scores}): "
                "budgets are uniform until they predict better for as many"
            )
        return f"pass-rate estimates predicted better than the plain mean again ({scores}): budgets follow the rule"

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state."""
        return {"active": self._active, "streak": self._streak}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: A key is missing, or of another type.
        """
        check_keys("guard state", state, ("active", "streak"))
        if not isinstance(state["active"], bool):
            raise ValueError(f"guard state active must be true or false, got {state['active']!r}")
        if state["active"] and not self._steps:
            raise ValueError("guard state active must be false with fallback_steps 0, got True")
        streak = check_int("guard state streak", state["streak"], 0)
        if self._steps and streak >= self._steps:
            raise ValueError(f"guard state streak must be < fallback_steps = {self._steps}, got {streak}")
        self._active, self._streak = state["active"], streak
