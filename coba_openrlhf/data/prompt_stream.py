"""Batches of prompts in an order that can be stopped and continued anywhere."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
    """Yields every prompt once per episode, shuffled by seed and episode; the last batch of an episode may be short.

    The position is a few integers, so that a checkpoint taken while the controller has already looked one batch ahead
    names exactly the batch to continue with.

    With ``give_back`` a batch's last prompts come again in the next one, because prompts that were met before took
    their places. Number and sizes of the batches stay those of a run that never gives back, which gets further in the
    data.

    Args:
        dataset: Prompts.
        batch_size: Prompts per batch.
        num_episodes: Passes over the data set, if nothing is given back.
        seed: Seed of the order.
    """

    def __init__(self, dataset: IdentifiedPromptDataset, batch_size: int, num_episodes: int, seed: int) -> None:
        self._dataset = dataset
        self._batch_size = batch_size
        self._num_episodes = num_episodes
        self._seed = seed
        self._row_of = {prompt_id: row for row, prompt_id in enumerate(dataset.prompt_ids)}
        self._num_batches = 0
        self._orders: dict[int, NDArray[np.int64]] = {}
        # Places count rows from the start of the first episode.
        self._place = 0
        self._last_places: list[int] = []

    @property
    def _batches_per_episode(self) -> int:
        return -(-len(self._dataset) // self._batch_size)

    @property
    def num_remaining(self) -> int:
        """Batches still to come, the short last ones of the episodes included."""
        return max(self._batches_per_episode * self._num_episodes - self._num_batches, 0)

    def __iter__(self) -> Iterator[PromptBatch]:
        return self

    def __next__(self) -> PromptBatch:
        if not self.num_remaining:
            raise StopIteration
        num_rows = len(self._dataset)
        before = self._num_batches % self._batches_per_episode * self._batch_size
        places = self._next_places(min(self._batch_size, num_rows - before))
        rows = [self._row_at(place) for place in places]
        self._num_batches, self._place, self._last_places = self._num_batches + 1, places[-1] + 1, places
        return batch_of(self._dataset, rows, places[0] // num_rows)

    def _next_places(self, count: int) -> list[int]:
        """Places of the next ``count`` different rows: a batch may reach into the next episode, never a row twice."""
        places: list[int] = []
        taken: set[int] = set()
        place = self._place
        while len(places) < count:
            row = self._row_at(place)
            if row not in taken:
                taken.add(row)
                places.append(place)
            place += 1
        return places

    def _row_at(self, place: int) -> int:
        episode, position = divmod(place, len(self._dataset))
        return int(self._order(episode)[position])

    def _order(self, episode: int) -> NDArray[np.int64]:
        if self._orders.get(episode) is None:
            # A batch lies in two episodes at most.
            self._orders = {e: order for e, order in self._orders.items() if e == episode - 1}
            rng = np.random.default_rng([self._seed, episode])
            self._orders[episode] = rng.permutation(len(self._dataset))
        return self._orders[episode]

    def give_back(self, num_prompts: int) -> None:
        """Let the last ``num_prompts`` of the last batch come again, at the start of the next one."""
        assert 0 <= num_prompts <= len(self._last_places), (num_prompts, len(self._last_places))
        if num_prompts:
            kept = self._last_places[:-num_prompts]
            # Not to the first that was given back: rows before it may have been passed over only because of it.
            self._place = kept[-1] + 1 if kept else self._last_places[0]
            self._last_places = kept

    def batch_of(self, prompt_ids: Sequence[str], episode: int) -> PromptBatch:
        """A batch of prompts of the data set, by their ids."""
        return batch_of(self._dataset, [self._row_of[prompt_id] for prompt_id in prompt_ids], episode)

    def state_dict(self) -> dict[str, object]:
        """Where the next batch starts, and in which data set."""
        episode, position = divmod(self._place, len(self._dataset))
        return {
            "episode": episode,
            "position": position,
            "num_batches": self._num_batches,
            "batches_per_episode": self._batches_per_episode,
            "seed": self._seed,
            "fingerprint": self._dataset.fingerprint,
        }

    def load_state_dict(self, state: dict[str, object]) -> bool:
        """Continue from ``state_dict``; with changed data at the start of the interrupted episode.

        Returns:
            Whether the data set is the one that the state was made with, in the same order.

        Raises:
            ValueError: The state belongs to another seed, or to a version that kept less.
        """
        if missing := self.state_dict().keys() - state.keys():
            raise ValueError(
                f"the checkpoint's place in the data lacks {', '.join(sorted(missing))}: it was made by "
                "another version of this package; start a new run from its weights"
            )
        if state["seed"] != self._seed:
            raise ValueError(
                f"the checkpoint was made with train.seed {state['seed']}, now it is {self._seed}: the order of the "
                "prompts would change in the middle of an episode"
            )
        numbers = ("episode", "position", "num_batches", "batches_per_episode")
        episode, position, num_batches, per_episode = (int(state[name]) for name in numbers)  # type: ignore[call-overload]
        is_same = state["fingerprint"] == self._dataset.fingerprint
        if not is_same:
            # Another data set has another order: the old position would repeat some prompts and never reach others.
            position, num_batches = 0, num_batches // per_episode * self._batches_per_episode
        self._place, self._num_batches, self._last_places = episode * len(self._dataset) + position, num_batches, []
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
