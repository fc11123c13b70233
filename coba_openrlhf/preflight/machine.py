"""Everything a run finds on this machine: model, data, user code, device."""

import shutil

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.rewards.verifiers import VERIFIERS

from .data_sets import check_data_sets
from .model_folder import check_model_folder
from .user_code import check_user_code


def check_machine(config: RunConfig, device: str) -> None:
    """Check models, data files, reward files and the device.

    Raises:
        ConfigError: With what is missing and where it was looked for.
    """
    check_model_folder(config.actor.model_name_or_path or "")
    check_user_code(config)
    _check_verifiers(config)
    if device == "cpu":
        _check_cpu(config)
    elif config.ds.adam_offload and not (shutil.which("g++") and shutil.which("ninja")):
        raise ConfigError("ds.adam_offload compiles DeepSpeed's CPU Adam and needs g++ and ninja on the PATH")
    check_data_sets(config)


def _check_verifiers(config: RunConfig) -> None:
    if config.reward.remote_url or config.train.agent_func_path:
        return
    for key, name in (("coba.verifier", config.coba.verifier), *_chosen(config)):
        try:
            VERIFIERS[name].require_installed()
        except ImportError as error:
            raise ConfigError(f"{key}: {error}") from error


def _chosen(config: RunConfig) -> list[tuple[str, str]]:
    return [(f"coba.verifier_of: {source}", name) for source, name in config.coba.verifier_of.items()]


def _check_cpu(config: RunConfig) -> None:
    attention = config.ds.attn_implementation
    if attention not in ("sdpa", "eager"):
        raise ConfigError(
            f"ds.attn_implementation must be sdpa or eager where there is no CUDA, got {attention}; if the GPUs are "
            "on other nodes of the cluster, set the environment variable COBA_DEVICE=cuda"
        )
    if config.train.colocate_all:
        raise ConfigError("train.colocate_all shares GPUs and must stay off where there is no CUDA")
    if config.vllm.tensor_parallel_size > 1:
        raise ConfigError(
            f"vllm.tensor_parallel_size must be 1 where there is no CUDA, got {config.vllm.tensor_parallel_size}"
        )
    if config.train.enable_ema:
        raise ConfigError("train.enable_ema must stay off where there is no CUDA: upstream averages on the GPU")
    if config.ds.param_dtype != "bf16":
        raise ConfigError(f"ds.param_dtype must be bf16 where there is no CUDA, got {config.ds.param_dtype}")
