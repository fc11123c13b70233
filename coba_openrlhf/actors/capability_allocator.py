"""The allocator as a process of its own, so that budgets are solved while the policy optimises."""

from collections.abc import Sequence

from coba_openrlhf.allocation import Allocation, AllocationConfig, Allocator, DataChange, PromptRevisits


class CapabilityAllocator:
    """Holds the allocator's state; Ray runs its calls one after the other, in the order they were sent.

    The controller sends ``observe(t)``, then ``choose_prompts`` and ``allocate`` for step ``t + 1``, and keeps the
    object refs: all run while the policy actors optimise step ``t``.

    Args:
        config: Of the allocator.
        revisits: Draws the prompts that come again; None for none.
    """

    def __init__(self, config: AllocationConfig, revisits: PromptRevisits | None = None) -> None:
        self._revisits = PromptRevisits(share=0) if revisits is None else revisits
        self._allocator = Allocator(config)
        # Compiled here, before step 1: a first call must not cost seconds inside the loop.
        self._allocator.warm_up()

    def choose_prompts(self, upcoming_ids: Sequence[str], group_size: float) -> tuple[list[str], int]:
        """The prompts of the next batch: the first of ``upcoming_ids``, then those that come again.

        Args:
            upcoming_ids: The next prompts of the data, as many as the batch has.
            group_size: Mean rollouts of a prompt.

        Returns:
            As many ids, and how many of them come again.
        """
        count = self._revisits.count(self._allocator, len(upcoming_ids))
        regular = list(upcoming_ids[: len(upcoming_ids) - count])
        return [*regular, *self._revisits.draw(self._allocator, regular, count, group_size)], count

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
        return {**self._allocator.state_dict(), "revisits": self._revisits.state_dict()}

    def load_state_dict(self, state: dict[str, object]) -> None:
        """Continue from ``state_dict``.

        Raises:
            ValueError: The state belongs to other settings or another version.
        """
        revisits_state = state.get("revisits")
        if not isinstance(revisits_state, dict):
            raise ValueError(f"the checkpoint's allocator state must have revisits, a mapping, got {revisits_state!r}")
        allocator_state = {name: value for name, value in state.items() if name != "revisits"}
        self._allocator.load_state_dict(allocator_state)
        self._revisits.load_state_dict(revisits_state)
