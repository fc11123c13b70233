"""OpenRLHF's own option groups, as typed dataclasses.

One class per dotted prefix (``actor``, ``ds.lora``, ...). Names and types follow OpenRLHF 0.11.2 and so
do the defaults, except for the few that ``docs/configuration.md`` lists; ``tests/contract/test_upstream.py``
reads the installed OpenRLHF and fails when an option is missing here or a default differs unannounced.

Options of parts that ragged GRPO does not use (critic, reward model, asynchronous training, ...) exist so
that a command line written for OpenRLHF is understood; setting one of them is refused by ``rules.py``.
"""

from dataclasses import dataclass, field
from typing import Literal

Scheduler = str
Pair = tuple[float, float]


@dataclass
class AdamOptions:
    """AdamW.

    Args:
        lr: Peak learning rate.
        betas: Decay rates of the first and second moment.
        eps: Term added to the denominator.
        weight_decay: Decoupled weight decay (biases and norms are exempt).
    """

    lr: float = 1e-6
    betas: Pair = (0.9, 0.95)
    eps: float = 1e-8
    weight_decay: float = 0.0


@dataclass
class MuonOptions:
    """Muon, for 2-D weights.

    Args:
        lr: Learning rate of the Muon group.
        momentum: Momentum.
        ns_steps: Newton-Schulz iterations (fixed inside DeepSpeed; kept for compatibility).
        nesterov: Nesterov momentum (fixed inside DeepSpeed; kept for compatibility).
    """

    lr: float = 0.02
    momentum: float = 0.95
    ns_steps: int = 5
    nesterov: bool = True


@dataclass
class ActorOptions:
    """The policy: model, optimiser and loss.

    Args:
        model_name_or_path: Hugging Face id or folder of the policy to train (required).
        num_nodes: Nodes that hold policy ranks.
        num_gpus_per_node: Policy ranks per node (ZeRO-3 shards over all ranks).
        optim: Optimiser.
        adam: AdamW settings.
        muon: Muon settings, used when optim is muon.
        lr_scheduler: Name of a transformers learning-rate schedule.
        lr_warmup_ratio: Share of all optimiser steps spent warming up, in [0, 1).
        min_lr_ratio: Floor of the cosine schedule as a share of lr.
        max_norm: Gradient-norm clip; 0 turns clipping off.
        eps_clip: Symmetric PPO clip, used when eps_clip_low_high is null.
        eps_clip_low_high: Lower and upper PPO clip ("clip-higher").
        dual_clip: Dual-clip constant (> 1), null for none.
        policy_loss_type: Token-level PPO ratio or sequence-level GSPO ratio.
        loss_agg_mode: Mean over all tokens, or mean over sequences of token means.
        entropy_coef: Entropy bonus; 0 only logs the entropy, null computes none.
        aux_loss_coef: Load-balancing loss of mixture-of-experts models.
        gradient_checkpointing_enable: Recompute activations in the backward pass.
        gradient_checkpointing_reentrant: Use the re-entrant checkpoint implementation.
        freeze_visual_encoder: Train only the language part of a vision-language model.
    """

    model_name_or_path: str | None = None
    num_nodes: int = 1
    num_gpus_per_node: int = 8
    optim: Literal["adam", "muon"] = "adam"
    adam: AdamOptions = field(default_factory=AdamOptions)
    muon: MuonOptions = field(default_factory=MuonOptions)
    lr_scheduler: Scheduler = "cosine_with_min_lr"
    lr_warmup_ratio: float = 0.03
    min_lr_ratio: float = 0.1
    max_norm: float = 1.0
    eps_clip: float = 0.2
    eps_clip_low_high: Pair | None = (0.2, 0.28)
    dual_clip: float | None = None
    policy_loss_type: Literal["ppo", "gspo"] = "ppo"
    loss_agg_mode: Literal["token-mean", "seq-mean-token-mean"] = "token-mean"
    entropy_coef: float | None = None
    aux_loss_coef: float = 0.0
    gradient_checkpointing_enable: bool = False
    gradient_checkpointing_reentrant: bool = False
    freeze_visual_encoder: bool = False


