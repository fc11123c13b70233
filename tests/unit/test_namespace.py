"""What OpenRLHF's own command line derives after parsing."""

from types import SimpleNamespace

import pytest

from coba_openrlhf.config.namespace import reward_urls, to_openrlhf_args
from tests.rollouts import base_config


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def args_of(here, changes=None):
    return to_openrlhf_args(base_config(changes), here / "runs" / "mine")


def test_derived_values(here):
    args = args_of(here)
    assert args.eval.steps == float("inf")
    assert args.ckpt.save_steps == float("inf")
    assert args.actor.eps_clip_low_high == (0.2, 0.28)
    assert args.rollout.vllm_generate_batch_size == args.rollout.batch_size == 1024
    assert args.rollout.max_tokens_per_gpu == args.train.max_tokens_per_gpu == 16192
    assert args.reward.remote_url == []
    assert args.logger.wandb.run_name == "mine"
    assert isinstance(args.actor.adam, SimpleNamespace)


def test_given_values_stay(here):
    args = args_of(
        here,
        {
            "eval.steps": 3,
            "ckpt.save_steps": 4,
            "rollout.max_tokens_per_gpu": 99,
            "logger.wandb.run_name": "other",
            "algo.advantage.is_correction_threshold": [0.25, 2.0],
        },
    )
    assert (args.eval.steps, args.ckpt.save_steps, args.rollout.max_tokens_per_gpu) == (3, 4, 99)
    assert args.logger.wandb.run_name == "other"
    assert args.algo.advantage.is_correction_threshold == [0.25, 2.0]


def test_one_threshold_is_an_upper_bound(here):
    args = args_of(here, {"algo.advantage.is_correction_threshold": [3.0]})
    assert args.algo.advantage.is_correction_threshold == [0.0, 3.0]


def test_symmetric_clip_when_no_pair_is_given(here):
    args = args_of(here, {"actor.eps_clip_low_high": None, "actor.eps_clip": 0.3})
    assert args.actor.eps_clip_low_high == (0.3, 0.3)


def test_folders_default_to_the_run_folder(here):
    args = args_of(here, {"ckpt.output_dir": "elsewhere"})
    assert args.ckpt.path == str(here / "runs/mine/checkpoints")
    assert args.logger.tensorboard_dir == str(here / "runs/mine/tensorboard")
    assert args.ckpt.output_dir == str(here / "elsewhere")


def test_local_names_become_absolute_and_others_stay(here):
    (here / "train.jsonl").touch()
    (here / "model").mkdir()
    (here / "reward.py").touch()
    args = args_of(
        here,
        {
            "actor.model_name_or_path": "model",
            "data.prompt_dataset": "train.jsonl, org/data",
            "eval.dataset": "train.jsonl",
            "reward.remote_url": "reward.py",
        },
    )
    assert args.actor.model_name_or_path == str(here / "model")
    assert args.data.prompt_dataset == f"{here / 'train.jsonl'},org/data"
    assert args.eval.dataset == str(here / "train.jsonl")
    assert args.reward.remote_url == [str(here / "reward.py")]
    assert args_of(here).actor.model_name_or_path == "org/model"
    assert args_of(here).eval.dataset is None


def test_reward_servers_are_split_at_commas(here):
    config = base_config({"reward.remote_url": "http://a:1/r , http://b:2/r"})
    assert reward_urls(config) == ["http://a:1/r", "http://b:2/r"]


def test_configuration_is_not_changed(here):
    config, before = base_config({"eval.steps": -1}), base_config({"eval.steps": -1})
    args = to_openrlhf_args(config, here)
    args.actor.adam.lr = 1.0
    args.algo.advantage.is_correction_threshold.append(9.0)
    assert config == before
