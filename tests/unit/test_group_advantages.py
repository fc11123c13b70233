"""Ragged advantages: OpenRLHF's numbers for equal groups, the definition for all others."""

# Legend: R = rollouts, G = groups, B = rollouts of a group.

import copy
from types import SimpleNamespace

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from openrlhf.trainer.ppo_utils.experience_maker import RemoteExperienceMaker
from openrlhf.trainer.ppo_utils.kl_controller import FixedKLController

from coba_openrlhf.trainer.experience_maker import RaggedExperienceMaker
from coba_openrlhf.trainer.group_advantages import ESTIMATORS, compute_group_advantages
from coba_openrlhf.trainer.padding import pad_rollouts
from tests.rollouts import base_args, rollout_batch

KL_COEF = 0.05


def compare_equal(got, wanted):
    """Same shapes, dtypes and bits (``torch.equal`` alone ignores the dtype)."""
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def make_maker(cls, args):
    kl_ctl = FixedKLController(KL_COEF)
    return cls(None, None, None, None, kl_ctl, SimpleNamespace(args=args), SimpleNamespace(pad_token_id=0))


def with_models_output(maker, rollouts):
    """Micro-batches after upstream's split, with log-probability fields as the models would fill them."""
    experiences = maker.split_rollout_samples(copy.deepcopy(rollouts.experiences))
    for experience in experiences:
        # A value per rollout and position that does not depend on the split.
        index = torch.tensor(experience.index, dtype=torch.float32)[:, None]
        position = torch.arange(experience.action_mask.shape[1], dtype=torch.float32)[None]
        experience.kl = torch.sin(index * 7 + position) * experience.action_mask
    return experiences


def upstream_advantages(rollouts, args):
    maker = make_maker(RemoteExperienceMaker, args)
    return maker.compute_advantages_and_returns(with_models_output(maker, rollouts))


def ragged_advantages(rollouts, args):
    maker = make_maker(RaggedExperienceMaker, args)
    experiences = with_models_output(maker, rollouts)
    index_R = [i for experience in experiences for i in experience.index]
    return maker._compute_ragged_advantages(experiences, rollouts, index_R)


def by_rollout(experiences, field):
    """Unpadded rows in the order of the rollouts."""
    rows = {}
    for experience in experiences:
        values = experience.info[field] if field in experience.info else getattr(experience, field)
        for i, row, mask in zip(experience.index, values, experience.action_mask, strict=True):
            length = int(mask.nonzero()[-1]) + 1 if mask.any() else 0
            rows[i] = row[:length] if row.dim() else row
    return [rows[i] for i in range(len(rows))]


def random_rollouts(num_prompts, n, *, graded, seed):
    """Equal groups; no graded group is constant (there upstream's rounding error is no reference)."""
    rng = np.random.default_rng(seed)
    num_rollouts = num_prompts * n
    score_R = rng.random(num_rollouts) if graded else rng.integers(0, 2, num_rollouts)
    return rollout_batch([n] * num_prompts, score_R, lengths=rng.integers(1, 6, num_rollouts))


