"""Every rule of the configuration: refused with key, rule and value."""

import dataclasses
import math

import pytest

from coba_openrlhf.allocation import AllocationConfig
from coba_openrlhf.config import ConfigError, RunConfig, check, flatten
from coba_openrlhf.config.coba_options import RevisitOptions
from coba_openrlhf.config.rules import (
    _AT_LEAST_ONE,
    _NOT_NEGATIVE,
    _POSITIVE,
    data_parallel_size,
    name_options,
    require_room_for_revisits,
    rollouts_per_step,
)
from coba_openrlhf.trainer.evaluator import Evaluator
from tests.rollouts import base_config, rollout_batch


def message_of(changes):
    with pytest.raises(ConfigError) as error:
        check(base_config(changes))
    return str(error.value)


VALID = [
    {},
    {"data.label_key": None, "reward.remote_url": "reward.py"},
    {"data.label_key": None, "train.agent_func_path": "agent.py"},
    {"algo.kl.init_coef": 0.01, "algo.kl.use_loss": True, "ref.num_gpus_per_node": 1},
    {"actor.eps_clip_low_high": None},
    {"ckpt.load_enable": True, "coba.run_dir": "runs/x"},
    {"coba.strategy": "uniform", "coba.budget.min": 1},
    {"coba.strategy": "vip", "coba.vip_estimator": "dr_grpo", "coba.budget.min": 3},
    {"coba.pass_rate.source": "probe", "coba.pass_rate.probe_rollouts": 8},
    {"rollout.batch_size": 4, "coba.budget.min": 8, "coba.budget.max": 8, "train.batch_size": 32},
    {"train.seed": 2**32 - 1},
    {"ckpt.best_metric_key": "none"},
    {"ckpt.best_metric_key": "eval_default_pass4", "eval.dataset": "x"},
    {"eval.steps": 5, "ckpt.save_steps": 1},
    {"coba.revisit.share": 0.5, "coba.revisit.cooldown": 0, "coba.revisit.sharpness": 0.0},
]


@pytest.mark.parametrize("changes", VALID, ids=str)
def test_valid_configurations_pass(changes):
    check(base_config(changes))


