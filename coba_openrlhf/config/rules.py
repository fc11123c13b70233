"""Combinations of options that cannot work, refused before anything starts."""

import math

from .allocation import to_allocation_config
from .run_config import ConfigError, RunConfig, flatten
from .upstream_options import CriticOptions, RewardOptions

GROUP_ESTIMATORS = ("group_norm", "rloo", "dr_grpo", "reinforce_baseline")


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
    _check_ranges(config)
    _check_unsupported(config)
    _check_budgets(config)
    _check_batches(config)
    _check_models(config)
    _check_correction(config)
    _check_checkpoints(config)


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise ConfigError(message)


def _check_required(config: RunConfig) -> None:
    for key, value in (
        ("actor.model_name_or_path", config.actor.model_name_or_path),
        ("data.prompt_dataset", config.data.prompt_dataset),
    ):
        _require(bool(value), f"{key} must be set, got {value!r}")
    own_rewards = config.reward.remote_url or config.train.agent_func_path
    _require(
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
)
_POSITIVE = ("rollout.temperature", "coba.verifier_timeout", "vllm.gpu_memory_utilization", "actor.adam.eps")


def _check_ranges(config: RunConfig) -> None:
    flat = flatten(config)
    for key, value in flat.items():
        finite = not isinstance(value, float) or math.isfinite(value) or key == "ckpt.max_mem"
        _require(finite, f"{key} must be finite, got {value}")
    for key in _AT_LEAST_ONE:
        _require(flat[key] >= 1, f"{key} must be >= 1, got {flat[key]}")  # type: ignore[operator]
    for key in _NOT_NEGATIVE:
        _require(flat[key] >= 0, f"{key} must be >= 0, got {flat[key]}")  # type: ignore[operator]
    for key in _POSITIVE:
        _require(flat[key] > 0, f"{key} must be > 0, got {flat[key]}")  # type: ignore[operator]
    _require(0 < config.rollout.top_p <= 1, f"rollout.top_p must be in (0, 1], got {config.rollout.top_p}")
    memory = config.vllm.gpu_memory_utilization
    _require(memory <= 1, f"vllm.gpu_memory_utilization must be in (0, 1], got {memory}")
    _require(
        0 <= config.actor.lr_warmup_ratio < 1,
        f"actor.lr_warmup_ratio must be in [0, 1), got {config.actor.lr_warmup_ratio}",
    )
    betas = config.actor.adam.betas
    _require(all(0 <= b < 1 for b in betas), f"actor.adam.betas must be in [0, 1), got {betas}")
    clip = config.actor.eps_clip_low_high
    _require(
        clip is None or config.actor.eps_clip == 0.2,
        f"actor.eps_clip has no effect while actor.eps_clip_low_high is set, got {config.actor.eps_clip} and {clip}; "
        "set actor.eps_clip_low_high to null or to the pair you want",
    )
    _require(clip is None or min(clip) > 0, f"actor.eps_clip_low_high must be > 0, got {clip}")
    dual = config.actor.dual_clip
    _require(dual is None or dual > 1, f"actor.dual_clip must be > 1, got {dual}")
    low, high = config.reward.clip_range
    _require(low < high, f"reward.clip_range must be LOW < HIGH, got {low} {high}")
    for key, value in (("eval.steps", config.eval.steps), ("ckpt.save_steps", config.ckpt.save_steps)):
        _require(value == -1 or value >= 1, f"{key} must be >= 1, or -1 for never, got {value}")
    band = config.algo.advantage.is_correction_threshold
    _require(len(band) in (1, 2), f"algo.advantage.is_correction_threshold takes HIGH or LOW HIGH, got {band}")
    new, longest = config.rollout.max_new_tokens, config.data.max_len
    _require(
        new is None or 1 <= new < longest,
        f"rollout.max_new_tokens must be >= 1 and < data.max_len, got {new} and {longest}",
    )


