"""What every task is."""

# Legend: M = prompts of a set, T = tokens of a prompt, A = tokens of an answer.

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

DIGITS = 10  # tokens 0 .. 9
LETTERS = 16
FIRST_LETTER = DIGITS  # tokens 10 .. 25
PAD = FIRST_LETTER + LETTERS
END = PAD + 1
VOCABULARY = END + 1


@dataclass(frozen=True, eq=False)
class Prompts:
    """Prompts with their right answers.

    Attributes:
        token_MT: int64.
        answer_MA: int64, the only answer that scores 1.
        level_M: int64, what kind of difficulty a prompt is, counted from 0.
    """

    token_MT: NDArray[np.int64]
    answer_MA: NDArray[np.int64]
    level_M: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.token_MT)

    def take(self, rows: NDArray[np.int64]) -> "Prompts":
        """Some of them, in the order of the indices."""
        return Prompts(self.token_MT[rows], self.answer_MA[rows], self.level_M[rows])


class Task(ABC):
    """A family of worlds: what is right there depends on the seed of the world, and so do the base models.

    Attributes:
        prompt_length: Tokens of every prompt.
        answer_length: Tokens of every answer.
        levels: Names of the difficulties.
        warm_up_steps: Supervised steps that make a base model.
        num_prompts: Training prompts; None where fresh ones can be drawn without end.
    """

    prompt_length: int
    answer_length: int
    levels: tuple[str, ...]
    warm_up_steps: int
    num_prompts: int = 512

    @abstractmethod
    def draw(self, world: int, rng: np.random.Generator, count: int) -> Prompts:
        """Prompts of a world, with their right answers."""

    @abstractmethod
    def draw_corpus(
        self, world: int, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Prompts and answers that the base model imitates, mistakes included: ``[M, T]`` and ``[M, A]``."""

    def training_prompts(self, world: int, count: int) -> Prompts:
        """The training set of a world."""
        return self.draw(world, np.random.default_rng([1, world]), count)

    def test_prompts(self, world: int, count: int) -> Prompts:
        """The test set of a world."""
        return self.draw(world, np.random.default_rng([2, world]), count)