# What is changed, and what the message must contain.
REFUSED = [
    ({"actor.eps_clip": 0.1}, ["actor.eps_clip has no effect", "0.1"]),
    ({"algo.kl.target": 0.1}, ["algo.kl.target must stay off"]),
    ({"use_ms": True}, ["use_ms must stay off"]),
    (
        {"algo.kl.init_coef": 0.1, "actor.num_gpus_per_node": 4, "ref.num_gpus_per_node": 8, "train.batch_size": 64},
        ["multiple of the reference's", "4 and", "8"],
    ),
    (
        {"algo.advantage.is_correction_level": "seq", "algo.advantage.is_correction_mode": "clip"},
        ["algo.advantage.is_correction_mode: clip needs", "seq"],
    ),
    (
        {"algo.advantage.is_correction_level": "token", "algo.advantage.is_correction_gating": "tv"},
        ["must be one upper bound", "tv", "[0.5, 5.0]"],
    ),
    ({"actor.model_name_or_path": None}, ["actor.model_name_or_path must be set", "None"]),
    ({"data.prompt_dataset": ""}, ["data.prompt_dataset must be set", "''"]),
    ({"data.label_key": None}, ["data.label_key must name the column", "coba.verifier: math", "null"]),
    ({"actor.adam.lr": math.nan}, ["actor.adam.lr must be finite", "nan"]),
    ({"rollout.temperature": math.inf}, ["rollout.temperature must be finite", "inf"]),
    ({"rollout.top_p": 0.0}, ["rollout.top_p must be in (0, 1]", "0.0"]),
    ({"rollout.top_p": 1.5}, ["rollout.top_p must be in (0, 1]", "1.5"]),
    ({"vllm.gpu_memory_utilization": 1.5}, ["vllm.gpu_memory_utilization must be in (0, 1]", "1.5"]),
    ({"actor.lr_warmup_ratio": 1.0}, ["actor.lr_warmup_ratio must be in [0, 1)", "1.0"]),
    ({"actor.adam.betas": (0.9, 1.0)}, ["actor.adam.betas must be in [0, 1)", "(0.9, 1.0)"]),
    ({"actor.eps_clip_low_high": (0.0, 0.2)}, ["actor.eps_clip_low_high must be > 0", "(0.0, 0.2)"]),
    ({"actor.dual_clip": 1.0}, ["actor.dual_clip must be > 1", "1.0"]),
    ({"reward.clip_range": (1.0, 1.0)}, ["reward.clip_range must be LOW < HIGH", "1.0 1.0"]),
    ({"eval.steps": 0}, ["eval.steps must be >= 1, or -1", "0"]),
    ({"ckpt.save_steps": -2}, ["ckpt.save_steps must be >= 1, or -1", "-2"]),
    (
        {"algo.advantage.is_correction_threshold": [1.0, 2.0, 3.0]},
        ["algo.advantage.is_correction_threshold takes HIGH or LOW HIGH", "[1.0, 2.0, 3.0]"],
    ),
    ({"rollout.max_new_tokens": 2048}, ["rollout.max_new_tokens must be >= 1 and < data.max_len", "2048 and 2048"]),
    ({"rollout.max_new_tokens": 0}, ["rollout.max_new_tokens must be >= 1", "got 0"]),
    ({"algo.advantage.estimator": "gae"}, ["algo.advantage.estimator must be one of group_norm", "got gae"]),
    ({"algo.advantage.gamma": 0.9}, ["algo.advantage.gamma must be 1", "0.9"]),
    ({"critic.model_name_or_path": "x"}, ["critic.model_name_or_path must stay at None", "GRPO has no critic", "'x'"]),
    ({"critic.adam.lr": 1.0}, ["critic.adam.lr must stay at 9e-06", "1.0"]),
    ({"reward.model_name_or_path": "x"}, ["reward.model_name_or_path must stay at None", "verifiable scores", "'x'"]),
    ({"train.async_enable": True}, ["train.async_enable must stay off"]),
    ({"train.partial_rollout_enable": True}, ["train.partial_rollout_enable must stay off"]),
    ({"train.colocate_critic_reward": True}, ["train.colocate_critic_reward must stay off"]),
    ({"algo.dynamic_filtering_enable": True}, ["algo.dynamic_filtering_enable must stay off"]),
    ({"data.max_images_per_prompt": 1}, ["data.max_images_per_prompt must stay off", "only text"]),
    (
        {"rollout.vllm_generate_batch_size": 3},
        ["rollout.vllm_generate_batch_size must be null or rollout.batch_size = 1024", "got 3"],
    ),
    (
        {"coba.strategy": "adaptive"},
        ["coba.strategy must be one of", "knapsack", "path/to/rule.py:ClassName", "adaptive"],
    ),
    ({"coba.strategy": "vip", "coba.vip_estimator": "dr_grpo"}, ["coba.budget.min must be >= 3", "dr_grpo", "got 2"]),
    ({"coba.tau_min": 9.0, "coba.tau_max": 8.0}, ["coba.tau_min must be <= coba.tau_max", "9.0 > 8.0"]),
    ({"coba.perturbation": 1.0}, ["coba.perturbation must be", "1.0"]),
    ({"coba.pass_rate.decay": 0.0}, ["coba.pass_rate.decay must be", "0.0"]),
    ({"coba.revisit.share": 1.0}, ["coba.revisit.share must be", "1.0"]),
    ({"coba.revisit.share": math.nan}, ["coba.revisit.share must be", "nan"]),
    ({"coba.revisit.share": 0.0004}, ["coba.revisit.share must be 0 or at least one", "0.0004 of 1024"]),
    ({"coba.revisit.cooldown": -1}, ["coba.revisit.cooldown must be", "-1"]),
    ({"coba.revisit.sharpness": 101.0}, ["coba.revisit.sharpness must be", "101.0"]),
    ({"coba.pass_rate.optimism": -1.0}, ["coba.pass_rate.optimism must be", "-1.0"]),
    (
        {"coba.pass_rate.source": "probe", "coba.pass_rate.probe_rollouts": 9},
        ["coba.pass_rate.probe_rollouts * rollout.batch_size must be <=", "9 * 1024 = 9216 > 1024 * 8 = 8192"],
    ),
    (
        {"coba.pass_rate.source": "probe", "coba.pass_rate.probe_rollouts": 200},
        ["coba.pass_rate.probe_rollouts must be <= coba.budget.max", "200 > 128"],
    ),
    ({"coba.tau": -1.0}, ["coba.tau must be", "-1.0"]),
    ({"coba.eps": 0.6}, ["coba.eps must be", "0.6"]),
    ({"coba.budget.min": 0}, ["coba.budget.min must be", "0"]),
    ({"coba.budget.min": 9, "coba.budget.max": 8}, ["coba.budget.min must be <= coba.budget.max", "9 > 8"]),
    ({"coba.alpha_max": 99.0}, ["coba.alpha_max must be in [coba.alpha_min, coba.kappa)", "99.0"]),
    ({"coba.pass_rate.success_threshold": 0.0}, ["coba.pass_rate.success_threshold must be", "0.0"]),
    ({"coba.pass_rate.window": 0}, ["coba.pass_rate.window must be", "0"]),
    ({"coba.pass_rate.window": 2**70}, ["coba.pass_rate.window must be", "10,000]", str(2**70)]),
    ({"coba.capability_window": 2**70}, ["coba.capability_window must be", "10,000]", str(2**70)]),
    ({"actor.lr_scheduler": "cosin"}, ["actor.lr_scheduler must be one of linear, ", "got 'cosin'"]),
    ({"actor.lr_scheduler": "reduce_lr_on_plateau"}, ["actor.lr_scheduler must be one of"]),
    ({"train.seed": -1}, ["train.seed must be in [0, 2**32 - vllm.num_engines]", "got -1"]),
    ({"train.seed": 2**32}, ["train.seed must be in", f"got {2**32}"]),
    ({"train.seed": 2**32 - 1, "vllm.num_engines": 2}, ["[0, 4294967294]", f"got {2**32 - 1}"]),
    ({"coba.run_dir": "a\0b"}, ["coba.run_dir must not contain a null character"]),
    ({"ckpt.best_metric_key": "eval_default_pass1"}, ["ckpt.best_metric_key needs eval.dataset", "default_pass1"]),
    (
        {"ckpt.best_metric_key": "reward", "eval.dataset": "x"},
        ["ckpt.best_metric_key must be none, eval_<datasource>_pass1, eval_<datasource>_pass4", "got 'reward'"],
    ),
    ({"ckpt.best_metric_key": "eval_default_pass3", "eval.dataset": "x"}, ["ckpt.best_metric_key must be", "_pass3"]),
    ({"rollout.n_samples_per_prompt": 1}, ["rollout.n_samples_per_prompt must be >= 2", "got 1"]),
    (
        {"coba.budget.min": 9},
        ["coba.budget.min * rollout.batch_size must be <=", "9 * 1024 = 9216 > 1024 * 8 = 8192"],
    ),
    (
        {"coba.budget.max": 7},
        ["coba.budget.max * rollout.batch_size must be >=", "7 * 1024 = 7168 < 1024 * 8 = 8192"],
    ),
    ({"ds.ring_attn_size": 2}, ["must be a multiple of ds.ring_attn_size * ds.tensor_parallel_size", "1 and 2"]),
    ({"train.batch_size": 100}, ["must be a multiple of train.batch_size", "1024 * 8 = 8192 and 100"]),
    (
        {"train.micro_batch_size": 3},
        ["train.batch_size must be a multiple of train.micro_batch_size * ranks", "128 and 3 * 1"],
    ),
    (
        {"rollout.micro_batch_size": 3},
        ["must be a multiple of rollout.micro_batch_size * ranks", "128 and 3 * 1 = 3"],
    ),
    ({"ds.zero_stage": 4}, ["ds.zero_stage must be 0, 1, 2 or 3", "got 4"]),
    ({"algo.kl.use_loss": True}, ["algo.kl.use_loss needs algo.kl.init_coef > 0", "got 0"]),
    (
        {
            "algo.kl.init_coef": 0.1,
            "train.colocate_actor_ref": True,
            "actor.num_gpus_per_node": 8,
            "ref.num_gpus_per_node": 1,
        },
        ["colocated policy and reference need equal", "actor (1, 8) and ref (1, 1)"],
    ),
    ({"train.colocate_all": True, "vllm.num_engines": 2}, ["train.colocate_all needs", "1 * 1 and 2"]),
    ({"vllm.enable_sleep": True}, ["vllm.enable_sleep needs train.colocate_all"]),
    ({"ds.enable_sleep": True}, ["ds.enable_sleep needs train.colocate_all"]),
    ({"train.dynamic_batch_enable": True}, ["train.dynamic_batch_enable needs ds.packing_samples"]),
    ({"ds.ring_attn_size": 2, "actor.num_gpus_per_node": 2}, ["ds.ring_attn_size > 1 needs ds.packing_samples"]),
    ({"ckpt.max_num": 1}, ["ckpt.max_num must be >= 2", "got 1"]),
    ({"ckpt.load_enable": True, "ckpt.disable_ds": True}, ["ckpt.load_enable needs DeepSpeed checkpoints"]),
    ({"ckpt.load_enable": True}, ["ckpt.load_enable needs to know where", "coba.run_dir"]),
]


