"""Checks that need the machine or the files, made before any model is loaded."""

import shutil
from pathlib import Path

from coba_openrlhf.config import ConfigError, RunConfig
from coba_openrlhf.config.namespace import reward_urls
from coba_openrlhf.rewards.verifiers import check_label

LOCAL_FORMATS = {".json": "json", ".jsonl": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow"}


def check_machine(config: RunConfig, device: str) -> None:
    """Check models, data files, reward files and the device.

    Raises:
        ConfigError: With what is missing and where it was looked for.
    """
    _check_model(config)
    for key, names in (("data.prompt_dataset", config.data.prompt_dataset), ("eval.dataset", config.eval.dataset)):
        for name in (names or "").split(","):
            if name.strip():
                _check_dataset(key, name.strip(), config)
    for key, files in (
        ("reward.remote_url", reward_urls(config)),
        ("train.agent_func_path", [config.train.agent_func_path or ""]),
    ):
        for file in files:
            if file.endswith(".py") and not Path(file).is_file():
                raise ConfigError(f"{key}: no such file: {file} (current folder: {Path.cwd()})")
    if device == "cpu":
        _check_cpu(config)
    elif config.ds.adam_offload and not (shutil.which("g++") and shutil.which("ninja")):
        raise ConfigError("ds.adam_offload compiles DeepSpeed's CPU Adam and needs g++ and ninja on the PATH")


def _check_model(config: RunConfig) -> None:
    name = config.actor.model_name_or_path
    assert name
    looks_local = name.startswith((".", "/", "~")) or name.count("/") > 1
    if looks_local and not (Path(name) / "config.json").is_file():
        raise ConfigError(f"actor.model_name_or_path: no config.json in {name} (current folder: {Path.cwd()})")


def _check_dataset(key: str, name: str, config: RunConfig) -> None:
    """A local file must exist, have the columns, and hold labels that can be verified."""
    suffix = Path(name).suffix
    if suffix not in LOCAL_FORMATS:
        return
    if not Path(name).is_file():
        raise ConfigError(f"{key}: no such file: {name} (current folder: {Path.cwd()})")
    import datasets

    datasets.disable_progress_bars()
    try:
        rows = datasets.load_dataset(LOCAL_FORMATS[suffix], data_files=name, split="train")
    except (StopIteration, ValueError, datasets.exceptions.DatasetsError) as error:
        # An empty file is a StopIteration or a ValueError, a broken one has its reason in the cause.
        raise ConfigError(f"{key}: {name} has no readable rows: {error.__cause__ or repr(error)}") from error
    for option, column in (("data.input_key", config.data.input_key), ("data.label_key", config.data.label_key)):
        if column is not None and column not in rows.column_names:
            raise ConfigError(f"{option}: {name} has no column {column!r}; it has {', '.join(rows.column_names)}")
    if len(rows) == 0:
        raise ConfigError(f"{key}: {name} has no rows")
    if config.reward.remote_url or config.train.agent_func_path:
        return
    for i, label in enumerate(rows[config.data.label_key]):
        try:
            check_label(config.coba.verifier, "" if label is None else str(label))
        except ValueError as error:
            raise ConfigError(f"{key}: {name}, row {i}, column {config.data.label_key!r}: {error}") from error


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


def check_run_dir(run_dir: Path, *, resume: bool, checkpoint: str | None) -> None:
    """Nothing that an earlier run wrote is overwritten.

    Args:
        run_dir: Folder of the run.
        resume: Whether ``ckpt.load_enable`` is on.
        checkpoint: The checkpoint that was found, None if there is none.

    Raises:
        ConfigError: The folder holds a run that is not continued; the message says what to do.
    """
    metrics = run_dir / "metrics.jsonl"
    if not metrics.exists() or not metrics.stat().st_size or checkpoint is not None:
        return
    if resume:
        raise ConfigError(
            f"ckpt.load_enable: {run_dir} holds a run but no complete checkpoint was found (ckpt.path; was "
            "ckpt.save_steps set?); starting over would erase its logs, so choose another coba.run_dir"
        )
    raise ConfigError(
        f"coba.run_dir: {run_dir} already holds a run; resume it with --ckpt.load_enable or choose another folder"
    )


def describe(config: RunConfig, run_dir: Path, device: str) -> str:
    """What ``--dry_run`` prints besides the configuration: placement and cost of a step."""
    n, prompts = config.rollout.n_samples_per_prompt, config.rollout.batch_size
    ranks = config.actor.num_nodes * config.actor.num_gpus_per_node
    engines, per_engine = config.vllm.num_engines, config.vllm.tensor_parallel_size
    reference = f"{config.ref.num_nodes * config.ref.num_gpus_per_node} rank(s)"
    if config.algo.kl.init_coef == 0:
        reference = "none (no KL)"
    longest = config.rollout.max_new_tokens or config.data.max_len
    lines = [
        f"device          {device}",
        f"run folder      {run_dir}",
        f"policy          {ranks} rank(s), ZeRO-{config.ds.zero_stage}",
        f"reference       {reference}",
        f"engines         {engines} x tensor parallel {per_engine}",
        f"GPUs            {gpus_needed(config)}{' (Ray resources only: no CUDA here)' if device == 'cpu' else ''}",
        f"step            {prompts} prompts x {n} = {prompts * n} rollouts, "
        f"{prompts * n // config.train.batch_size} optimiser step(s) of {config.train.batch_size}",
        f"budgets         {config.coba.strategy}, {config.coba.budget.min}..{config.coba.budget.max} per prompt",
        f"tokens per step at most {prompts * n * longest:,} generated",
    ]
    return "\n".join(lines)


def gpus_needed(config: RunConfig) -> int:
    """GPUs that the placement groups will reserve."""
    policy = config.actor.num_nodes * config.actor.num_gpus_per_node
    if config.train.colocate_all:
        return policy
    reference = config.ref.num_nodes * config.ref.num_gpus_per_node if config.algo.kl.init_coef > 0 else 0
    shared = config.train.colocate_actor_ref
    return policy + (0 if shared else reference) + config.vllm.num_engines * config.vllm.tensor_parallel_size


def write_config(run_dir: Path, text: str) -> None:
    """Write the resolved configuration into the run folder."""
    run_dir.mkdir(parents=True, exist_ok=True)
    (run_dir / "config.yaml").write_text(text, encoding="utf-8")