@dataclass
class CriticOptions:
    """Critic of PPO; GRPO has none, so every one of these must keep its default.

    Args:
        model_name_or_path: Critic model.
        num_nodes: Nodes of the critic.
        num_gpus_per_node: Critic ranks per node.
        optim: Optimiser.
        adam: AdamW settings.
        muon: Muon settings.
        lr_scheduler: Learning-rate schedule.
        lr_warmup_ratio: Warm-up share.
        min_lr_ratio: Floor of the cosine schedule.
        max_norm: Gradient-norm clip.
        value_clip: Value-loss clip.
        freezing_steps: Steps during which the policy is frozen.
        save_value_network: Save the critic at the end.
    """

    model_name_or_path: str | None = None
    num_nodes: int = 1
    num_gpus_per_node: int = 8
    optim: Literal["adam", "muon"] = "adam"
    adam: AdamOptions = field(default_factory=lambda: AdamOptions(lr=9e-6))
    muon: MuonOptions = field(default_factory=MuonOptions)
    lr_scheduler: Scheduler = "cosine_with_min_lr"
    lr_warmup_ratio: float = 0.03
    min_lr_ratio: float = 0.1
    max_norm: float = 1.0
    value_clip: float = 0.5
    freezing_steps: int = -1
    save_value_network: bool = False


@dataclass
class RefOptions:
    """Reference policy, loaded only when algo.kl.init_coef > 0.

    Args:
        num_nodes: Nodes of the reference model.
        num_gpus_per_node: Reference ranks per node.
        offload: Keep the reference parameters in host memory.
    """

    num_nodes: int = 1
    num_gpus_per_node: int = 8
    offload: bool = False


@dataclass
class RewardOptions:
    """Where scores come from, and reward shaping (shaping affects the loss only, never the budgets).

    Args:
        remote_url: A Python file with reward_func(queries, prompts, labels), or reward server URLs
            separated by commas; null uses coba.verifier.
        clip_range: Bounds of the group-normalised reward.
        overlong_buffer_len: Tokens before max_new_tokens over which a length penalty grows; null for none.
        overlong_penalty_factor: Largest length penalty.
        stop_properly_penalty_coef: Factor in [0, 1] on the reward of truncated responses, or the reward
            itself when negative; null for none.
        model_name_or_path: Reward model (not supported: budgets need verifiable scores).
        num_nodes: Nodes of the reward model.
        num_gpus_per_node: Ranks of the reward model per node.
        normalize_enable: Normalise reward-model outputs.
        offload: Keep the reward model in host memory.
    """

    remote_url: str | None = None
    clip_range: Pair = (-10.0, 10.0)
    overlong_buffer_len: float | None = None
    overlong_penalty_factor: float = 1.0
    stop_properly_penalty_coef: float | None = None
    model_name_or_path: str | None = None
    num_nodes: int = 1
    num_gpus_per_node: int = 8
    normalize_enable: bool = False
    offload: bool = False


@dataclass
class VllmOptions:
    """Generation engines.

    Args:
        num_engines: Number of vLLM engines.
        tensor_parallel_size: GPUs per engine.
        sync_backend: Transport of the weight sync.
        sync_with_ray: Sync weights through Ray's collective library.
        enable_prefix_caching: Reuse the prompt's key-value cache between rollouts.
        enforce_eager: Skip CUDA graphs.
        enable_sleep: Free GPU memory between generation phases (with train.colocate_all).
        gpu_memory_utilization: Share of GPU memory an engine may take, in (0, 1].
    """

    num_engines: int = 1
    tensor_parallel_size: int = 1
    sync_backend: str = "nccl"
    sync_with_ray: bool = False
    enable_prefix_caching: bool = False
    enforce_eager: bool = False
    enable_sleep: bool = False
    gpu_memory_utilization: float = 0.95


@dataclass
class RolloutOptions:
    """How responses are sampled.

    Args:
        batch_size: Prompts per step.
        n_samples_per_prompt: Mean rollouts per prompt: a step has batch_size * n_samples_per_prompt of them.
        micro_batch_size: Sequences per forward pass when log-probabilities are computed.
        max_new_tokens: Longest response; null lets it fill data.max_len.
        temperature: Sampling temperature, > 0.
        top_p: Nucleus mass, in (0, 1].
        vllm_generate_batch_size: Prompts per generation call (only batch_size is supported).
        max_tokens_per_gpu: Token cap of a forward pass with dynamic batches.
    """

    batch_size: int = 1024
    n_samples_per_prompt: int = 8
    micro_batch_size: int = 1
    max_new_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    vllm_generate_batch_size: int | None = None
    max_tokens_per_gpu: int | None = None


