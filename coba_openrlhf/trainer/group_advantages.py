"""Baselines within groups of different sizes."""

# Legend: R = rollouts, G = groups of one size, B = that size.

import torch

ESTIMATORS = ("group_norm", "rloo", "dr_grpo", "reinforce_baseline")


def compute_group_advantages(
    reward_R: torch.Tensor, group_id_R: torch.Tensor, scored_R: torch.Tensor, estimator: str
) -> tuple[torch.Tensor, torch.Tensor]:
    """Reward of every rollout relative to its own group.

    With mean ``m`` and unbiased standard deviation ``s`` of a group of ``B`` scored rollouts:

    - ``group_norm``: ``(r - m) / (s + 1e-9)`` (GRPO)
    - ``rloo``: ``r - (sum of the others) / (B - 1)``
    - ``dr_grpo``, ``reinforce_baseline``: ``r - m``

    Groups of one size are stacked to a ``(G, B)`` matrix and go through the expression OpenRLHF uses, so that
    equal groups give its numbers bit for bit.

    Args:
        reward_R: Rewards, float32 or wider.
        group_id_R: Group of every rollout; negative for padding.
        scored_R: False where a rollout has no reward.
        estimator: One of ``ESTIMATORS``.

    Returns:
        Advantages and group standard deviations, both shaped ``(R,)``. Exactly 0 for padding, for rollouts
        without a score, in groups of one and in constant groups.
    """
    assert estimator in ESTIMATORS, estimator
    advantage_R = torch.zeros_like(reward_R)
    std_R = torch.zeros_like(reward_R)
    valid_R = scored_R & (group_id_R >= 0)
    # Stable sort: rollouts of a group keep their order, groups come in the order of their ids.
    order = torch.argsort(group_id_R[valid_R], stable=True)
    row_R = torch.nonzero(valid_R).flatten()[order]
    _, size_G = torch.unique_consecutive(group_id_R[row_R], return_counts=True)
    rows_by_group = torch.split(row_R, size_G.tolist())
    for size in torch.unique(size_G).tolist():
        if size < 2:
            continue
        row_GB = torch.stack([rows for rows in rows_by_group if len(rows) == size])
        reward_GB = reward_R[row_GB]
        constant_G1 = (reward_GB == reward_GB[:, :1]).all(-1, keepdim=True)
        std_G1 = reward_GB.std(-1, keepdim=True).masked_fill(constant_G1, 0.0)
        if estimator == "rloo":
            advantage_GB = reward_GB - (reward_GB.sum(-1, keepdim=True) - reward_GB) / (size - 1)
        else:
            advantage_GB = reward_GB - reward_GB.mean(-1, keepdim=True)
            if estimator == "group_norm":
                advantage_GB = advantage_GB / (std_G1 + 1e-9)
        # A mean of equal float32 numbers can be off by one ulp, which the division would blow up.
        advantage_R[row_GB] = advantage_GB.masked_fill(constant_G1, 0.0)
        std_R[row_GB] = std_G1.expand_as(reward_GB)
    return advantage_R, std_R
