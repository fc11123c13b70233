"""Combinations of options that cannot work, refused before anything starts."""

import math
import re

from .allocation import option_names, to_allocation_config, to_revisits
from .coba_options import RevisitOptions
from .error import ConfigError, require
from .input_rules import check_inputs
from .run_config import RunConfig, flatten
from .unsupported import check_unsupported


def data_parallel_size(config: RunConfig) -> int:
    """Policy ranks that see different rollouts."""
    ranks = config.actor.num_nodes * config.actor.num_gpus_per_node
    return ranks // config.ds.ring_attn_size // config.ds.tensor_parallel_size


def rollouts_per_step(config: RunConfig) -> int:
    """Rollouts of a full step; budgets always add up to this."""
    return config.rollout.batch_size * config.rollout.n_samples_per_prompt


def check(config: RunConfig) -> None:
    """Check everything that the configuration alone can tell.

    Raises:
        ConfigError: The first violated rule, with key, rule and value.
    """
    _check_required(config)
    check_inputs(config)
    _check_ranges(config)
    check_unsupported(config)
    _check_budgets(config)
    _check_batches(config)
    _check_models(config)
    _check_correction(config)
    _check_checkpoints(config)


def _check_required(config: RunConfig) -> None:
    for key, value in (
        ("actor.model_name_or_path", config.actor.model_name_or_path),
        ("data.prompt_dataset", config.data.prompt_dataset),
    ):
        require(bool(value), f"{key} must be set, got {value!r}")
    own_rewards = config.reward.remote_url or config.train.agent_func_path
    require(
        bool(config.data.label_key or own_rewards),
        f"data.label_key must name the column with the reference answer for coba.verifier: {config.coba.verifier}, "
        "got null (or set reward.remote_url / train.agent_func_path)",
    )


_AT_LEAST_ONE = (
    "actor.num_nodes",
    "actor.num_gpus_per_node",
    "ref.num_nodes",
    "ref.num_gpus_per_node",
    "vllm.num_engines",
    "vllm.tensor_parallel_size",
    "rollout.batch_size",
    "rollout.micro_batch_size",
    "train.batch_size",
    "train.micro_batch_size",
    "train.max_epochs",
    "train.num_episodes",
    "train.max_tokens_per_gpu",
    "coba.verifier_memory_mb",
    "coba.verifier_workers",
    "data.max_len",
    "data.max_samples",
    "eval.n_samples_per_prompt",
    "logger.logging_steps",
    "ds.ring_attn_size",
    "ds.tensor_parallel_size",
)
_NOT_NEGATIVE = (
    "actor.adam.lr",
    "actor.adam.weight_decay",
    "actor.max_norm",
    "algo.kl.init_coef",
    "eval.temperature",
    "actor.min_lr_ratio",
    "coba.verifier_tolerance",
)
_POSITIVE = ("rollout.temperature", "coba.verifier_timeout", "vllm.gpu_memory_utilization", "actor.adam.eps")
# Those of transformers that need nothing but the number of steps; tests/contract compares with the installed ones.
LR_SCHEDULERS = (
    "linear",
    "cosine",
    "cosine_with_restarts",
    "polynomial",
    "constant",
    "constant_with_warmup",
    "inverse_sqrt",
    "cosine_with_min_lr",
    "cosine_warmup_with_min_lr",
)
# numpy takes seeds below this; engine i adds i to it.
_NUM_SEEDS = 2**32


