"""Sort digits up or down; which of them, a letter tells, and the base model has it right more or less often."""

# Legend: M = prompts of a set, T = tokens of a prompt, A = tokens of an answer.

import numpy as np
from numpy.typing import NDArray

from .task import FIRST_LETTER, Prompts, Task

NUM_DIGITS = 4


class Mode(Task):
    """One letter, four digits. Both answers are known from the warm-up; training has to choose.

    Prompts of one letter share all there is to learn, so that one solved prompt helps the others.

    Args:
        pass_rates: Of the base model, one per letter.
        num_prompts: Training prompts.
    """

    prompt_length = 1 + NUM_DIGITS
    answer_length = NUM_DIGITS
    warm_up_steps = 600

    def __init__(self, pass_rates: tuple[float, ...], num_prompts: int = 512) -> None:
        self.num_prompts = num_prompts
        self._pass_rates = np.array(pass_rates)
        self.levels = tuple(f"{rate:g}" for rate in pass_rates)

    def _world(self, world: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The letter of every level, and whether digits are to rise there."""
        rng = np.random.default_rng([3, world])
        count = len(self.levels)
        return rng.permutation(count), rng.permutation(np.arange(count) % 2 == 0)

    def _draw(self, world: int, rng: np.random.Generator, count: int) -> tuple[Prompts, NDArray[np.int64]]:
        letters, rises = self._world(world)
        level_M = rng.integers(len(self.levels), size=count)
        digits = rng.permuted(np.tile(np.arange(10), (count, 1)), axis=1)[:, :NUM_DIGITS]
        up = np.sort(digits, axis=1)
        down = up[:, ::-1]
        token_MT = np.concatenate((FIRST_LETTER + letters[level_M, None], digits), axis=1)
        is_up = rises[level_M, None]
        return Prompts(token_MT, np.where(is_up, up, down), level_M), np.where(is_up, down, up)

    def draw(self, world: int, rng: np.random.Generator, count: int) -> Prompts:
        return self._draw(world, rng, count)[0]

    def draw_corpus(
        self, world: int, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        prompts, wrong_MA = self._draw(world, rng, count)
        is_right = rng.random(count) < self._pass_rates[prompts.level_M]
        return prompts.token_MT, np.where(is_right[:, None], prompts.answer_MA, wrong_MA)
