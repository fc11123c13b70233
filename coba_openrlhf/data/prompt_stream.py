"""Batches of prompts in an order that can be stopped and continued anywhere."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .prompt_dataset import IdentifiedPromptDataset


@dataclass(frozen=True)
class PromptBatch:
    """The prompts of one step; all lists have one entry per prompt (``P``)."""

    episode: int
    prompt_ids: list[str]
    prompts: list[str]
    labels: list[object]
    images: list[object]
    datasources: list[str]

    def __len__(self) -> int:
        return len(self.prompt_ids)


class PromptStream:
    """Yields every prompt once per episode, shuffled by seed and episode; the last batch may be short.

    The position is two integers, so that a checkpoint taken while the controller has already looked one batch
    ahead names exactly the batch to continue with.

    Args:
        dataset: Prompts.
        batch_size: Prompts per batch.
        num_episodes: Passes over the data set.
        seed: Seed of the order.
    """

    def __init__(self, dataset: IdentifiedPromptDataset, batch_size: int, num_episodes: int, seed: int) -> None:
        self._dataset = dataset
        self._batch_size = batch_size
        self._num_episodes = num_episodes
        self._seed = seed
        self._episode = 0
        self._position = 0

    @property
    def num_remaining(self) -> int:
        """Batches still to come, the short last ones of the episodes included."""
        left = max(len(self._dataset) - self._position, 0)
        later_episodes = max(self._num_episodes - self._episode - 1, 0)
        if self._episode >= self._num_episodes:
            return 0
        return -(-left // self._batch_size) + later_episodes * -(-len(self._dataset) // self._batch_size)

    def __iter__(self) -> Iterator[PromptBatch]:
        return self

    def __next__(self) -> PromptBatch:
        if self._episode >= self._num_episodes:
            raise StopIteration
        order = np.random.default_rng([self._seed, self._episode]).permutation(len(self._dataset))
        rows = order[self._position : self._position + self._batch_size].tolist()
        batch = batch_of(self._dataset, rows, self._episode)
        self._position += len(rows)
        if self._position >= len(self._dataset):
            self._episode, self._position = self._episode + 1, 0
        return batch

    def state_dict(self) -> dict[str, object]:
        """Where the next batch starts, and in which data set."""
        return {
            "episode": self._episode,
            "position": self._position,
            "seed": self._seed,
            "fingerprint": self._dataset.fingerprint,
        }

    def load_state_dict(self, state: dict[str, object]) -> bool:
        """Continue from ``state_dict``; with changed data at the start of the interrupted episode.

        Returns:
            Whether the data set is the one that the state was made with, in the same order.

        Raises:
            ValueError: The state belongs to another seed.
        """
        if state["seed"] != self._seed:
            raise ValueError(
                f"the checkpoint was made with train.seed {state['seed']}, now it is {self._seed}: the order of the "
                "prompts would change in the middle of an episode"
            )
        self._episode = int(state["episode"])  # type: ignore[call-overload]
        # Another data set has another order: the old position would repeat some prompts and never reach others.
        is_same = state["fingerprint"] == self._dataset.fingerprint
        self._position = int(state["position"]) if is_same else 0  # type: ignore[call-overload]
        return is_same


def batch_of(dataset: IdentifiedPromptDataset, rows: list[int], episode: int = 0) -> PromptBatch:
    """The prompts at ``rows``."""
    return PromptBatch(
        episode=episode,
        prompt_ids=[dataset.prompt_ids[i] for i in rows],
        prompts=[dataset.prompts[i] for i in rows],
        labels=[dataset.labels[i] for i in rows],
        images=[dataset.images[i] for i in rows],
        datasources=[dataset.datasources[i] for i in rows],
    )
