"""What ``coba.group_weight: prompt`` relies on in upstream's policy loss."""

# Legend: R = rollouts, A = action tokens.

import ast
import inspect
import itertools
import textwrap
import typing

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import pytest
import torch
from openrlhf.models import PolicyLoss, aggregate_loss
from openrlhf.trainer.ray import ppo_actor
from openrlhf.utils.loss_utils import iter_grad_accum_global_norm

from coba_openrlhf.config import RunConfig
from coba_openrlhf.trainer.group_weights import loss_mean

COUNTS = {"batch_num_tokens": 40.0, "global_batch_size": 10.0}


def random_step(seed=0, num_rollouts=8, num_tokens=6):
    """Log-probabilities far enough apart that all kinds of clipping happen, and a mask with an empty row."""
    generator = torch.Generator().manual_seed(seed)
    shape = (num_rollouts, num_tokens)
    log_probs_RA, old_RA, rollout_RA = (torch.randn(shape, generator=generator) - 2 for _ in range(3))
    advantage_R1 = torch.randn((num_rollouts, 1), generator=generator)
    length_R1 = torch.arange(num_rollouts).remainder(num_tokens + 1).unsqueeze(1)
    mask_RA = torch.arange(num_tokens) < length_R1
    return log_probs_RA, old_RA, advantage_R1.expand(shape), mask_RA, rollout_RA


def policy_gradient(loss, step, advantage_RA):
    """Policy loss and its gradient with respect to every log-probability."""
    log_probs_RA, old_RA, _, mask_RA, rollout_RA = step
    log_probs_RA = log_probs_RA.clone().requires_grad_()
    value, clip_ratio, *_ = loss(
        log_probs_RA, old_RA, advantage_RA, action_mask=mask_RA, rollout_log_probs=rollout_RA, **COUNTS
    )
    value.backward()
    return value.detach(), log_probs_RA.grad, clip_ratio


LOSSES = {
    "ppo": {},
    "sequences": {"token_level_loss": False},
    "gspo": {"policy_loss_type": "gspo"},
    "dual clip": {"dual_clip": 1.5},
    "token correction": {"is_correction_level": "token"},
    "clipped correction": {"is_correction_level": "token", "is_correction_mode": "clip"},
    "sequence correction": {"is_correction_level": "seq"},
    "divergence gate": {
        "is_correction_level": "seq",
        "is_correction_gating": "binary_kl",
        "is_correction_threshold": [0.0, 0.2],
    },
}


@pytest.mark.parametrize("options", LOSSES.values(), ids=LOSSES)
def test_policy_loss_is_linear_in_a_positive_factor_per_rollout(options):
    """Clipping compares products with the advantage, so that a factor comes through; a power of two, exactly."""
    step = random_step()
    advantage_RA = step[2]
    loss = PolicyLoss(**options)
    weight_R1 = 2.0 ** torch.arange(-4, 4).unsqueeze(1)
    _, gradient_RA, clip_ratio = policy_gradient(loss, step, advantage_RA)
    _, weighted_RA, weighted_clip_ratio = policy_gradient(loss, step, advantage_RA * weight_R1)
    assert torch.equal(gradient_RA * weight_R1, weighted_RA)
    assert torch.equal(clip_ratio, weighted_clip_ratio)
    assert gradient_RA.any()
    zero_RA = ((gradient_RA == 0) & step[3]).any()
    assert zero_RA or options.get("dual_clip") is None, "some tokens should be clipped"


@pytest.mark.parametrize("token_level", [True, False])
@pytest.mark.parametrize("cuts", [(1,) * 8, (3, 5), (2, 2, 4)])
def test_parts_add_up_to_the_whole(token_level, cuts):
    """With global counts nothing depends on which rollouts share a micro-batch or how it is padded."""
    loss_RA, _, _, mask_RA, _ = random_step()
    whole = aggregate_loss(loss_RA, mask_RA, token_level, dp_size=2, **COUNTS)
    parts = []
    for part_RA, part_mask_RA in zip(loss_RA.split(cuts), mask_RA.split(cuts), strict=True):
        longest = max(int(part_mask_RA.sum(-1).max()), 1)
        parts.append(aggregate_loss(part_RA[:, :longest], part_mask_RA[:, :longest], token_level, dp_size=2, **COUNTS))
    torch.testing.assert_close(torch.stack(parts).sum(), whole)


@pytest.mark.parametrize("token_level", [True, False])
def test_the_mean_is_over_the_counts_that_are_passed(token_level):
    loss_RA, _, _, mask_RA, _ = random_step()
    loss_R = (loss_RA * mask_RA).sum(-1)
    expected = loss_R.sum() / 40 if token_level else (loss_R / mask_RA.sum(-1).clamp(min=1)).sum() / 10
    torch.testing.assert_close(aggregate_loss(loss_RA, mask_RA, token_level, **COUNTS), expected)
    torch.testing.assert_close(aggregate_loss(loss_RA, mask_RA, token_level, dp_size=3, **COUNTS), 3 * expected)


@pytest.mark.parametrize("accumulated", [1, 2, 4])
def test_micro_batches_of_one_update_share_their_counts(accumulated):
    """Tokens, and rollouts that have any, over ``accumulated`` micro-batches, of which DeepSpeed takes the mean."""
    masks = list(random_step()[3].split(2))
    pairs = list(iter_grad_accum_global_norm(masks, None, accumulated, lambda mask: mask))
    for start in range(0, len(masks), accumulated):
        window = torch.cat(masks[start : start + accumulated])
        for _, info in pairs[start : start + accumulated]:
            assert info["batch_num_tokens"] * accumulated == window.sum()
            assert info["global_batch_size"] * accumulated == window.any(-1).sum()
            assert info["dp_size"] == 1


def test_mean_is_recognised_from_the_options():
    actor = RunConfig().actor
    hints = typing.get_type_hints(type(actor))
    modes, types = typing.get_args(hints["loss_agg_mode"]), typing.get_args(hints["policy_loss_type"])
    assert len(modes) == len(types) == 2
    source = inspect.getsource(ppo_actor.ActorPPOTrainer.__init__)
    assert 'token_level_loss=self.args.actor.loss_agg_mode == "token-mean"' in source
    for mode, kind in itertools.product(modes, types):
        loss = PolicyLoss(token_level_loss=mode == "token-mean", policy_loss_type=kind)
        assert loss_mean(mode, kind) == ("token" if loss.token_level_loss else "sequence")


def test_other_terms_of_the_loss_see_no_advantages():
    """KL loss and entropy are aggregated from masks alone, over tokens, with the counts of the policy term."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(ppo_actor.ActorPPOTrainer.training_step)))
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    others = [call for call in calls if getattr(call.func, "id", None) == "aggregate_loss"]
    assert len(others) == 2
    for call in others:
        assert len(call.args) == 2
        assert [(keyword.arg, ast.unparse(keyword.value)) for keyword in call.keywords] == [(None, "loss_batch_info")]
    readers = [ast.unparse(call.func) for call in calls if "advantages" in [ast.unparse(arg) for arg in call.args]]
    assert readers == ["self.actor_loss_fn"]
