"""The order in which a run meets its prompts."""

import numpy as np
from numpy.typing import NDArray


class PromptStream:
    """Shuffled passes over ``num_prompts`` rows; a batch never holds a row twice.

    Args:
        num_prompts: Rows of the training set.
        rng: Shuffles; the order is the same for every rule that draws as many.
    """

    def __init__(self, num_prompts: int, rng: np.random.Generator) -> None:
        self._num_prompts = num_prompts
        self._rng = rng
        self._left = np.empty(0, np.int64)

    def next(self, count: int) -> NDArray[np.int64]:
        """The next rows; what is left of a pass that is too short for them is dropped, as a drop-last loader does."""
        assert count <= self._num_prompts, (count, self._num_prompts)
        if len(self._left) < count:
            self._left = self._rng.permutation(self._num_prompts)
        rows, self._left = self._left[:count], self._left[count:]
        return rows
