"""A fact per prompt: nothing that is learnt on one prompt helps another."""

# Legend: M = prompts of a set, T = tokens of a prompt, A = tokens of an answer, F = facts.

import numpy as np
from numpy.typing import NDArray

from .task import FIRST_LETTER, LETTERS, Prompts, Task

NUM_FACTS = LETTERS * LETTERS
BELIEFS = 4
BEST, WORST = 0.9, 0.01


class Recall(Task):
    """Two letters ask for two digits. The base model holds four beliefs per prompt, one of them right.

    It believes the right one with a probability drawn log-uniformly from 0.01 to 0.9 and the others equally.
    The test set is the training set: there is nothing to generalise to.
    """

    prompt_length = 2
    answer_length = 2
    levels = ("below 0.03", "below 0.1", "below 0.3", "0.3 and above")
    warm_up_steps = 1200
    num_prompts = NUM_FACTS

    def _world(self, world: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Beliefs ``[F, 4]``, the right one first, and how often it is held, ``[F]``."""
        rng = np.random.default_rng([5, world])
        beliefs = np.array([rng.choice(100, size=BELIEFS, replace=False) for _ in range(NUM_FACTS)])
        return beliefs, np.exp(rng.uniform(np.log(WORST), np.log(BEST), NUM_FACTS))

    def _prompts(self, world: int, fact_M: NDArray[np.int64]) -> Prompts:
        beliefs, rate = self._world(world)
        token_MT = FIRST_LETTER + np.stack((fact_M // LETTERS, fact_M % LETTERS), axis=1)
        level_M = np.searchsorted([0.03, 0.1, 0.3], rate[fact_M], side="right")
        return Prompts(token_MT, _digits(beliefs[fact_M, 0]), level_M)

    def draw(self, world: int, rng: np.random.Generator, count: int) -> Prompts:
        return self._prompts(world, rng.permutation(np.resize(np.arange(NUM_FACTS), count)))

    def draw_corpus(
        self, world: int, rng: np.random.Generator, count: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        beliefs, rate = self._world(world)
        fact_M = rng.integers(NUM_FACTS, size=count)
        is_right = rng.random(count) < rate[fact_M]
        belief_M = np.where(is_right, 0, rng.integers(1, BELIEFS, size=count))
        return self._prompts(world, fact_M).token_MT, _digits(beliefs[fact_M, belief_M])


def _digits(number_M: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.stack((number_M // 10, number_M % 10), axis=1)
