"""What differs between two versions of a data set whose rows are known by their content."""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .estimates import PromptId


@dataclass(frozen=True)
class DataChange:
    """Rows that came, went, or were edited; ids in the order of their data set.

    Attributes:
        added: New rows.
        removed: Rows that are gone.
        edited: ``(old id, new id)`` of rows whose content changed in place.
    """

    added: list[PromptId]
    removed: list[PromptId]
    edited: list[tuple[PromptId, PromptId]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.edited)

    def __str__(self) -> str:
        return f"{len(self.added)} added, {len(self.removed)} removed, {len(self.edited)} edited"


def compare_data(old_ids: Sequence[PromptId], new_ids: Sequence[PromptId]) -> DataChange:
    """Compare two data sets by the ids of their rows.

    An edited row has another id, as ids are hashes of the content. A row that went and one that came count as one
    edited row when they follow the same unchanged row, and as many rows went before them as came. Linear in the rows.

    Args:
        old_ids: Rows before, without repetition.
        new_ids: Rows now, without repetition.
    """
    old, new = set(old_ids), set(new_ids)
    gone_after: defaultdict[PromptId | None, deque[PromptId]] = defaultdict(deque)
    for anchor, prompt_id in _anchored(old_ids, new):
        gone_after[anchor].append(prompt_id)
    added, edited = [], []
    for anchor, prompt_id in _anchored(new_ids, old):
        if gone_after[anchor]:
            edited.append((gone_after[anchor].popleft(), prompt_id))
        else:
            added.append(prompt_id)
    replaced = {before for before, _ in edited}
    removed = [prompt_id for prompt_id in old_ids if prompt_id not in new and prompt_id not in replaced]
    return DataChange(added, removed, edited)


def _anchored(ids: Sequence[PromptId], others: set[PromptId]) -> Iterable[tuple[PromptId | None, PromptId]]:
    """Ids that ``others`` lack, each with the last id before it that they have; None before the first."""
    anchor = None
    for prompt_id in ids:
        if prompt_id in others:
            anchor = prompt_id
        else:
            yield anchor, prompt_id
