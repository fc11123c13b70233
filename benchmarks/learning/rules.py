"""What the tables compare: budget rules with their estimates, weights and revisits."""

from dataclasses import dataclass, field
from typing import Any

from coba_openrlhf.allocation import AllocationConfig

# What a rule is when it says nothing: CoBA as published, whatever the library's defaults are.
PUBLISHED = {"strategy": "coba", "pass_rate_source": "window"}


@dataclass(frozen=True)
class Rule:
    """A way to spend the rollouts of a step.

    Attributes:
        name: As in the tables.
        settings: Of ``AllocationConfig``, where they differ from ``PUBLISHED``.
        weighting: ``rollout`` or ``prompt``: what counts the same in the loss.
        revisit: Arguments of ``PromptRevisits``; None for the prompts in the order of the data.
        min_share: budget_min as a share of the step's mean budget, at least 2.
        max_share: budget_max as a multiple of the mean budget; None for 128.
        rollouts: Rollouts of a step as a share of what the regime gives.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    weighting: str = "rollout"
    revisit: dict[str, Any] | None = None
    min_share: float = 0.0
    max_share: float | None = None
    rollouts: float = 1.0

    def allocation(self, group_size: int) -> AllocationConfig:
        """Settings for a mean budget of ``group_size``; the guard is off, or rules would be compared as uniform."""
        largest = 128 if self.max_share is None else round(self.max_share * group_size)
        smallest = max(2, round(self.min_share * group_size))
        return AllocationConfig(
            **{
                **PUBLISHED,
                "budget_min": smallest,
                "budget_max": max(largest, smallest),
                "fallback_steps": 0,
                **self.settings,
            }
        )