def _check_unsupported(config: RunConfig) -> None:
    estimator = config.algo.advantage.estimator
    _require(
        estimator in GROUP_ESTIMATORS,
        f"algo.advantage.estimator must be one of {', '.join(GROUP_ESTIMATORS)} (budgets need prompt groups), "
        f"got {estimator}",
    )
    _require(
        config.algo.advantage.gamma == 1.0,
        f"algo.advantage.gamma must be 1 for group estimators, got {config.algo.advantage.gamma}",
    )
    reward_model = ("model_name_or_path", "num_nodes", "num_gpus_per_node", "normalize_enable", "offload")
    for group, defaults, names, why in (
        ("critic", CriticOptions(), None, "GRPO has no critic"),
        ("reward", RewardOptions(), reward_model, "budgets need verifiable scores, not a reward model"),
    ):
        default = flatten(defaults)
        for name, value in flatten(getattr(config, group)).items():
            if names is None or name in names:
                _require(
                    value == default[name], f"{group}.{name} must stay at {default[name]!r} ({why}), got {value!r}"
                )
    for key, value, why in (
        ("train.async_enable", config.train.async_enable, "asynchronous training has no budgets yet"),
        ("train.partial_rollout_enable", config.train.partial_rollout_enable, "it belongs to asynchronous training"),
        ("train.colocate_critic_reward", config.train.colocate_critic_reward, "there is no critic"),
        ("algo.dynamic_filtering_enable", config.algo.dynamic_filtering_enable, "budgets replace filtering"),
        ("algo.kl.target", config.algo.kl.target is not None, "the adaptive controller counts a fixed batch"),
        ("use_ms", config.use_ms, "load models and data from local folders instead"),
        ("data.max_images_per_prompt", config.data.max_images_per_prompt > 0, "only text is supported"),
    ):
        _require(not value, f"{key} must stay off: {why}")
    generate = config.rollout.vllm_generate_batch_size
    _require(
        generate in (None, config.rollout.batch_size),
        f"rollout.vllm_generate_batch_size must be null or rollout.batch_size = {config.rollout.batch_size}, "
        f"got {generate}",
    )


def _check_budgets(config: RunConfig) -> None:
    try:
        to_allocation_config(config.coba)
    except ValueError as error:
        raise ConfigError(f"coba: {error}") from error
    n, prompts = config.rollout.n_samples_per_prompt, config.rollout.batch_size
    _require(n >= 2, f"rollout.n_samples_per_prompt must be >= 2: a group of one has no advantage, got {n}")
    low, high, total = config.coba.budget.min, config.coba.budget.max, prompts * n
    _require(
        prompts * low <= total,
        "coba.budget.min * rollout.batch_size must be <= rollout.batch_size * rollout.n_samples_per_prompt, "
        f"got {low} * {prompts} = {low * prompts} > {prompts} * {n} = {total}",
    )
    _require(
        prompts * high >= total,
        "coba.budget.max * rollout.batch_size must be >= rollout.batch_size * rollout.n_samples_per_prompt, "
        f"got {high} * {prompts} = {high * prompts} < {prompts} * {n} = {total}",
    )


