"""Sort 2 to 7 digits: one skill, harder with every digit."""

# Legend: M = prompts of a set, T = tokens of a prompt, A = tokens of an answer.

import numpy as np
from numpy.typing import NDArray

from .task import END, PAD, Prompts, Task

SHORTEST, LONGEST = 2, 7
# Of the warm-up's answers, the share that are shuffled instead of sorted.
NOISE = 0.1


class Ladder(Task):
    """The base model stops before it can sort well; what is missing is precision, not a choice."""

    prompt_length = LONGEST
    answer_length = LONGEST
    levels = tuple(f"{count} digits" for count in range(SHORTEST, LONGEST + 1))
    warm_up_steps = 120

    def draw(self, world: int, rng: np.random.Generator, count: int) -> Prompts:
        level_M = rng.integers(len(self.levels), size=count)
        size_M1 = SHORTEST + level_M[:, None]
        digits = rng.integers(10, size=(count, LONGEST))
        place = np.arange(LONGEST)
        token_MT = np.where(place >= LONGEST - size_M1, digits, PAD)
        # END is the largest token: it stays behind when the rest is sorted.
        answer_MA = np.sort(np.where(token_MT == PAD, END, token_MT), axis=1)
        return Prompts(token_MT, answer_MA, level_M)

    def draw_corpus(
        self, world: int, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        prompts = self.draw(world, rng, count)
        size_M1 = SHORTEST + prompts.level_M[:, None]
        key = np.where(np.arange(LONGEST) < size_M1, rng.random((count, LONGEST)), 2.0)
        shuffled_MA = np.take_along_axis(prompts.answer_MA, np.argsort(key, axis=1), axis=1)
        is_noise = rng.random(count) < NOISE
        return prompts.token_MT, np.where(is_noise[:, None], shuffled_MA, prompts.answer_MA)
