"""A row of numbers per prompt, found by the prompt's id."""

# Legend: P = prompts of one call, K = prompts ever seen (rows beyond it are spare).

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

PromptId = str | int


class PromptRows:
    """Growable arrays with one row per prompt.

    Numbers live in arrays and a prompt's row in a dict, so that a step costs the same after a million prompts as
    after a thousand.

    Args:
        **columns: Name of each array, and its width: 0 for one number per row, else numbers per row.
    """

    def __init__(self, **columns: int) -> None:
        self._widths = columns
        self._row_of: dict[PromptId, int] = {}
        self._arrays = {name: self._empty(width, 1024) for name, width in columns.items()}

    @staticmethod
    def _empty(width: int, capacity: int) -> NDArray[np.float64]:
        return np.zeros((capacity, width) if width else capacity)

    def __len__(self) -> int:
        return len(self._row_of)

    def __getitem__(self, column: str) -> NDArray[np.float64]:
        """The array of a column, spare rows included; written in place."""
        return self._arrays[column]

    @property
    def prompt_ids(self) -> list[PromptId]:
        """Every prompt with a row, in the order of the rows."""
        return list(self._row_of)

    def find(self, prompt_ids: Sequence[PromptId]) -> NDArray[np.int64]:
        """Rows of prompts, ``[P]``; -1 without one."""
        get = self._row_of.get
        return np.array([get(prompt_id, -1) for prompt_id in prompt_ids], np.int64)

    def add(self, prompt_ids: Sequence[PromptId]) -> NDArray[np.int64]:
        """Rows of prompts, ``[P]``; new ones get a row of zeros."""
        row_of = self._row_of
        rows = np.array([row_of.setdefault(prompt_id, len(row_of)) for prompt_id in prompt_ids], np.int64)
        capacity = len(next(iter(self._arrays.values())))
        if len(row_of) > capacity:
            # Doubling: a constant cost per new prompt.
            grown = max(len(row_of), 2 * capacity)
            for name, width in self._widths.items():
                array = self._empty(width, grown)
                array[:capacity] = self._arrays[name]
                self._arrays[name] = array
        return rows

    def keep(self, prompt_ids: Iterable[PromptId]) -> list[PromptId]:
        """Drop the rows of all other prompts; returns the dropped ones."""
        wanted = set(prompt_ids)
        kept = [(prompt_id, row) for prompt_id, row in self._row_of.items() if prompt_id in wanted]
        dropped = [prompt_id for prompt_id in self._row_of if prompt_id not in wanted]
        rows = np.array([row for _, row in kept], np.int64)
        for name, width in self._widths.items():
            array = self._empty(width, max(len(kept), 1024))
            array[: len(kept)] = self._arrays[name][rows]
            self._arrays[name] = array
        self._row_of = {prompt_id: row for row, (prompt_id, _) in enumerate(kept)}
        return dropped

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state; ids are list entries, not keys, so that an int stays an int."""
        num_rows = len(self._row_of)
        return {
            "prompt_ids": list(self._row_of),
            **{name: array[:num_rows].tolist() for name, array in self._arrays.items()},
        }

    def load(self, prompt_ids: Sequence[PromptId], columns: dict[str, NDArray[np.float64]]) -> None:
        """Replace all rows by checked ones."""
        self._row_of = {prompt_id: row for row, prompt_id in enumerate(prompt_ids)}
        for name, width in self._widths.items():
            array = self._empty(width, max(len(prompt_ids), 1024))
            array[: len(prompt_ids)] = columns[name]
            self._arrays[name] = array
