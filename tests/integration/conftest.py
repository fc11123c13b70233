"""One Ray, one model and one finished run, shared by all integration tests."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

from .local_ray import LocalRay

NUM_PROMPTS = 10
FINISHED_RUN = [
    *("--algo.kl.init_coef", "0.01"),
    *("--ckpt.save_steps", "2", "--ckpt.max_num", "4"),
    *("--coba.revisit.share", "0.5", "--coba.revisit.cooldown", "1"),
]
REWARDS = Path(__file__).parent


@dataclass(frozen=True)
class FinishedRun:
    """A run whose actors still live."""

    config: object
    run_dir: Path
    pipeline: object
    reports: list


@pytest.fixture(scope="session")
def local_ray():
    ray_cluster = LocalRay(num_gpus=10)
    yield ray_cluster
    ray_cluster.stop()


@pytest.fixture(scope="session")
def tiny(tmp_path_factory) -> Path:
    """An untrained two-layer Qwen2 with its tokenizer, and ten prompts."""
    from coba_openrlhf.data.graded_arithmetic import split_questions
    from coba_openrlhf.prepare.quickstart import build_model, build_tokenizer, write_jsonl

    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    tokenizer = build_tokenizer()
    build_model(tokenizer).to(torch.bfloat16).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    split = split_questions(NUM_PROMPTS, 6, np.random.default_rng(0))
    write_jsonl(folder / "train.jsonl", split.train_rows)
    write_jsonl(folder / "eval.jsonl", split.eval_rows)
    return folder


@pytest.fixture(scope="session")
def options(tiny) -> list[str]:
    """Options of a small run: 2 ranks, 2 engines, batches of 4, 4 and 2 prompts, 4 rollouts each, two episodes."""
    values = {
        "actor.model_name_or_path": tiny / "model",
        "actor.num_gpus_per_node": 2,
        "actor.adam.lr": 1e-3,
        "actor.lr_scheduler": "constant",
        "ref.num_gpus_per_node": 1,
        "data.prompt_dataset": tiny / "train.jsonl",
        "data.label_key": "label",
        "data.max_len": 24,
        "rollout.batch_size": 4,
        "rollout.n_samples_per_prompt": 4,
        "rollout.micro_batch_size": 4,
        "rollout.max_new_tokens": 8,
        "train.batch_size": 16,
        "train.micro_batch_size": 2,
        "train.num_episodes": 2,
        "vllm.num_engines": 2,
        "vllm.enforce_eager": "true",
        "ds.attn_implementation": "sdpa",
        "reward.remote_url": REWARDS / "reward_parity.py",
        "coba.budget.min": 1,
        "coba.budget.max": 12,
    }
    return [part for key, value in values.items() for part in (f"--{key}", str(value))]


@pytest.fixture(scope="session")
def finished_run(local_ray, options, tiny, tmp_path_factory) -> FinishedRun:
    """A run with KL (so with a reference model), checkpoints and held-out evaluation; its actors stay up."""
    import os

    import ray

    from coba_openrlhf import launch
    from coba_openrlhf.config import check, load_config

    run_dir = tmp_path_factory.mktemp("run")
    extra = [*FINISHED_RUN, "--eval.dataset", str(tiny / "eval.jsonl"), "--eval.n_samples_per_prompt", "2"]
    extra += ["--ckpt.best_metric_key", "none", "--coba.run_dir", str(run_dir)]
    config, _ = load_config(options + extra)
    check(config)
    os.environ["RAY_ADDRESS"] = local_ray.address
    launch.start_ray(config, "cpu", log_to_driver=False)
    pipeline = launch.build_pipeline(config, run_dir, "cpu")
    reports = list(pipeline.fit())
    pipeline.save_model()
    yield FinishedRun(config, run_dir, pipeline, reports)
    pipeline.close()
    ray.shutdown()
    del os.environ["RAY_ADDRESS"]


def read_metrics(run_dir: Path) -> list[dict]:
    """Lines of ``metrics.jsonl``."""
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