@dataclass
class TrainOptions:
    """The training loop.

    Args:
        batch_size: Rollouts per optimiser step, over all ranks.
        micro_batch_size: Rollouts per backward pass and rank.
        max_epochs: Passes over a step's rollouts.
        num_episodes: Passes over the data set.
        seed: Seed of data order, sampling and models.
        full_determinism_enable: Ask libraries for deterministic kernels.
        dynamic_batch_enable: Form micro-batches by tokens instead of by count.
        max_tokens_per_gpu: Token cap of a dynamic training micro-batch.
        colocate_all: Put all models and engines on the same GPUs.
        colocate_actor_ref: Put policy and reference on the same GPUs.
        colocate_critic_reward: Not used: GRPO has no critic.
        enable_ema: Keep an exponential moving average of the policy.
        ema_beta: Decay of that average.
        agent_func_path: Python file with an AgentExecutor class (multi-turn environments).
        async_enable: Asynchronous training (not supported).
        async_queue_size: Queue of asynchronous training (not supported).
        partial_rollout_enable: Partial rollouts of asynchronous training (not supported).
    """

    batch_size: int = 128
    micro_batch_size: int = 1
    max_epochs: int = 1
    num_episodes: int = 1
    seed: int = 42
    full_determinism_enable: bool = False
    dynamic_batch_enable: bool = False
    max_tokens_per_gpu: int = 16192
    colocate_all: bool = False
    colocate_actor_ref: bool = False
    colocate_critic_reward: bool = False
    enable_ema: bool = False
    ema_beta: float = 0.992
    agent_func_path: str | None = None
    async_enable: bool = False
    async_queue_size: int = 1
    partial_rollout_enable: bool = False


@dataclass
class AdvantageOptions:
    """Advantages.

    Args:
        estimator: Baseline within a prompt's group; group_norm is GRPO.
        gamma: Discount of token rewards.
        lambd: GAE lambda (unused by group estimators).
        no_std_norm: With reinforce_baseline, centre advantages without dividing by their std.
        is_correction_level: Where train/generation log-probability mismatch is corrected.
        is_correction_mode: Drop units outside the band, or clamp them into it.
        is_correction_gating: Statistic that is compared with the band.
        is_correction_threshold: LOW HIGH of the band, or one upper bound.
    """

    estimator: Literal["gae", "reinforce", "rloo", "reinforce_baseline", "group_norm", "dr_grpo", "flash_reinforce"] = (
        "group_norm"
    )
    gamma: float = 1.0
    lambd: float = 1.0
    no_std_norm: bool = False
    is_correction_level: Literal["off", "token", "seq"] = "off"
    is_correction_mode: Literal["mask", "clip"] = "mask"
    is_correction_gating: Literal["ratio", "binary_kl", "tv"] = "ratio"
    is_correction_threshold: list[float] = field(default_factory=lambda: [0.5, 5.0])


@dataclass
class KlOptions:
    """Penalty that keeps the policy near the reference.

    Args:
        init_coef: Coefficient; 0 means no penalty and no reference model.
        estimator: Per-token KL estimator.
        use_loss: Put the penalty into the loss instead of the reward.
        unbiased_gradient: Back-propagate the true reverse KL when use_loss is on.
        target: Target of the adaptive controller; null keeps the coefficient fixed.
        horizon: Horizon of the adaptive controller.
    """

    init_coef: float = 0.0
    estimator: Literal["k1", "k2", "k3"] = "k1"
    use_loss: bool = False
    unbiased_gradient: bool = False
    target: float | None = None
    horizon: int = 10000


@dataclass
class AlgoOptions:
    """Algorithm.

    Args:
        advantage: Advantage estimation.
        kl: KL penalty.
        dynamic_filtering_enable: Refill groups outside a reward range (not supported with budgets).
        dynamic_filtering_range: That range.
    """

    advantage: AdvantageOptions = field(default_factory=AdvantageOptions)
    kl: KlOptions = field(default_factory=KlOptions)
    dynamic_filtering_enable: bool = False
    dynamic_filtering_range: Pair = (0.0, 1.0)


@dataclass
class LoraOptions:
    """LoRA adapters.

    Args:
        rank: Rank; 0 trains the full model.
        alpha: Scale.
        target_modules: Modules that get adapters.
        dropout: Dropout of the adapters.
    """

    rank: int = 0
    alpha: int = 16
    target_modules: str | list[str] = "all-linear"
    dropout: float = 0.0