SPLITS = {
    "one by one": {"rollout.micro_batch_size": 1},
    "across groups": {"rollout.micro_batch_size": 5},
    "all at once": {"rollout.micro_batch_size": 4096},
    "by tokens": {
        "train.dynamic_batch_enable": True,
        "rollout.max_tokens_per_gpu": 16,
        "actor.num_gpus_per_node": 2,
    },
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("n", [2, 3, 17])
@pytest.mark.parametrize("graded", [False, True], ids=["binary", "graded"])
def test_equal_groups_are_upstream_bit_for_bit(estimator, split, n, graded):
    args = base_args({"algo.advantage.estimator": estimator, "rollout.n_samples_per_prompt": n, **SPLITS[split]})
    rollouts = random_rollouts(6, n, graded=graded, seed=n)
    ours, theirs = ragged_advantages(rollouts, args), upstream_advantages(rollouts, args)
    assert [e.index for e in ours] == [e.index for e in theirs]
    for field in ("advantages", "returns"):
        compare_equal([getattr(e, field) for e in ours], [getattr(e, field) for e in theirs])
    for field in ("return", "group_reward_std", "reward"):
        compare_equal([e.info[field] for e in ours], [e.info[field] for e in theirs])
    assert any(e.advantages.any() for e in ours)


def test_reinforce_baseline_without_std_is_upstream():
    args = base_args({"algo.advantage.estimator": "reinforce_baseline", "algo.advantage.no_std_norm": True})
    rollouts = random_rollouts(6, 8, graded=True, seed=0)
    ours, theirs = ragged_advantages(rollouts, args), upstream_advantages(rollouts, args)
    compare_equal([e.advantages for e in ours], [e.advantages for e in theirs])


def test_length_penalties_are_upstream():
    args = base_args(
        {"rollout.max_new_tokens": 5, "reward.overlong_buffer_len": 3.0, "reward.stop_properly_penalty_coef": 0.5}
    )
    rng = np.random.default_rng(1)
    rollouts = rollout_batch([8] * 4, rng.random(32), lengths=rng.integers(1, 6, 32), truncated=rng.random(32) < 0.3)
    raw_R = rollouts.score_R.copy()
    ours, theirs = ragged_advantages(rollouts, args), upstream_advantages(rollouts, args)
    compare_equal([e.advantages for e in ours], [e.advantages for e in theirs])
    assert np.array_equal(rollouts.score_R, raw_R)
    assert not np.allclose([float(e.rewards) for e in ours], raw_R)


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_micro_batch_size_changes_nothing(estimator):
    rng = np.random.default_rng(2)
    budgets = [1, 2, 16, 5, 8]
    rollouts = rollout_batch(budgets, rng.random(32), lengths=rng.integers(1, 6, 32))
    results = []
    for options in SPLITS.values():
        args = base_args({"algo.advantage.estimator": estimator, **options})
        results.append(by_rollout(ragged_advantages(rollouts, args), "advantages"))
    for other in results[1:]:
        if estimator == "reinforce_baseline":
            # Whitening sums tokens in the order of the micro-batches.
            assert torch.allclose(torch.cat(results[0]), torch.cat(other), rtol=1e-5, atol=1e-6)
        else:
            compare_equal(results[0], other)


def naive_advantages(reward_R, group_id_R, scored_R, estimator):
    """The definition in float64, group by group."""
    advantage_R, std_R = np.zeros(len(reward_R)), np.zeros(len(reward_R))
    for group in set(group_id_R.tolist()) - {-1}:
        rows = np.flatnonzero((group_id_R == group) & scored_R)
        rewards = reward_R[rows]
        if len(rows) < 2 or len(set(rewards.tolist())) == 1:
            continue
        std_R[rows] = rewards.std(ddof=1)
        for row in rows:
            others = rewards.sum() - reward_R[row]
            advantage_R[row] = {
                "group_norm": (reward_R[row] - rewards.mean()) / (std_R[row] + 1e-9),
                "rloo": reward_R[row] - others / (len(rows) - 1),
            }.get(estimator, reward_R[row] - rewards.mean())
    return advantage_R, std_R


@st.composite
def ragged_steps(draw):
    """Rewards on a coarse grid (so that groups are often constant), shuffled groups, padding, unscored."""
    sizes = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    group_id_R = np.repeat(np.arange(len(sizes)), sizes)
    padding = draw(st.integers(0, 3))
    group_id_R = np.concatenate([group_id_R, np.full(padding, -1)])
    order = draw(st.permutations(range(len(group_id_R))))
    reward_R = draw(st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.7, 1.0]), min_size=len(order), max_size=len(order)))
    scored_R = draw(st.lists(st.booleans(), min_size=len(order), max_size=len(order)))
    return np.array(reward_R, np.float32), group_id_R[list(order)], np.array(scored_R)


def compute(reward_R, group_id_R, scored_R, estimator):
    tensors = [torch.from_numpy(np.asarray(a)) for a in (reward_R, group_id_R, scored_R)]
    advantage_R, std_R = compute_group_advantages(*tensors, estimator)
    return advantage_R.numpy(), std_R.numpy()


@given(ragged_steps(), st.sampled_from(ESTIMATORS))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_ragged_groups_follow_the_definition(step, estimator):
    reward_R, group_id_R, scored_R = step
    got, wanted = compute(*step, estimator), naive_advantages(reward_R.astype(np.float64), *step[1:], estimator)
    for got_R, wanted_R in zip(got, wanted, strict=True):
        np.testing.assert_allclose(got_R, wanted_R, rtol=2e-5, atol=2e-6)
        assert np.array_equal(got_R == 0, np.abs(wanted_R) < 1e-9) or estimator != "group_norm"
    excluded = (group_id_R == -1) | ~scored_R
    assert not got[0][excluded].any()
    assert not got[1][excluded].any()


