"""Where a run puts its processes, and what a step costs."""

from pathlib import Path

from coba_openrlhf.allocation import concentration_warning
from coba_openrlhf.config import RunConfig
from coba_openrlhf.config.allocation import to_allocation_config
from coba_openrlhf.config.rules import name_options


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
    allocation = to_allocation_config(config.coba, config.train.seed)
    if config.coba.revisit.share:
        revisit = config.coba.revisit
        lines.append(
            f"prompts         {revisit.share:.0%} of a step met before, but not in the last {revisit.cooldown} step(s)"
        )
    if allocation.pass_rate_source == "probe":
        lines.append(f"first wave      {allocation.probe_rollouts} rollouts per prompt, part of the budgets")
    warning = concentration_warning(prompts * n, allocation.smallest_budget, prompts, allocation.budget_max)
    if warning:
        lines.append(f"warning         {name_options(warning)}")
    return "\n".join(lines)


def gpus_needed(config: RunConfig) -> int:
    """GPUs that the placement groups will reserve."""
    policy = config.actor.num_nodes * config.actor.num_gpus_per_node
    if config.train.colocate_all:
        return policy
    reference = config.ref.num_nodes * config.ref.num_gpus_per_node if config.algo.kl.init_coef > 0 else 0
    shared = config.train.colocate_actor_ref
    return policy + (0 if shared else reference) + config.vllm.num_engines * config.vllm.tensor_parallel_size
