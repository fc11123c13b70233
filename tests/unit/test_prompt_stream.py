"""The stream can be stopped and continued anywhere."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coba_openrlhf.data.prompt_dataset import IdentifiedPromptDataset, content_ids
from coba_openrlhf.data.prompt_stream import PromptStream


def dataset_of(num_prompts, text="p"):
    """A data set as after loading (loading itself needs a tokenizer, see test_prompt_dataset.py)."""
    dataset = IdentifiedPromptDataset.__new__(IdentifiedPromptDataset)
    dataset.prompts = [f"{text}{i}" for i in range(num_prompts)]
    dataset.labels = [str(i) for i in range(num_prompts)]
    dataset.images = [None] * num_prompts
    dataset.datasources = ["default"] * num_prompts
    dataset.prompt_ids = content_ids(dataset.datasources, dataset.prompts, dataset.labels)
    return dataset


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 5), st.data())
def test_continuing_equals_never_stopping(num_prompts, batch_size, num_episodes, seed, data):
    dataset = dataset_of(num_prompts)
    whole = list(PromptStream(dataset, batch_size, num_episodes, seed))
    stop = data.draw(st.integers(0, len(whole)))
    first = PromptStream(dataset, batch_size, num_episodes, seed)
    head = [next(first) for _ in range(stop)]
    second = PromptStream(dataset_of(num_prompts), batch_size, num_episodes, seed)
    second.load_state_dict(first.state_dict())
    assert head + list(second) == whole


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3))
def test_each_episode_has_every_prompt_once(num_prompts, batch_size, num_episodes):
    dataset = dataset_of(num_prompts)
    stream = PromptStream(dataset, batch_size, num_episodes, seed=1)
    num_batches = stream.num_remaining
    batches = list(stream)
    assert len(batches) == num_batches
    assert stream.num_remaining == 0
    for episode in range(num_episodes):
        sizes = [len(b) for b in batches if b.episode == episode]
        ids = [i for b in batches if b.episode == episode for i in b.prompt_ids]
        assert sorted(ids) == sorted(dataset.prompt_ids)
        assert sizes[:-1] == [batch_size] * (len(sizes) - 1)


def test_stopped_after_step_two_continues_with_prompts_five_and_six():
    dataset = dataset_of(8)
    order = [p for batch in PromptStream(dataset, 2, 1, 0) for p in batch.prompts]
    stream = PromptStream(dataset, 2, 1, 0)
    next(stream), next(stream)
    state = stream.state_dict()
    # The controller looks one batch ahead: the state was taken before that.
    next(stream)
    resumed = PromptStream(dataset, 2, 1, 0)
    resumed.load_state_dict(state)
    assert next(resumed).prompts == order[4:6]
    assert [p for batch in resumed for p in batch.prompts] == order[6:]


def test_short_last_batch():
    assert [len(batch) for batch in PromptStream(dataset_of(5), 2, 2, 0)] == [2, 2, 1, 2, 2, 1]


def test_order_follows_seed_and_episode():
    def order(seed):
        return [batch.prompts for batch in PromptStream(dataset_of(8), 8, 2, seed)]

    assert order(0) == order(0)
    assert order(0) != order(1)
    assert order(0)[0] != order(0)[1]


def test_columns_stay_together():
    for batch in PromptStream(dataset_of(8), 3, 1, 0):
        assert batch.prompts == [f"p{label}" for label in batch.labels]
        assert batch.prompt_ids == content_ids(batch.datasources, batch.prompts, batch.labels)


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.data())
def test_remaining_batches_are_counted_from_anywhere(num_prompts, batch_size, num_episodes, data):
    stream = PromptStream(dataset_of(num_prompts), batch_size, num_episodes, seed=1)
    for _ in range(data.draw(st.integers(0, stream.num_remaining))):
        next(stream)
    assert stream.num_remaining == len(list(stream))


@pytest.mark.parametrize("other", [dataset_of(7), dataset_of(9), dataset_of(8, text="q")], ids=["7", "9", "edited"])
def test_changed_data_starts_the_interrupted_episode_again(other):
    stream = PromptStream(dataset_of(8), 2, 3, 0)
    for _ in range(6):
        next(stream)
    resumed = PromptStream(other, 2, 3, 0)
    assert not resumed.load_state_dict(stream.state_dict())
    batches = list(resumed)
    for episode in (1, 2):
        assert sorted(i for b in batches if b.episode == episode for i in b.prompt_ids) == sorted(other.prompt_ids)
    assert {b.episode for b in batches} == {1, 2}


def test_the_same_data_is_recognised():
    stream = PromptStream(dataset_of(8), 2, 1, 0)
    assert PromptStream(dataset_of(8), 2, 1, 0).load_state_dict(stream.state_dict())


def test_another_seed_is_refused():
    state = PromptStream(dataset_of(8), 2, 1, 0).state_dict()
    with pytest.raises(ValueError, match=r"train\.seed 0, now it is 1"):
        PromptStream(dataset_of(8), 2, 1, 1).load_state_dict(state)


def test_ended_stream_stays_ended():
    stream = PromptStream(dataset_of(2), 2, 1, 0)
    assert len(list(stream)) == 1
    assert next(stream, None) is None
    resumed = PromptStream(dataset_of(2), 2, 1, 0)
    resumed.load_state_dict(stream.state_dict())
    assert next(resumed, None) is None


def run_with_revisits(stream, gives_back, stop=None):
    """Ids that were kept of every batch, and the sizes of the batches."""
    kept, sizes = [], []
    while stop is None or len(sizes) < stop:
        batch = next(stream, None)
        if batch is None:
            break
        back = gives_back(len(batch))
        stream.give_back(back)
        kept.append(batch.prompt_ids[: len(batch) - back])
        sizes.append(len(batch))
        assert len(set(batch.prompt_ids)) == len(batch)
    return kept, sizes


@settings(deadline=None, derandomize=True)
@given(st.integers(1, 9), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**32 - 1), st.data())
def test_giving_back_keeps_sizes_order_and_restarts(num_prompts, batch_size, num_episodes, seed, data):
    dataset = dataset_of(num_prompts)
    rng = np.random.default_rng(seed)
    gives_back = [int(rng.integers(0, size + 1)) for size in range(10) for _ in range(40)]

    def give(step, size):
        return gives_back[size * 40 + step % 40]

    def run(stream, first=0, stop=None):
        steps = iter(range(first, 10**6))
        return run_with_revisits(stream, lambda size: give(next(steps), size), stop)

    kept, sizes = run(PromptStream(dataset, batch_size, num_episodes, 3))
    assert sizes == [len(batch) for batch in PromptStream(dataset, batch_size, num_episodes, 3)]
    # What was kept is the order of the data, in which a second visit within one batch is passed over.
    order = iter([i for batch in PromptStream(dataset, batch_size, num_episodes, 3) for i in batch.prompt_ids])
    for ids in kept:
        for prompt_id in ids:
            assert any(prompt_id == other for other in order)
    stopped = data.draw(st.integers(0, len(sizes)))
    first, second = (PromptStream(dataset_of(num_prompts), batch_size, num_episodes, 3) for _ in range(2))
    head, _ = run(first, stop=stopped)
    second.load_state_dict(first.state_dict())
    tail, _ = run(second, first=stopped)
    assert head + tail == kept


def test_half_given_back_goes_through_the_data_half_as_fast():
    stream = PromptStream(dataset_of(8), 4, 4, 0)
    kept, sizes = run_with_revisits(stream, lambda size: size // 2)
    assert sizes == [4] * 8
    assert [sorted(itertools.chain(*kept[i : i + 4])) for i in (0, 4)] == [sorted(dataset_of(8).prompt_ids)] * 2


def test_changed_data_after_giving_back_starts_the_episode_of_the_run_again():
    stream = PromptStream(dataset_of(8), 4, 4, 0)
    run_with_revisits(stream, lambda size: size // 2, stop=5)
    resumed = PromptStream(dataset_of(12), 4, 4, 0)
    assert not resumed.load_state_dict(stream.state_dict())
    assert resumed.num_remaining == 6  # two of four episodes


def test_a_batch_by_ids_has_its_columns():
    stream = PromptStream(dataset_of(8), 4, 1, 0)
    ids = dataset_of(8).prompt_ids
    batch = stream.batch_of([ids[5], ids[2]], 7)
    assert (batch.prompts, batch.labels, batch.episode) == (["p5", "p2"], ["5", "2"], 7)


def test_a_state_of_another_version_is_refused():
    state = PromptStream(dataset_of(8), 2, 1, 0).state_dict()
    del state["num_batches"]
    with pytest.raises(ValueError, match="lacks num_batches"):
        PromptStream(dataset_of(8), 2, 1, 0).load_state_dict(state)
