"""Factors of ``coba.group_weight``: their laws, and upstream's own training loop against the definition."""

# Legend: R = rollouts, P = prompts, A = action tokens of a rollout, K = parameters.

import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from openrlhf.trainer.ppo_utils import replay_buffer
from openrlhf.trainer.ppo_utils.experience import balance_experiences
from openrlhf.trainer.ppo_utils.kl_controller import FixedKLController
from openrlhf.trainer.ray import ppo_actor
from openrlhf.utils import loss_utils

from coba_openrlhf.actors.policy import PolicyTrainer
from coba_openrlhf.config.coba_options import CobaOptions
from coba_openrlhf.device.cuda_standin import _CpuDevice
from coba_openrlhf.trainer.coba_trainer import _take_padding_out
from coba_openrlhf.trainer.experience_maker import RaggedExperienceMaker
from coba_openrlhf.trainer.group_weights import compute_group_weights, loss_mean
from coba_openrlhf.trainer.padding import pad_rollouts, step_multiple
from coba_openrlhf.trainer.rollout_batch import PADDING
from tests.rollouts import base_args, rollout_batch

MEANS = ("token", "sequence")
METRIC = "coba/group_weight_max"


def weights(tokens, groups, scored=None, mean="token"):
    scored = [True] * len(tokens) if scored is None else scored
    return compute_group_weights(torch.tensor(tokens), torch.tensor(groups), torch.tensor(scored), mean)


# --- The factors -----------------------------------------------------------------------------------------------


def test_token_mean_by_hand():
    """S = 6 + 2 = 8 tokens, P = 2 prompts: 4 tokens' worth each."""
    assert weights([1, 2, 3, 2], [0, 0, 0, 1]).tolist() == [np.float32(4 / 6)] * 3 + [2.0]


def test_sequence_mean_by_hand():
    """S = 3 + 1 = 4 rollouts, P = 2 prompts: 2 rollouts' worth each; lengths do not matter."""
    assert weights([1, 2, 3, 2], [0, 0, 0, 1], mean="sequence").tolist() == [np.float32(2 / 3)] * 3 + [2.0]


def test_unscored_padding_and_empty_rollouts_have_no_part():
    """As if only the rollouts 0, 1 and 5 were there; the others keep factor 1."""
    tokens, groups = [4, 4, 9, 0, 0, 2, 7], [0, 0, 0, -1, 1, 1, 2]
    scored = [True, True, False, False, True, True, False]
    expected = weights([4, 4, 2], [0, 0, 1])
    got = weights(tokens, groups, scored)
    assert got[[0, 1, 5]].tolist() == expected.tolist() == [np.float32(5 / 8)] * 2 + [2.5]
    assert got[[2, 3, 4, 6]].tolist() == [1.0] * 4


@pytest.mark.parametrize("mean", MEANS)
def test_one_prompt_has_weight_one(mean):
    assert weights([3, 8, 1], [4, 4, 4], mean=mean).tolist() == [1.0] * 3


@pytest.mark.parametrize("mean", MEANS)
def test_nothing_scored_leaves_everything(mean):
    assert weights([3, 0, 1], [0, -1, 1], [False] * 3, mean).tolist() == [1.0] * 3
    assert compute_group_weights(*(torch.zeros(0, dtype=d) for d in (torch.int64, torch.int64, torch.bool)), mean).shape


@pytest.mark.parametrize("num_prompts", [1, 3, 7, 49, 512])
@pytest.mark.parametrize("size", [1, 3, 8, 41])
def test_equal_groups_have_factor_one_exactly(num_prompts, size):
    rng = np.random.default_rng(size)
    groups = np.repeat(np.arange(num_prompts), size).tolist()
    one_group = rng.integers(1, 10_000, size)
    assert weights(rng.integers(1, 9, len(groups)).tolist(), groups, mean="sequence").eq(1.0).all()
    # In a mean over tokens, equal groups are those with equally many tokens.
    tokens = np.concatenate([rng.permutation(one_group) for _ in range(num_prompts)]).tolist()
    assert weights(tokens, groups, mean="token").eq(1.0).all()


@st.composite
def ragged_steps(draw):
    num_rollouts = draw(st.integers(1, 30))
    column = {
        "tokens": st.integers(0, 40_000),
        "groups": st.integers(-1, 6),
        "scored": st.booleans(),
    }
    return tuple(draw(st.lists(values, min_size=num_rollouts, max_size=num_rollouts)) for values in column.values()) + (
        draw(st.sampled_from(MEANS)),
    )


