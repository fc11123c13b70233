"""Zero-weight rollouts that make a step divisible.

Every rank must run the same number of forward and backward passes, or ZeRO-3 waits for ever; and an optimiser
step that is not full would leave its gradient to the next one. A short last batch does not divide, so it is
filled up with copies of its shortest rollout whose action mask is all zero: they take part in every collective
and in no sum.
"""

import copy
import math

import numpy as np
import torch

from .rollout_batch import PADDING, RolloutBatch


def step_multiple(args) -> int:
    """The number that a step's rollouts must be a multiple of.

    Args:
        args: OpenRLHF options; uses the batch sizes and the data-parallel size.
    """
    ranks = (
        args.actor.num_nodes * args.actor.num_gpus_per_node // args.ds.ring_attn_size // args.ds.tensor_parallel_size
    )
    return math.lcm(args.train.batch_size, ranks * args.rollout.micro_batch_size)


def pad_rollouts(rollouts: RolloutBatch, multiple: int) -> RolloutBatch:
    """Fill ``rollouts`` up to a multiple of ``multiple``; unchanged when it already is one."""
    missing = -len(rollouts) % multiple
    if missing == 0:
        return rollouts
    shortest = min(rollouts.experiences, key=lambda e: int(e.total_length))
    pads = []
    for _ in range(missing):
        pad = copy.copy(shortest)
        pad.action_mask = torch.zeros_like(shortest.action_mask)
        pad.info = {name: torch.zeros_like(value) for name, value in shortest.info.items()}
        pads.append(pad)
    return RolloutBatch(
        batch=rollouts.batch,
        experiences=rollouts.experiences + pads,
        group_id_R=np.concatenate([rollouts.group_id_R, np.full(missing, PADDING)]),
        score_R=np.concatenate([rollouts.score_R, np.full(missing, np.nan)]),
        response_length_R=np.concatenate([rollouts.response_length_R, np.zeros(missing, np.int64)]),
        truncated_R=np.concatenate([rollouts.truncated_R, np.zeros(missing, np.bool_)]),
        error_R=np.concatenate([rollouts.error_R, np.zeros(missing, np.bool_)]),
        reason_R=np.concatenate([rollouts.reason_R, np.full(missing, "", object)]),
    )