def _check_batches(config: RunConfig) -> None:
    ranks = config.actor.num_nodes * config.actor.num_gpus_per_node
    split = config.ds.ring_attn_size * config.ds.tensor_parallel_size
    _require(
        ranks % split == 0,
        "actor.num_nodes * actor.num_gpus_per_node must be a multiple of ds.ring_attn_size * "
        f"ds.tensor_parallel_size, got {ranks} and {split}",
    )
    parallel = data_parallel_size(config)
    total, batch, micro = rollouts_per_step(config), config.train.batch_size, config.train.micro_batch_size
    _require(
        total % batch == 0,
        "rollout.batch_size * rollout.n_samples_per_prompt must be a multiple of train.batch_size, got "
        f"{config.rollout.batch_size} * {config.rollout.n_samples_per_prompt} = {total} and {batch}",
    )
    _require(
        batch % (micro * parallel) == 0,
        f"train.batch_size must be a multiple of train.micro_batch_size * ranks, got {batch} and {micro} * {parallel}",
    )
    forward = config.rollout.micro_batch_size * parallel
    _require(
        batch % forward == 0,
        "train.batch_size must be a multiple of rollout.micro_batch_size * ranks, "
        f"got {batch} and {config.rollout.micro_batch_size} * {parallel} = {forward}",
    )
    if config.algo.kl.init_coef > 0:
        # The reference ranks split the same micro-batches; an uneven split would leave some waiting for ever.
        ref = config.ref.num_nodes * config.ref.num_gpus_per_node
        _require(
            ref % split == 0 and parallel % (ref // split) == 0,
            "the policy's data-parallel size must be a multiple of the reference's, got "
            f"{parallel} and ref.num_nodes * ref.num_gpus_per_node / {split} = {ref / split:g}",
        )


def _check_models(config: RunConfig) -> None:
    kl, train, ds, vllm = config.algo.kl, config.train, config.ds, config.vllm
    _require(ds.zero_stage in (0, 1, 2, 3), f"ds.zero_stage must be 0, 1, 2 or 3, got {ds.zero_stage}")
    _require(not kl.use_loss or kl.init_coef > 0, f"algo.kl.use_loss needs algo.kl.init_coef > 0, got {kl.init_coef}")
    ranks = (config.actor.num_nodes, config.actor.num_gpus_per_node)
    if kl.init_coef > 0 and (train.colocate_actor_ref or train.colocate_all):
        ref = (config.ref.num_nodes, config.ref.num_gpus_per_node)
        _require(
            ref == ranks,
            "colocated policy and reference need equal num_nodes and num_gpus_per_node, "
            f"got actor {ranks} and ref {ref}",
        )
    if train.colocate_all:
        engines = vllm.num_engines * vllm.tensor_parallel_size
        _require(
            ranks[0] * ranks[1] == engines,
            "train.colocate_all needs actor.num_nodes * actor.num_gpus_per_node == vllm.num_engines * "
            f"vllm.tensor_parallel_size, got {ranks[0]} * {ranks[1]} and {engines}",
        )
    _require(not vllm.enable_sleep or train.colocate_all, "vllm.enable_sleep needs train.colocate_all")
    _require(not ds.enable_sleep or train.colocate_all, "ds.enable_sleep needs train.colocate_all")
    _require(
        ds.packing_samples or not train.dynamic_batch_enable, "train.dynamic_batch_enable needs ds.packing_samples"
    )
    _require(ds.packing_samples or ds.ring_attn_size == 1, "ds.ring_attn_size > 1 needs ds.packing_samples")
    template = config.data.input_template
    _require(template is None or "{}" in template, f"data.input_template must contain {{}}, got {template!r}")


def _check_correction(config: RunConfig) -> None:
    advantage = config.algo.advantage
    level, mode = advantage.is_correction_level, advantage.is_correction_mode
    gating, band = advantage.is_correction_gating, advantage.is_correction_threshold
    if level == "off":
        return
    _require(
        mode != "clip" or (level == "token" and gating == "ratio"),
        "algo.advantage.is_correction_mode: clip needs is_correction_level: token and is_correction_gating: ratio, "
        f"got {level} and {gating}",
    )
    _require(
        gating == "ratio" or len(band) == 1 or band[0] == 0,
        "algo.advantage.is_correction_threshold must be one upper bound with is_correction_gating: "
        f"{gating}, got {band}",
    )


def _check_checkpoints(config: RunConfig) -> None:
    ckpt = config.ckpt
    _require(
        ckpt.max_num >= 2,
        f"ckpt.max_num must be >= 2, because an old one is removed before the next is written, got {ckpt.max_num}",
    )
    _require(
        not (ckpt.load_enable and ckpt.disable_ds),
        "ckpt.load_enable needs DeepSpeed checkpoints (ckpt.disable_ds: false)",
    )
    _require(
        not (ckpt.load_enable and ckpt.path is None and config.coba.run_dir is None),
        "ckpt.load_enable needs to know where: set coba.run_dir (or ckpt.path) to that of the run to resume",
    )
