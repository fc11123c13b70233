"""The configuration as OpenRLHF's code reads it: nested namespaces called ``args``."""

import copy
import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace

from .run_config import RunConfig


def to_openrlhf_args(config: RunConfig, run_dir: Path) -> SimpleNamespace:
    """Fill in what OpenRLHF's own command line derives after parsing.

    Args:
        config: A checked configuration; it is not changed.
        run_dir: Folder of the run, for paths left at null.

    Returns:
        A new namespace, ``args.actor.adam.lr`` and so on, with absolute paths: actors have other working
        directories than the driver.
    """
    args = _namespace(config)
    args.eval.steps = float("inf") if config.eval.steps == -1 else config.eval.steps
    args.ckpt.save_steps = float("inf") if config.ckpt.save_steps == -1 else config.ckpt.save_steps
    args.ckpt.path = _absolute(config.ckpt.path, run_dir / "checkpoints")
    args.ckpt.output_dir = _absolute(config.ckpt.output_dir, run_dir / "model")
    args.logger.tensorboard_dir = _absolute(config.logger.tensorboard_dir, run_dir / "tensorboard")
    args.logger.wandb.run_name = config.logger.wandb.run_name or run_dir.name
    if config.actor.eps_clip_low_high is None:
        args.actor.eps_clip_low_high = (config.actor.eps_clip, config.actor.eps_clip)
    if len(config.algo.advantage.is_correction_threshold) == 1:
        args.algo.advantage.is_correction_threshold = [0.0, *config.algo.advantage.is_correction_threshold]
    args.rollout.vllm_generate_batch_size = config.rollout.batch_size
    if config.rollout.max_tokens_per_gpu is None:
        args.rollout.max_tokens_per_gpu = config.train.max_tokens_per_gpu
    args.actor.model_name_or_path = _local(config.actor.model_name_or_path)
    args.data.prompt_dataset = _local_list(config.data.prompt_dataset)
    args.eval.dataset = _local_list(config.eval.dataset)
    args.reward.remote_url = reward_urls(config)
    args.train.agent_func_path = _local(config.train.agent_func_path)
    return args


def reward_urls(config: RunConfig) -> list[str]:
    """``reward.remote_url`` as a list, a file's path made absolute; empty for the built-in verifier."""
    return [_local(url.strip()) or "" for url in (config.reward.remote_url or "").split(",") if url.strip()]


def _namespace(node: object) -> SimpleNamespace:
    fields = {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}  # type: ignore[arg-type]
    return SimpleNamespace(
        **{k: _namespace(v) if dataclasses.is_dataclass(v) else copy.copy(v) for k, v in fields.items()}
    )


def _absolute(path: str | None, default: Path) -> str:
    return os.path.realpath(path) if path else str(default)


def _local(name: str | None) -> str | None:
    """An existing local path made absolute; anything else (a hub id, a URL) unchanged."""
    # os.path.exists says no to a name that no file can have, where Path.exists raises.
    return os.path.realpath(name) if name and os.path.exists(name) else name


def _local_list(names: str | None) -> str | None:
    return ",".join(_local(name.strip()) or "" for name in names.split(",")) if names else names
