"""How much every rollout counts in the policy loss when groups have different sizes."""

# Legend: R = rollouts, P = prompts that have a part in the loss.

from typing import Literal, get_args

import torch

LossMean = Literal["token", "sequence"]


def loss_mean(loss_agg_mode: str, policy_loss_type: str) -> LossMean:
    """What OpenRLHF's ``PolicyLoss`` averages over.

    Args:
        loss_agg_mode: ``actor.loss_agg_mode``, ``token-mean`` or ``seq-mean-token-mean``.
        policy_loss_type: ``actor.policy_loss_type``; ``gspo`` averages over sequences in either mode.
    """
    return "token" if loss_agg_mode == "token-mean" and policy_loss_type != "gspo" else "sequence"


def compute_group_weights(
    num_tokens_R: torch.Tensor, group_id_R: torch.Tensor, scored_R: torch.Tensor, mean: LossMean
) -> torch.Tensor:
    """Factors on the advantages that give every prompt of the step the same total weight.

    A rollout has a part if it is scored, is no padding and has action tokens. Let ``s_r`` be the weight that the
    loss gives it anyway: its action tokens if the loss is a mean over tokens, 1 if it is a mean over sequences.
    With ``S_i`` the sum of ``s_r`` over the prompt's rollouts that have a part, and ``S`` the sum over all prompts:

        factor of prompt i = (S / P) / S_i

    So ``factor * s_r`` adds up to ``S / P`` for every prompt, and to ``S`` over the step, as without factors.

    ``PolicyLoss`` divides by the number of tokens or sequences of a whole optimiser batch, over all ranks, and is
    linear in a positive factor of the advantage: both sides of every ``min`` and ``max`` of the clipping scale with
    it. Hence the factors can be multiplied into the advantages, and no split into micro-batches or ranks matters.
    They concern the policy term alone, with a KL penalty that is part of the reward. A KL loss
    (``algo.kl.use_loss``) and the entropy bonus do not see advantages and stay means over tokens.

    The factors are those of the whole step. If a step has several optimiser batches (``train.batch_size`` below its
    rollouts), a prompt may lie in more than one of them, and each batch divides by its own count: prompts then
    weigh the same over the step as far as these counts are equal, and not within one batch.

    Args:
        num_tokens_R: Action tokens of every rollout, >= 0, integers.
        group_id_R: Prompt of every rollout; negative for padding.
        scored_R: False where a rollout has no score.
        mean: What the loss is averaged over, see ``loss_mean``.

    Returns:
        Positive factors, float32, shaped ``(R,)``. Exactly 1 for all rollouts if all ``S_i`` are equal, and always
        for rollouts without a part. The largest one is >= 1.

    Raises:
        ValueError: Shapes differ, token counts are no integers or negative, or ``mean`` is unknown.
    """
    _check(num_tokens_R, group_id_R, scored_R, mean)
    weight_R = torch.ones(num_tokens_R.shape, dtype=torch.float32, device=num_tokens_R.device)
    has_part_R = scored_R & (group_id_R >= 0) & (num_tokens_R > 0)
    if not has_part_R.any():
        return weight_R
    share_R = (num_tokens_R if mean == "token" else torch.ones_like(num_tokens_R))[has_part_R].long()
    prompts, row_R = torch.unique(group_id_R[has_part_R], return_inverse=True)
    sum_P = torch.zeros(len(prompts), dtype=torch.int64, device=share_R.device).index_add_(0, row_R, share_R)
    # One division of integers, exact in float64 below 2**53: equal sums give 1 and not its neighbour.
    factor_P = sum_P.sum().double() / (len(prompts) * sum_P).double()
    weight_R[has_part_R] = factor_P.float()[row_R]
    return weight_R


def _check(num_tokens_R: torch.Tensor, group_id_R: torch.Tensor, scored_R: torch.Tensor, mean: str) -> None:
    if mean not in get_args(LossMean):
        raise ValueError(f"mean must be one of {get_args(LossMean)}, got {mean!r}")
    shapes = [tuple(a.shape) for a in (num_tokens_R, group_id_R, scored_R)]
    if len(shapes[0]) != 1 or len(set(shapes)) != 1:
        raise ValueError(f"num_tokens_R, group_id_R and scored_R must have one shape (R,), got {shapes}")
    if num_tokens_R.is_floating_point() or (num_tokens_R < 0).any():
        raise ValueError(f"num_tokens_R must be integers >= 0, got {num_tokens_R}")
