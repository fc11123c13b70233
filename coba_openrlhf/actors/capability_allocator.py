"""The allocator as a process of its own, so that budgets are solved while the policy optimises."""

from collections.abc import Sequence

from coba_openrlhf.allocation import Allocation, AllocationConfig, Allocator, DataChange


class CapabilityAllocator:
    """Holds the allocator's state; Ray runs its calls one after the other, in the order they were sent.

    The controller sends ``observe(t)`` and then ``allocate(t + 1)`` and keeps the object refs: both run while
    the policy actors optimise step ``t``.
    """

    def __init__(self, config: AllocationConfig) -> None:
        self._allocator = Allocator(config)
        # Compiled here, before step 1: a first call must not cost seconds inside the loop.
        self._allocator.warm_up()

    def allocate(
        self,
        prompt_ids: Sequence[str],
        total_budget: int,
        probe: tuple[Sequence[str], Sequence[float]] | None = None,
    ) -> Allocation:
        """Budgets of the next batch; see ``Allocator.allocate``."""
        return self._allocator.allocate(prompt_ids, total_budget, probe=probe)

    def observe(
        self, prompt_ids: Sequence[str], scores: Sequence[float], num_tokens: Sequence[int], policy_version: int
    ) -> dict[str, float]:
        """Learn from scored rollouts, one row each; returns the metrics of the step they belong to."""
        if len(prompt_ids):
            self._allocator.observe(prompt_ids, scores, num_tokens=num_tokens, policy_version=policy_version)
        return self._allocator.metrics()

    def set_data(self, prompt_ids: Sequence[str]) -> DataChange:
        """Tell which prompts there are; see ``Allocator.set_data``."""
        return self._allocator.set_data(prompt_ids)

    def state_dict(self) -> dict[str, object]:
        """JSON-able state, for checkpoints."""
        return self._allocator.state_dict()

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from ``state_dict``."""
        self._allocator.load_state_dict(state)