def _check_ranges(config: RunConfig) -> None:
    flat = flatten(config)
    for key, value in flat.items():
        require(
            not isinstance(value, str) or "\0" not in value, f"{key} must not contain a null character, got {value!r}"
        )
        finite = not isinstance(value, float) or math.isfinite(value) or key == "ckpt.max_mem"
        require(finite, f"{key} must be finite, got {value}")
    for key in _AT_LEAST_ONE:
        require(flat[key] >= 1, f"{key} must be >= 1, got {flat[key]}")  # type: ignore[operator]
    for key in _NOT_NEGATIVE:
        require(flat[key] >= 0, f"{key} must be >= 0, got {flat[key]}")  # type: ignore[operator]
    for key in _POSITIVE:
        require(flat[key] > 0, f"{key} must be > 0, got {flat[key]}")  # type: ignore[operator]
    seed, engines = config.train.seed, config.vllm.num_engines
    require(
        0 <= seed <= _NUM_SEEDS - engines,
        f"train.seed must be in [0, 2**32 - vllm.num_engines] = [0, {_NUM_SEEDS - engines}], got {seed}",
    )
    scheduler = config.actor.lr_scheduler
    require(
        scheduler in LR_SCHEDULERS, f"actor.lr_scheduler must be one of {', '.join(LR_SCHEDULERS)}, got {scheduler!r}"
    )
    require(0 < config.rollout.top_p <= 1, f"rollout.top_p must be in (0, 1], got {config.rollout.top_p}")
    top_p = config.coba.eval.top_p
    require(top_p is None or 0 < top_p <= 1, f"coba.eval.top_p must be in (0, 1] or null, got {top_p}")
    memory = config.vllm.gpu_memory_utilization
    require(memory <= 1, f"vllm.gpu_memory_utilization must be in (0, 1], got {memory}")
    require(
        0 <= config.actor.lr_warmup_ratio < 1,
        f"actor.lr_warmup_ratio must be in [0, 1), got {config.actor.lr_warmup_ratio}",
    )
    betas = config.actor.adam.betas
    require(all(0 <= b < 1 for b in betas), f"actor.adam.betas must be in [0, 1), got {betas}")
    clip = config.actor.eps_clip_low_high
    require(
        clip is None or config.actor.eps_clip == 0.2,
        f"actor.eps_clip has no effect while actor.eps_clip_low_high is set, got {config.actor.eps_clip} and {clip}; "
        "set actor.eps_clip_low_high to null or to the pair you want",
    )
    require(clip is None or min(clip) > 0, f"actor.eps_clip_low_high must be > 0, got {clip}")
    dual = config.actor.dual_clip
    require(dual is None or dual > 1, f"actor.dual_clip must be > 1, got {dual}")
    low, high = config.reward.clip_range
    require(low < high, f"reward.clip_range must be LOW < HIGH, got {low} {high}")
    for key, value in (("eval.steps", config.eval.steps), ("ckpt.save_steps", config.ckpt.save_steps)):
        require(value == -1 or value >= 1, f"{key} must be >= 1, or -1 for never, got {value}")
    band = config.algo.advantage.is_correction_threshold
    require(len(band) in (1, 2), f"algo.advantage.is_correction_threshold takes HIGH or LOW HIGH, got {band}")
    new, longest = config.rollout.max_new_tokens, config.data.max_len
    require(
        new is None or 1 <= new < longest,
        f"rollout.max_new_tokens must be >= 1 and < data.max_len, got {new} and {longest}",
    )


def name_options(message: str) -> str:
    """A message of the allocation library with the names that a user types instead of the library's fields."""
    options = option_names()
    return re.sub(r"\w+", lambda word: options.get(word[0], word[0]), message)


def _check_budgets(config: RunConfig) -> None:
    try:
        allocation = to_allocation_config(config.coba, config.train.seed)
    except ValueError as error:
        raise ConfigError(name_options(str(error))) from error
    try:
        to_revisits(config.coba, config.train.seed)
    except ValueError as error:
        raise ConfigError(str(error).replace("revisit ", "coba.revisit.", 1)) from error
    share, size = config.coba.revisit.share, config.rollout.batch_size
    require(
        share == 0 or (size > 1 and round(share * size) >= 1),
        f"coba.revisit.share must be 0 or at least one of rollout.batch_size prompts, which are 2 or more, got {share} "
        f"of {size}",
    )
    n, prompts = config.rollout.n_samples_per_prompt, config.rollout.batch_size
    require(n >= 2, f"rollout.n_samples_per_prompt must be >= 2: a group of one has no advantage, got {n}")
    low, high, total = allocation.smallest_budget, config.coba.budget.max, prompts * n
    min_key = "coba.budget.min" if low == config.coba.budget.min else "coba.pass_rate.probe_rollouts"
    require(
        prompts * low <= total,
        f"{min_key} * rollout.batch_size must be <= rollout.batch_size * rollout.n_samples_per_prompt, "
        f"got {low} * {prompts} = {low * prompts} > {prompts} * {n} = {total}",
    )
    require(
        prompts * high >= total,
        "coba.budget.max * rollout.batch_size must be >= rollout.batch_size * rollout.n_samples_per_prompt, "
        f"got {high} * {prompts} = {high * prompts} < {prompts} * {n} = {total}",
    )


def require_room_for_revisits(num_prompts: int, batch_size: int, options: RevisitOptions) -> None:
    """Revisits would never begin in a data set that the last steps contain.

    Args:
        num_prompts: Training prompts, overlong ones left out.
        batch_size: ``rollout.batch_size``.
        options: ``coba.revisit``; anything with ``share`` and ``cooldown``.

    Raises:
        ConfigError: The data set has fewer prompts than the cooldown and one more step.
    """
    needed = (options.cooldown + 1) * batch_size
    require(
        options.share == 0 or num_prompts >= needed,
        "coba.revisit.share needs at least (coba.revisit.cooldown + 1) * rollout.batch_size training prompts, "
        f"got {num_prompts} and ({options.cooldown} + 1) * {batch_size} = {needed}",
    )