@given(ragged_steps())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_laws_of_the_factors(step):
    tokens, groups, scored, mean = step
    weight_R = weights(*step).double().numpy()
    has_part_R = np.array(scored) & (np.array(groups) >= 0) & (np.array(tokens) > 0)
    assert (weight_R > 0).all()
    assert (weight_R[~has_part_R] == 1).all()
    if not has_part_R.any():
        return
    assert weight_R.max() >= 1
    share_R = (np.array(tokens) if mean == "token" else np.ones(len(tokens)))[has_part_R]
    groups_R, weight_R = np.array(groups)[has_part_R], weight_R[has_part_R]
    total_P = [(weight_R * share_R)[groups_R == group].sum() for group in np.unique(groups_R)]
    np.testing.assert_allclose(total_P, share_R.sum() / len(total_P), rtol=1e-6)
    for group in np.unique(groups_R):
        assert len(set(weight_R[groups_R == group])) == 1


@given(ragged_steps(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, derandomize=True)
def test_order_and_names_of_groups_do_not_matter(step, random):
    *columns, mean = step
    order = list(range(len(columns[0])))
    random.shuffle(order)
    tokens, groups, scored = ([column[i] for i in order] for column in columns)
    renamed = [group if group < 0 else 1000 - 7 * group for group in groups]
    assert torch.equal(weights(*step)[order], weights(tokens, renamed, scored, mean))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1], [0], [True], "batch"), "mean must be one of"),
        (([1, 2], [0], [True], "token"), "one shape"),
        (([[1]], [[0]], [[True]], "token"), "one shape"),
        (([1.0], [0], [True], "token"), "integers"),
        (([-1], [0], [True], "token"), "integers"),
    ],
)
def test_arguments_are_checked(arguments, message):
    with pytest.raises(ValueError, match=message):
        weights(*arguments)


def test_the_default_is_as_published():
    assert CobaOptions().group_weight == "rollout"


# --- Advantages ------------------------------------------------------------------------------------------------


def make_experiences(rollouts, args, kl_coef=0.0):
    """Micro-batches with advantages, and what a model would have added."""
    strategy, tokenizer = SimpleNamespace(args=args), SimpleNamespace(pad_token_id=0)
    maker = RaggedExperienceMaker(None, None, None, None, FixedKLController(kl_coef), strategy, tokenizer)
    experiences = maker.split_rollout_samples(copy.deepcopy(rollouts.experiences))
    for experience in experiences:
        index = torch.tensor(experience.index, dtype=torch.float32)[:, None]
        position = torch.arange(experience.action_mask.shape[1], dtype=torch.float32)[None]
        # Values per rollout and position that do not depend on the split.
        experience.kl = torch.sin(index * 7 + position) * experience.action_mask
        experience.action_log_probs = -1 - torch.sin(index * 3 + position) ** 2
        experience.base_action_log_probs = torch.cos(index * 5 + position * 2)
    index_R = [i for experience in experiences for i in experience.index]
    return maker._compute_ragged_advantages(experiences, rollouts, index_R)


def by_rollout(experiences, name):
    """Rows at the action tokens, in the order of the rollouts."""
    rows = {}
    for experience in experiences:
        for i, row, mask in zip(experience.index, getattr(experience, name), experience.action_mask, strict=True):
            rows[i] = row[mask.bool()]
    return [rows[i] for i in sorted(rows)]


@pytest.mark.parametrize("estimator", ["group_norm", "rloo", "dr_grpo", "reinforce_baseline"])
@pytest.mark.parametrize("kl_coef", [0.0, 0.05])
def test_equal_groups_are_bit_identical_to_rollout(estimator, kl_coef):
    rng = np.random.default_rng(3)
    lengths = np.concatenate([rng.permutation([1, 2, 4, 6]) for _ in range(5)])
    rollouts = rollout_batch([4] * 5, rng.random(20), lengths=lengths)
    results = []
    for group_weight in ("rollout", "prompt"):
        args = base_args({"algo.advantage.estimator": estimator, "coba.group_weight": group_weight})
        results.append(make_experiences(rollouts, args, kl_coef))
    for plain, weighted in zip(*results, strict=True):
        assert plain.advantages.dtype == weighted.advantages.dtype
        assert torch.equal(plain.advantages, weighted.advantages)
        assert weighted.info[METRIC].eq(1.0).all()
    assert any(e.advantages.any() for e in results[0])