@pytest.mark.parametrize(("changes", "parts"), REFUSED, ids=[str(changes) for changes, _ in REFUSED])
def test_refused_with_key_rule_and_value(changes, parts):
    message = message_of(changes)
    for part in parts:
        assert part in message


def test_every_field_of_the_library_has_an_option():
    options = {name_options(field.name) for field in dataclasses.fields(AllocationConfig)}
    assert options <= set(flatten(RunConfig()))


def test_every_metric_of_an_evaluation_can_be_the_best():
    rollouts = rollout_batch([2, 2], [1.0, 0.0, 1.0, 1.0])
    evaluator = Evaluator.__new__(Evaluator)
    evaluator._batch, evaluator._num_samples = rollouts.batch, 2
    for metric in evaluator._metrics(rollouts):
        check(base_config({"ckpt.best_metric_key": metric, "eval.dataset": "x", "eval.n_samples_per_prompt": 2}))


@pytest.mark.parametrize("key", _AT_LEAST_ONE)
def test_counts_are_at_least_one(key):
    assert message_of({key: 0}) == f"{key} must be >= 1, got 0"


@pytest.mark.parametrize("key", _NOT_NEGATIVE)
def test_not_negative(key):
    assert message_of({key: -0.5}) == f"{key} must be >= 0, got -0.5"


@pytest.mark.parametrize("key", _POSITIVE)
def test_positive(key):
    assert message_of({key: 0.0}) == f"{key} must be > 0, got 0.0"


def test_ranks_and_rollouts():
    config = base_config({"actor.num_nodes": 2, "actor.num_gpus_per_node": 8, "ds.ring_attn_size": 4})
    assert data_parallel_size(config) == 4
    assert rollouts_per_step(config) == 1024 * 8


def test_revisits_need_a_data_set_that_is_larger_than_the_cooldown():
    require_room_for_revisits(12, 4, RevisitOptions(share=0.5, cooldown=2))
    require_room_for_revisits(1, 4, RevisitOptions(share=0, cooldown=2))
    with pytest.raises(ConfigError, match=r"training prompts, got 11 and \(2 \+ 1\) \* 4 = 12"):
        require_room_for_revisits(11, 4, RevisitOptions(share=0.5, cooldown=2))