def _check_batches(config: RunConfig) -> None:
    ranks = config.actor.num_nodes * config.actor.num_gpus_per_node
    split = config.ds.ring_attn_size * config.ds.tensor_parallel_size
    require(
        ranks % split == 0,
        "actor.num_nodes * actor.num_gpus_per_node must be a multiple of ds.ring_attn_size * "
        f"ds.tensor_parallel_size, got {ranks} and {split}",
    )
    parallel = data_parallel_size(config)
    total, batch, micro = rollouts_per_step(config), config.train.batch_size, config.train.micro_batch_size
    require(
        total % batch == 0,
        "rollout.batch_size * rollout.n_samples_per_prompt must be a multiple of train.batch_size, got "
        f"{config.rollout.batch_size} * {config.rollout.n_samples_per_prompt} = {total} and {batch}",
    )
    require(
        batch % (micro * parallel) == 0,
        f"train.batch_size must be a multiple of train.micro_batch_size * ranks, got {batch} and {micro} * {parallel}",
    )
    forward = config.rollout.micro_batch_size * parallel
    require(
        batch % forward == 0,
        "train.batch_size must be a multiple of rollout.micro_batch_size * ranks, "
        f"got {batch} and {config.rollout.micro_batch_size} * {parallel} = {forward}",
    )
    if config.algo.kl.init_coef > 0:
        # The reference ranks split the same micro-batches; an uneven split would leave some waiting for ever.
        ref = config.ref.num_nodes * config.ref.num_gpus_per_node
        require(
            ref % split == 0 and parallel % (ref // split) == 0,
            "the policy's data-parallel size must be a multiple of the reference's, got "
            f"{parallel} and ref.num_nodes * ref.num_gpus_per_node / {split} = {ref / split:g}",
        )


def _check_models(config: RunConfig) -> None:
    kl, train, ds, vllm = config.algo.kl, config.train, config.ds, config.vllm
    require(ds.zero_stage in (0, 1, 2, 3), f"ds.zero_stage must be 0, 1, 2 or 3, got {ds.zero_stage}")
    require(not kl.use_loss or kl.init_coef > 0, f"algo.kl.use_loss needs algo.kl.init_coef > 0, got {kl.init_coef}")
    ranks = (config.actor.num_nodes, config.actor.num_gpus_per_node)
    if kl.init_coef > 0 and (train.colocate_actor_ref or train.colocate_all):
        ref = (config.ref.num_nodes, config.ref.num_gpus_per_node)
        require(
            ref == ranks,
            "colocated policy and reference need equal num_nodes and num_gpus_per_node, "
            f"got actor {ranks} and ref {ref}",
        )
    if train.colocate_all:
        engines = vllm.num_engines * vllm.tensor_parallel_size
        require(
            ranks[0] * ranks[1] == engines,
            "train.colocate_all needs actor.num_nodes * actor.num_gpus_per_node == vllm.num_engines * "
            f"vllm.tensor_parallel_size, got {ranks[0]} * {ranks[1]} and {engines}",
        )
    require(not vllm.enable_sleep or train.colocate_all, "vllm.enable_sleep needs train.colocate_all")
    require(not ds.enable_sleep or train.colocate_all, "ds.enable_sleep needs train.colocate_all")
    require(ds.packing_samples or not train.dynamic_batch_enable, "train.dynamic_batch_enable needs ds.packing_samples")
    require(ds.packing_samples or ds.ring_attn_size == 1, "ds.ring_attn_size > 1 needs ds.packing_samples")


def _check_correction(config: RunConfig) -> None:
    advantage = config.algo.advantage
    level, mode = advantage.is_correction_level, advantage.is_correction_mode
    gating, band = advantage.is_correction_gating, advantage.is_correction_threshold
    if level == "off":
        return
    require(
        mode != "clip" or (level == "token" and gating == "ratio"),
        "algo.advantage.is_correction_mode: clip needs is_correction_level: token and is_correction_gating: ratio, "
        f"got {level} and {gating}",
    )
    require(
        gating == "ratio" or len(band) == 1 or band[0] == 0,
        "algo.advantage.is_correction_threshold must be one upper bound with is_correction_gating: "
        f"{gating}, got {band}",
    )


def _check_checkpoints(config: RunConfig) -> None:
    ckpt = config.ckpt
    _check_best_metric(config)
    require(
        ckpt.max_num >= 2,
        f"ckpt.max_num must be >= 2, because an old one is removed before the next is written, got {ckpt.max_num}",
    )
    require(
        not (ckpt.load_enable and ckpt.disable_ds),
        "ckpt.load_enable needs DeepSpeed checkpoints (ckpt.disable_ds: false)",
    )
    require(
        not (ckpt.load_enable and ckpt.path is None and config.coba.run_dir is None),
        "ckpt.load_enable needs to know where: set coba.run_dir (or ckpt.path) to that of the run to resume",
    )


def _check_best_metric(config: RunConfig) -> None:
    """Upstream passes over a metric that no evaluation has, so that no best checkpoint is ever kept."""
    metric, samples = config.ckpt.best_metric_key, config.eval.n_samples_per_prompt
    if metric in ("", "none"):
        return
    require(bool(config.eval.dataset), f"ckpt.best_metric_key needs eval.dataset, got {metric!r}")
    known = ("eval_truncated_rate", "eval_unscored_rate", "eval_response_length_mean")
    require(
        metric in known or re.fullmatch(rf"eval_.+_pass(1|{samples})", metric) is not None,
        f"ckpt.best_metric_key must be none, eval_<datasource>_pass1, eval_<datasource>_pass{samples} "
        f"(eval.n_samples_per_prompt) or one of {', '.join(known)}, got {metric!r}",
    )
