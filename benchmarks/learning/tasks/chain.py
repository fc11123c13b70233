"""Chained arithmetic: apply 1 to 4 unknown operations to a digit and write every intermediate result."""

# Legend: M = prompts of a set, T = tokens of a prompt, A = tokens of an answer, O = operations.

import numpy as np
from numpy.typing import NDArray

from .task import END, FIRST_LETTER, PAD, Prompts, Task

LONGEST = 4
# How often the base model takes each operation for what it is.
KNOWN = np.array([0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95, 0.97])


class Chain(Task):
    """An operation is a permutation of the digits. Its pass rates multiply along a chain.

    What a short chain teaches about an operation helps every chain that contains it: skills compose.
    """

    prompt_length = 1 + LONGEST
    answer_length = LONGEST
    levels = tuple(f"{count} operations" for count in range(1, LONGEST + 1))
    warm_up_steps = 800

    def _world(self, world: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Right and wrong result of every operation, both ``[O, 10]``, and how often it is known, ``[O]``."""
        rng = np.random.default_rng([4, world])
        right = np.array([rng.permutation(10) for _ in KNOWN])
        # A rotation without a fixed point: the wrong result is wrong for every digit.
        wrong = np.array(
            [
                row[(np.arange(10) + shift) % 10]
                for row, shift in zip(right, rng.integers(1, 10, len(KNOWN)), strict=True)
            ]
        )
        return right, wrong, rng.permutation(KNOWN)

    def _answers(
        self, world: int, token_MT: NDArray[np.int64], draw_MA: NDArray[np.float64] | None
    ) -> NDArray[np.int64]:
        right, wrong, known = self._world(world)
        value_M = token_MT[:, 0]
        columns = []
        for place in range(LONGEST):
            operation_M = token_MT[:, 1 + place] - FIRST_LETTER
            used = token_MT[:, 1 + place] != PAD
            operation_M = np.where(used, operation_M, 0)
            result_M = right[operation_M, value_M]
            if draw_MA is not None:
                result_M = np.where(draw_MA[:, place] < known[operation_M], result_M, wrong[operation_M, value_M])
            value_M = np.where(used, result_M, value_M)
            columns.append(np.where(used, value_M, END))
        return np.stack(columns, axis=1)

    def draw(self, world: int, rng: np.random.Generator, count: int) -> Prompts:
        level_M = rng.integers(LONGEST, size=count)
        operations = FIRST_LETTER + rng.integers(len(KNOWN), size=(count, LONGEST))
        operations = np.where(np.arange(LONGEST) <= level_M[:, None], operations, PAD)
        token_MT = np.concatenate((rng.integers(10, size=(count, 1)), operations), axis=1)
        return Prompts(token_MT, self._answers(world, token_MT, None), level_M)

    def draw_corpus(
        self, world: int, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        prompts = self.draw(world, rng, count)
        return prompts.token_MT, self._answers(world, prompts.token_MT, rng.random((count, LONGEST)))
