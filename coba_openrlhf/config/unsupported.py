"""Options of OpenRLHF that exist so that a command line is understood, and that must keep their default."""

from .error import require
from .run_config import RunConfig, flatten
from .upstream_options import CriticOptions, RewardOptions

GROUP_ESTIMATORS = ("group_norm", "rloo", "dr_grpo", "reinforce_baseline")


def check_unsupported(config: RunConfig) -> None:
    """Raise ConfigError for an option that GRPO with budgets has no use for."""
    estimator = config.algo.advantage.estimator
    require(
        estimator in GROUP_ESTIMATORS,
        f"algo.advantage.estimator must be one of {', '.join(GROUP_ESTIMATORS)} (budgets need prompt groups), "
        f"got {estimator}",
    )
    require(
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
                require(value == default[name], f"{group}.{name} must stay at {default[name]!r} ({why}), got {value!r}")
    for key, value, why in (
        ("train.async_enable", config.train.async_enable, "asynchronous training has no budgets yet"),
        ("train.partial_rollout_enable", config.train.partial_rollout_enable, "it belongs to asynchronous training"),
        ("train.colocate_critic_reward", config.train.colocate_critic_reward, "there is no critic"),
        ("algo.dynamic_filtering_enable", config.algo.dynamic_filtering_enable, "budgets replace filtering"),
        ("algo.kl.target", config.algo.kl.target is not None, "the adaptive controller counts a fixed batch"),
        ("use_ms", config.use_ms, "load models and data from local folders instead"),
        ("data.max_images_per_prompt", config.data.max_images_per_prompt > 0, "only text is supported"),
    ):
        require(not value, f"{key} must stay off: {why}")
    generate = config.rollout.vllm_generate_batch_size
    require(
        generate in (None, config.rollout.batch_size),
        f"rollout.vllm_generate_batch_size must be null or rollout.batch_size = {config.rollout.batch_size}, "
        f"got {generate}",
    )