@given(ragged_steps(), st.sampled_from(ESTIMATORS), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_permuting_rollouts_permutes_advantages(step, estimator, random):
    order = list(range(len(step[0])))
    random.shuffle(order)
    plain, permuted = compute(*step, estimator), compute(*(a[order] for a in step), estimator)
    for a, b in zip(plain, permuted, strict=True):
        np.testing.assert_allclose(a[order], b, rtol=1e-5, atol=1e-6)


@given(ragged_steps(), st.sampled_from(ESTIMATORS))
@settings(max_examples=50, deadline=None, derandomize=True)
def test_other_groups_do_not_matter(step, estimator):
    reward_R, group_id_R, scored_R = step
    rows = group_id_R == group_id_R.max()
    whole, alone = compute(*step, estimator), compute(reward_R[rows], group_id_R[rows], scored_R[rows], estimator)
    for a, b in zip(whole, alone, strict=True):
        np.testing.assert_allclose(a[rows], b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("value", [0.0, 0.2, 0.4, 1.0, 1e-30, 1e30])
@pytest.mark.parametrize("size", [1, 2, 7, 128])
def test_constant_groups_are_exactly_zero(estimator, value, size):
    reward_R = np.full(size, value, np.float32)
    advantage_R, std_R = compute(reward_R, np.zeros(size, np.int64), np.ones(size, np.bool_), estimator)
    assert not advantage_R.any()
    assert not std_R.any()


def test_seven_rewards_of_a_fifth_are_the_trap():
    """What the exact zero is for: the plain expression is far from 0 here."""
    reward = torch.full((7,), 0.2)
    naive = (reward - reward.mean()) / (reward.std() + 1e-9)
    assert naive.abs().max() > 0.5
    assert not compute(reward.numpy(), np.zeros(7, np.int64), np.ones(7, np.bool_), "group_norm")[0].any()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_unscored_rollout_leaves_mean_and_std(estimator):
    """``[1, None, 0]`` is the group ``[1, 0]``; the number standing for None does not matter."""
    advantage_R, std_R = compute(
        np.float32([1, 77, 0]), np.zeros(3, np.int64), np.array([True, False, True]), estimator
    )
    pair_R, pair_std_R = compute(np.float32([1, 0]), np.zeros(2, np.int64), np.ones(2, np.bool_), estimator)
    assert advantage_R.tolist() == [pair_R[0], 0.0, pair_R[1]]
    assert std_R.tolist() == [pair_std_R[0], 0.0, pair_std_R[1]]
    assert pair_R[0] == -pair_R[1] > 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_padding_and_unscored_have_zero_token_advantages(estimator):
    rollouts = rollout_batch([3, 1, 2], [1, np.nan, 0, 1, 0, 1])
    padded = pad_rollouts(rollouts, 8)
    args = base_args({"algo.advantage.estimator": estimator, "rollout.micro_batch_size": 4})
    maker = make_maker(RaggedExperienceMaker, args)
    experiences = with_models_output(maker, padded)
    for experience in experiences:
        experience.kl = torch.zeros_like(experience.kl)
    index_R = [i for e in experiences for i in e.index]
    done = maker._compute_ragged_advantages(experiences, padded, index_R)
    advantage_R = torch.cat([e.advantages.abs().sum(-1) for e in done])
    assert (advantage_R > 0).tolist() == [True, False, True, False, True, True, False, False]


def test_unscored_rollout_has_no_part_in_whitening():
    """Unequal lengths give the step a mean that is not 0, which must not reach the unscored rollout."""
    args = base_args({"algo.advantage.estimator": "reinforce_baseline", "rollout.micro_batch_size": 2})
    with_none = ragged_advantages(rollout_batch([4], [1, 0, 0, np.nan], lengths=[1, 6, 6, 5]), args)
    without = ragged_advantages(rollout_batch([3], [1, 0, 0], lengths=[1, 6, 6]), args)
    rows, expected = by_rollout(with_none, "advantages"), by_rollout(without, "advantages")
    assert not rows[3].any()
    for row, other in zip(rows, expected, strict=False):
        assert torch.allclose(row[row != 0], other[other != 0])


def test_padding_has_no_weight_in_whitening():
    args = base_args({"algo.advantage.estimator": "reinforce_baseline", "rollout.micro_batch_size": 4})
    rollouts = rollout_batch([3, 1, 2], [1, 0.5, 0, 1, 0.25, 1])
    plain = by_rollout(ragged_advantages(rollouts, args), "advantages")
    padded = by_rollout(ragged_advantages(pad_rollouts(rollouts, 16), args), "advantages")
    assert torch.allclose(torch.cat(plain), torch.cat(padded[: len(plain)]), rtol=1e-6, atol=1e-7)


def test_make_experience_batch_clears_padding_means():
    """Through the whole method, with the policy's forward pass answered by a group without ranks."""
    args = base_args({"rollout.micro_batch_size": 4})
    padded = pad_rollouts(rollout_batch([3, 3], [1, 0, 0, 1, 1, 0]), 8)
    maker = make_maker(RaggedExperienceMaker, args)
    maker.make_experience = lambda samples: _without_models(maker, samples)
    done = maker.make_experience_batch(padded)
    assert [i for e in done for i in e.index] == list(range(8))
    for name in ("kl", "logprobs_diff"):
        assert torch.isfinite(torch.cat([e.info[name] for e in done])).all()
    assert not torch.cat([e.advantages for e in done])[6:].any()


def _without_models(maker, samples):
    from openrlhf.models.utils import masked_mean

    for sample in samples:
        sample.kl = torch.zeros(sample.action_mask.shape)
        mean = masked_mean(sample.kl, sample.action_mask, dim=-1)
        sample.info |= {"kl": mean, "logprobs_diff": mean.clone()}
    return samples