@dataclass
class DsOptions:
    """DeepSpeed and model loading.

    Args:
        zero_stage: ZeRO stage of the policy.
        param_dtype: Parameter type.
        attn_implementation: Attention kernel of the training models (a CPU run needs sdpa or eager).
        packing_samples: Remove padding by packing sequences.
        adam_offload: Keep optimiser states in host memory.
        zpg: ZeRO++ secondary partition size.
        overlap_comm: Overlap communication and computation.
        grad_accum_dtype: Type of gradient accumulation.
        enable_sleep: Offload training states between phases (with train.colocate_all).
        tensor_parallel_size: Tensor-parallel size of the training models.
        ring_attn_size: Ring-attention size.
        ring_attn_head_stride: Heads per ring-attention round.
        use_liger_kernel: Use Liger kernels.
        experts_implementation: Expert kernel of mixture-of-experts models.
        deepcompile: Use DeepCompile.
        use_universal_ckpt: Load a DeepSpeed universal checkpoint.
        load_in_4bit: Load the base model in 4 bits (with LoRA).
        lora: LoRA adapters.
        value_head_prefix: Name of a reward model's head.
    """

    zero_stage: int = 3
    param_dtype: Literal["bf16", "fp16"] = "bf16"
    attn_implementation: str = "flash_attention_2"
    packing_samples: bool = False
    adam_offload: bool = False
    zpg: int = 1
    overlap_comm: bool = False
    grad_accum_dtype: str | None = None
    enable_sleep: bool = False
    tensor_parallel_size: int = 1
    ring_attn_size: int = 1
    ring_attn_head_stride: int = 1
    use_liger_kernel: bool = False
    experts_implementation: Literal["eager", "batched_mm", "grouped_mm", "deepgemm"] | None = None
    deepcompile: bool = False
    use_universal_ckpt: bool = False
    load_in_4bit: bool = False
    lora: LoraOptions = field(default_factory=LoraOptions)
    value_head_prefix: str = "score"


@dataclass
class DataOptions:
    """Training prompts.

    Args:
        prompt_dataset: JSONL/CSV/parquet file, folder or Hugging Face id; several separated by commas (required).
        prompt_probs: Mixing probabilities of several data sets; null concatenates them.
        prompt_split: Split to read from data sets that have splits.
        input_key: Column with the prompt (text, or a list of chat messages).
        label_key: Column with the reference answer.
        input_template: Text with one {} into which the prompt is put (inside the user's turn, with a chat template).
        apply_chat_template: Render the prompt with the tokenizer's chat template.
        max_len: Longest sequence, prompt and response together, in tokens.
        max_samples: Read at most this many rows.
        dataloader_num_workers: Kept for compatibility; prompts are served from memory.
        disable_fast_tokenizer: Use the slow tokenizer.
        image_key: Column with images (not supported).
        max_images_per_prompt: Images per prompt (not supported).
    """

    prompt_dataset: str | None = None
    prompt_probs: str | None = None
    prompt_split: str = "train"
    input_key: str = "input"
    label_key: str | None = None
    input_template: str | None = None
    apply_chat_template: bool = False
    max_len: int = 2048
    max_samples: int = 100000000
    dataloader_num_workers: int = 0
    disable_fast_tokenizer: bool = False
    image_key: str = "images"
    max_images_per_prompt: int = 0


@dataclass
class EvalOptions:
    """Held-out evaluation (it never changes the allocator).

    Args:
        dataset: Data set as in data.prompt_dataset; null evaluates nothing.
        split: Split to read.
        steps: Evaluate every this many steps; -1 only at the start and the end (coba.eval).
        temperature: Sampling temperature of evaluation.
        n_samples_per_prompt: Responses per problem.
    """

    dataset: str | None = None
    split: str = "train"
    steps: int = -1
    temperature: float = 0.6
    n_samples_per_prompt: int = 4


@dataclass
class CkptOptions:
    """Checkpoints.

    Args:
        path: Folder of training checkpoints; null is <coba.run_dir>/checkpoints.
        output_dir: Folder of the final Hugging Face model; null is <coba.run_dir>/model.
        save_steps: Save every this many steps; -1 never.
        load_enable: Resume from the newest complete checkpoint in ckpt.path.
        max_num: Checkpoints kept.
        max_mem: Size of all checkpoints kept, in GB.
        save_hf: Write a Hugging Face copy with every checkpoint.
        disable_ds: Write no DeepSpeed checkpoint (then a run cannot be resumed).
        best_metric_key: Evaluation metric of the best checkpoint; empty picks the first pass1, "none" keeps none.
    """

    path: str | None = None
    output_dir: str | None = None
    save_steps: int = -1
    load_enable: bool = False
    max_num: int = 3
    max_mem: float = float("inf")
    save_hf: bool = False
    disable_ds: bool = False
    best_metric_key: str = ""


@dataclass
class WandbOptions:
    """Weights & Biases; off unless a key is given.

    Args:
        key: API key.
        org: Entity.
        group: Run group.
        project: Project.
        run_name: Run name; null is the name of coba.run_dir.
    """

    key: str | None = None
    org: str | None = None
    group: str | None = None
    project: str = "coba_openrlhf"
    run_name: str | None = None


@dataclass
class LoggerOptions:
    """Logging.

    Args:
        logging_steps: Log every this many steps.
        tensorboard_dir: TensorBoard folder; null is <coba.run_dir>/tensorboard.
        wandb: Weights & Biases.
    """

    logging_steps: int = 1
    tensorboard_dir: str | None = None
    wandb: WandbOptions = field(default_factory=WandbOptions)
