"""Padding: divisible steps that weigh nothing."""

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pytest
import torch
from openrlhf.trainer.ppo_utils.experience import balance_experiences
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker

from coba_openrlhf.trainer.padding import pad_rollouts, step_multiple
from coba_openrlhf.trainer.rollout_batch import PADDING
from tests.rollouts import base_args, rollout_batch


@pytest.mark.parametrize(
    ("changes", "multiple"),
    [
        ({"train.batch_size": 128}, 128),
        ({"train.batch_size": 24, "rollout.micro_batch_size": 8, "actor.num_gpus_per_node": 2}, 48),
        ({"train.batch_size": 16, "rollout.micro_batch_size": 4, "actor.num_nodes": 3}, 48),
        (
            {
                "train.batch_size": 8,
                "rollout.micro_batch_size": 8,
                "actor.num_gpus_per_node": 4,
                "ds.ring_attn_size": 4,
            },
            8,
        ),
    ],
)
def test_step_multiple(changes, multiple):
    assert step_multiple(base_args(changes)) == multiple


def test_divisible_step_is_unchanged():
    rollouts = rollout_batch([2, 2], [1, 0, 1, 1])
    assert pad_rollouts(rollouts, 4) is rollouts


def test_pads_are_copies_of_the_shortest_with_no_action():
    rollouts = rollout_batch([2, 3], [1, 0, 1, 1, 0], lengths=[5, 4, 2, 3, 6])
    before = [e.action_mask.clone() for e in rollouts.experiences]
    padded = pad_rollouts(rollouts, 4)
    assert len(padded) == 8
    assert padded.experiences[:5] == rollouts.experiences
    for pad in padded.experiences[5:]:
        assert torch.equal(pad.sequences, rollouts.experiences[2].sequences)
        assert not pad.action_mask.any()
        assert pad.rewards is not None
    # Neither the copied rollout nor a twin pad is touched.
    assert all(torch.equal(e.action_mask, mask) for e, mask in zip(rollouts.experiences, before, strict=True))
    assert len({id(e.info) for e in padded.experiences}) == 8
    assert padded.group_id_R.tolist() == [0, 0, 1, 1, 1, PADDING, PADDING, PADDING]
    assert np.isnan(padded.score_R[5:]).all()
    assert padded.group_id_R.dtype == rollouts.group_id_R.dtype
    assert padded.truncated_R.dtype == np.bool_


def test_padding_is_invisible_in_metrics_and_observations():
    rollouts = rollout_batch([2, 3], [1, 0, 1, np.nan, 0], lengths=[5, 4, 2, 3, 6], truncated=[1, 0, 0, 0, 0])
    padded = pad_rollouts(rollouts, 4)
    assert padded.observations() == rollouts.observations()
    assert padded.mixed_R[:5].tolist() == rollouts.mixed_R.tolist()
    assert not padded.mixed_R[5:].any()
    assert padded.metrics() == rollouts.metrics()


def test_every_rank_gets_equally_many():
    """Upstream's own split over ranks: equal rollouts and micro-batches, or ZeRO-3 waits for ever."""
    args = base_args({"train.batch_size": 4, "rollout.micro_batch_size": 3, "actor.num_gpus_per_node": 2})
    padded = pad_rollouts(rollout_batch([4, 3], [1, 0, 1, 0, 1, 1, 0]), step_multiple(args))
    maker = RemoteExperienceMaker.__new__(RemoteExperienceMaker)
    maker.args, maker.tokenizer = args, type("Tokenizer", (), {"pad_token_id": 0})
    batches = maker.split_rollout_samples(padded.experiences)
    assert len(batches) % 2 == 0
    assert {len(batch.sequences) for batch in batches} == {3}
    for batch in batches:
        batch.info = {}
    ranks = balance_experiences(batches, args)
    assert [len(rank.sequences) for rank in ranks] == [6, 6]