@pytest.mark.parametrize("agg_mode", ["token-mean", "seq-mean-token-mean"])
@pytest.mark.parametrize("estimator", ["group_norm", "reinforce_baseline"])
def test_advantages_are_multiplied_last(agg_mode, estimator):
    """After whitening; returns stay, and unscored and padding rollouts stay at 0."""
    rollouts = ragged_rollouts()
    changes = {"algo.advantage.estimator": estimator, "actor.loss_agg_mode": agg_mode, "rollout.micro_batch_size": 4}
    padded = pad_rollouts(rollouts, 24)
    plain = make_experiences(padded, base_args(changes))
    weighted = make_experiences(padded, base_args({**changes, "coba.group_weight": "prompt"}))
    weight_R = weights(
        [*rollouts.response_length_R.tolist(), 0, 0, 0, 0],
        padded.group_id_R.tolist(),
        padded.scored_R.tolist(),
        loss_mean(agg_mode, "ppo"),
    )
    rows = zip(by_rollout(plain, "advantages"), by_rollout(weighted, "advantages"), weight_R, strict=True)
    for i, (before, after, weight) in enumerate(rows):
        assert torch.equal(before * weight, after)
        assert padded.scored_R[i] or not after.any()
    for one, other in zip(plain, weighted, strict=True):
        assert torch.equal(one.returns, other.returns)
        is_real = torch.from_numpy(padded.group_id_R)[other.index] != PADDING
        assert torch.equal(one.info[METRIC], is_real.float())
        assert torch.equal(other.info[METRIC], is_real * weight_R.max())
    assert weight_R.max() > 1.5


# --- Upstream's training loop ----------------------------------------------------------------------------------

CLIP_LOW, CLIP_HIGH = 0.2, 0.28
BUDGETS = [1, 2, 5, 3, 9]


def ragged_rollouts(*, unscored=True):
    rng = np.random.default_rng(11)
    score_R = rng.random(sum(BUDGETS))
    if unscored:
        score_R[[4, 12, 19]] = np.nan
    return rollout_batch(BUDGETS, score_R, lengths=rng.integers(1, 7, sum(BUDGETS)))


class SimulatedRanks:
    """``torch.distributed`` for threads of one process: every rank waits until all have given their tensor."""

    ReduceOp = SimpleNamespace(SUM="sum", MIN="min", MAX="max")

    def __init__(self, num_ranks):
        self.num_ranks = num_ranks
        self._given = [None] * num_ranks
        self._barrier = threading.Barrier(num_ranks, timeout=60)
        self._thread = threading.local()

    def is_available(self):
        return True

    is_initialized = is_available

    def get_world_size(self, group=None):
        return self.num_ranks

    def all_reduce(self, tensor, op="sum", group=None):
        self._given[self._thread.rank] = tensor.clone()
        self._barrier.wait()
        stacked = torch.stack(self._given)
        self._barrier.wait()
        tensor.copy_(stacked.sum(0) if op == "sum" else getattr(stacked, f"a{op}")(0))

    def run(self, function):
        """Results of ``function(rank)``, one thread per rank."""

        def work(rank):
            self._thread.rank = rank
            try:
                return function(rank)
            except BaseException:
                self._barrier.abort()
                raise

        with ThreadPoolExecutor(self.num_ranks) as pool:
            return list(pool.map(work, range(self.num_ranks)))


class RankStrategy:
    """What ``ActorPPOTrainer`` asks of a strategy; DeepSpeed's ``1 / accumulated steps`` is in ``backward``."""

    ring_attn_group = None

    def __init__(self, args, ranks):
        self.args, self._ranks = args, ranks
        self.ds_device_mesh = {"dp": SimpleNamespace(get_group=lambda: None)}
        self.accumulated_gradient = args.train.batch_size // args.train.micro_batch_size // ranks.num_ranks
        self.num_updates = 0

    def is_rank_0(self):
        return False

    def all_reduce(self, data, op="mean"):
        if isinstance(data, dict):
            return {name: self.all_reduce(torch.tensor(value), op).item() for name, value in data.items()}
        data = data.double()
        self._ranks.all_reduce(data, "max" if op == "max" else "sum")
        return (data / self._ranks.num_ranks if op == "mean" else data).to(torch.int if op == "max" else data.dtype)

    def backward(self, loss, model, optimizer):
        # DeepSpeed's own setting is 1 with dynamic batches (see DeepspeedStrategy.get_ds_train_config).
        (loss / (1 if self.args.train.dynamic_batch_enable else self.accumulated_gradient)).backward()

    def optimizer_step(self, *args, **kwargs):
        self.num_updates += 1

    def get_grad_norm(self, model):
        return 0.0


def log_ratios(theta_K, x):
    """Log of new to old probability at tokens described by ``x``."""
    powers = torch.arange(1, len(theta_K) + 1, dtype=torch.float64)
    return torch.cos(x.double().unsqueeze(-1) * powers) @ theta_K


class TokenModel:
    """A policy with K parameters that reads a token's description instead of the token."""

    def __init__(self):
        self.theta_K = torch.tensor([0.6, -0.5, 0.4, 0.3], dtype=torch.float64, requires_grad=True)
        self.experience = None

    def train(self):
        pass

    def __call__(self, sequences, action_mask, **kwargs):
        old, x = self.experience.action_log_probs, self.experience.base_action_log_probs
        return old + log_ratios(self.theta_K, x), None


class RankTrainer(PolicyTrainer):
    def training_step(self, experience, *args):
        self.actor.experience = experience
        return super().training_step(experience, *args)


@pytest.fixture
def train(monkeypatch):
    """Gradient, status and number of updates of upstream's loop on a padded step."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: _CpuDevice("cpu"))
    monkeypatch.setattr(ppo_actor, "torch_dist_barrier_and_cuda_sync", lambda: None)

    def run(rollouts, args):
        num_ranks = args.actor.num_gpus_per_node
        ranks = SimulatedRanks(num_ranks)
        monkeypatch.setattr(loss_utils, "dist", ranks)
        monkeypatch.setattr(replay_buffer, "dist", ranks)
        experiences = make_experiences(pad_rollouts(rollouts, step_multiple(args)), args)
        for experience in experiences:
            experience.kl = None
        if args.train.dynamic_batch_enable:
            experiences = balance_experiences(experiences, args)
        share = len(experiences) // num_ranks
        assert share * num_ranks == len(experiences)

        def train_rank(rank):
            strategy, model = RankStrategy(args, ranks), TokenModel()
            scheduler = SimpleNamespace(get_last_lr=lambda: [0.0])
            trainer = RankTrainer(strategy, model, None, None, scheduler, 0.0, args.train.micro_batch_size)
            for experience in experiences[rank * share : (rank + 1) * share]:
                trainer.replay_buffer.append(experience)
            status = trainer.ppo_train(0.0)
            return model.theta_K.grad, status, strategy.num_updates

        gradients, statuses, num_updates = zip(*ranks.run(train_rank), strict=True)
        return torch.stack(gradients).mean(0), statuses[0], num_updates[0]

    return run


def defined_gradient(rollouts, args, *, per_prompt):
    """Gradient of the loss as it is defined, from unweighted advantages, one rollout after the other.

    ``per_prompt``: the mean over prompts of the prompt's own mean; otherwise the mean over the step.
    """
    args = copy.deepcopy(args)
    args.coba.group_weight = "rollout"
    experiences = make_experiences(rollouts, args)
    theta_K = TokenModel().theta_K
    token_losses = []
    rows = zip(by_rollout(experiences, "base_action_log_probs"), by_rollout(experiences, "advantages"), strict=True)
    for x, advantage in rows:
        log_ratio = log_ratios(theta_K, x)
        if args.actor.policy_loss_type == "gspo":
            log_ratio = log_ratio.mean().expand_as(log_ratio)
        ratio = log_ratio.exp()
        gain = torch.minimum(ratio * advantage, ratio.clamp(1 - CLIP_LOW, 1 + CLIP_HIGH) * advantage)
        if args.actor.dual_clip is not None:
            gain = torch.where(advantage < 0, torch.maximum(gain, args.actor.dual_clip * advantage), gain)
        token_losses.append(-gain)
    by_sequence = args.actor.policy_loss_type == "gspo" or args.actor.loss_agg_mode != "token-mean"
    units = [loss.mean().unsqueeze(0) if by_sequence else loss for loss in token_losses]
    if not per_prompt:
        torch.cat(units).mean().backward()
        return theta_K.grad
    scored = rollouts.scored_R
    prompts = sorted(set(rollouts.group_id_R[scored].tolist()))
    means = [torch.cat([units[r] for r in np.flatnonzero(scored & (rollouts.group_id_R == p))]).mean() for p in prompts]
    # Upstream's denominator also counts unscored rollouts: a common factor that both weightings have.
    scored_share = sum(len(u) for u, s in zip(units, scored, strict=True) if s) / sum(len(u) for u in units)
    (torch.stack(means).mean() * scored_share).backward()
    return theta_K.grad


STEP = {"rollout.batch_size": 6, "rollout.n_samples_per_prompt": 4, "train.batch_size": 24}
SPLITS = {
    "all at once": {"train.micro_batch_size": 24, "rollout.micro_batch_size": 24},
    # Without padding: upstream cannot report a micro-batch that has no action token on any rank.
    "one by one": {
        "rollout.batch_size": 5,
        "train.batch_size": 20,
        "train.micro_batch_size": 1,
        "rollout.micro_batch_size": 1,
    },
    "two ranks": {"train.micro_batch_size": 3, "rollout.micro_batch_size": 4, "actor.num_gpus_per_node": 2},
    "four ranks": {"train.micro_batch_size": 2, "rollout.micro_batch_size": 3, "actor.num_gpus_per_node": 4},
    "dynamic": {"train.dynamic_batch_enable": True, "train.max_tokens_per_gpu": 17},
    "dynamic, two ranks": {
        "train.dynamic_batch_enable": True,
        "train.max_tokens_per_gpu": 17,
        "actor.num_gpus_per_node": 2,
    },
}
LOSSES = {
    "token mean": {},
    "sequence mean": {"actor.loss_agg_mode": "seq-mean-token-mean"},
    "gspo": {"actor.policy_loss_type": "gspo"},
    "dual clip": {"actor.dual_clip": 1.2},
    "whitened": {"algo.advantage.estimator": "reinforce_baseline"},
}


@pytest.mark.parametrize("split", SPLITS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("unscored", [False, True], ids=["scored", "with unscored"])
def test_gradient_is_the_mean_over_prompts(train, split, loss, unscored):
    rollouts = ragged_rollouts(unscored=unscored)
    changes = {**STEP, **SPLITS[split], **LOSSES[loss], "actor.eps_clip_low_high": (CLIP_LOW, CLIP_HIGH)}
    plain_args, args = base_args(changes), base_args({**changes, "coba.group_weight": "prompt"})
    gradient_K, status, num_updates = train(rollouts, args)
    plain_K, plain_status, _ = train(rollouts, plain_args)
    # DeepSpeed ignores all calls but the last of an accumulation; dynamic batches make just that one.
    accumulated = args.train.batch_size // args.train.micro_batch_size // args.actor.num_gpus_per_node
    assert num_updates == (1 if args.train.dynamic_batch_enable else accumulated)
    tolerance = {"rtol": 2e-5, "atol": 1e-7}
    torch.testing.assert_close(gradient_K, defined_gradient(rollouts, args, per_prompt=True), **tolerance)
    torch.testing.assert_close(plain_K, defined_gradient(rollouts, args, per_prompt=False), **tolerance)
    assert (gradient_K - plain_K).norm() > 0.05 * plain_K.norm()
    # What the step reports, after upstream's means over micro-batches and ranks.
    by_sequence = loss in ("sequence mean", "gspo")
    expected = weights(
        rollouts.response_length_R.tolist(),
        rollouts.group_id_R.tolist(),
        rollouts.scored_R.tolist(),
        "sequence" if by_sequence else "token",
    )
    padded_size = len(pad_rollouts(rollouts, step_multiple(args)))
    for one in (status, plain_status):
        _take_padding_out(one, rollouts, padded_size - len(rollouts), kl_is_loss=False)
    assert status[METRIC] == pytest.approx(float(expected.max()), rel=1e-6)
    assert plain_status[METRIC] == pytest.approx(1.0)
    assert status["ppo_clip_ratio"] == pytest.approx(plain_status["ppo_clip_ratio"], abs=1e-6)
    assert status["ppo_clip_ratio"] > 0.01


def test_several_optimiser_batches_share_the_weights_of_the_step(train):
    """Batches of equally many sequences: their gradients add up to that of the definition."""
    rollouts = ragged_rollouts(unscored=False)
    args = base_args(
        {
            "rollout.batch_size": 5,
            "rollout.n_samples_per_prompt": 4,
            "train.batch_size": 10,
            "train.micro_batch_size": 5,
            "rollout.micro_batch_size": 10,
            "actor.loss_agg_mode": "seq-mean-token-mean",
            "actor.eps_clip_low_high": (CLIP_LOW, CLIP_HIGH),
            "coba.group_weight": "prompt",
        }
    )
    gradient_K, _, _ = train(rollouts, args)
    torch.testing.assert_close(gradient_K / 2, defined_gradient(rollouts, args, per_prompt=True), rtol=2e-5, atol=1e-7)
