"""The options this project adds, all under ``--coba.*``."""

from dataclasses import dataclass, field
from typing import Literal, get_args

VerifierName = Literal["exact", "numeric", "math", "multiple_choice", "code", "reasoning_gym"]
VERIFIER_NAMES: tuple[str, ...] = get_args(VerifierName)


@dataclass
class BudgetOptions:
    """Bounds of one prompt's rollouts.

    Args:
        min: Fewest rollouts of a prompt, >= 1 (2 are needed for a group to carry any signal).
        max: Most rollouts of a prompt.
    """

    min: int = 2
    max: int = 128


@dataclass
class PassRateOptions:
    """How a prompt's pass rate is estimated before its rollouts exist.

    Args:
        source: window = successes / rollouts over the prompt's last visits; posterior = mean of a Beta distribution
            that forgets, unseen prompts start at the policy's success rate; probe = the posterior, updated within the
            step by a first wave of rollouts that are part of the budget.
        window: Visits remembered per prompt (source window).
        decay: Share of the counts kept from one policy version to the next, in (0, 1] (posterior, probe).
        prior_strength: Rollouts that the prior of an unseen prompt counts as.
        optimism: Posterior standard deviations added to estimates below one half, never beyond it; above 0 it
            keeps prompts that were never solved alive.
        probe_rollouts: Rollouts of every prompt in the first wave (source probe).
        unseen: Estimate for a prompt without history, in [0, 1] (window; else before the first step only).
        success_rule: threshold = a score of at least success_threshold is a success; score = the score itself is
            the share of a success.
        success_threshold: In (0, 1].
    """

    source: Literal["window", "posterior", "probe"] = "window"
    window: int = 3
    decay: float = 0.95
    prior_strength: float = 2.0
    optimism: float = 0.0
    probe_rollouts: int = 2
    unseen: float = 0.5
    success_rule: Literal["threshold", "score"] = "threshold"
    success_threshold: float = 1.0


@dataclass
class RevisitOptions:
    """Prompts of earlier steps that take the places of some of a step's prompts, drawn by what they may teach.

    Args:
        share: Of a step's prompts, in [0, 1); 0 = every step is the next prompts of the data.
        cooldown: Steps after which a prompt may be drawn again.
        sharpness: Draws are in proportion to the expected signal to this power; 0 = evenly.
    """

    share: float = 0.0
    cooldown: int = 2
    sharpness: float = 2.0


@dataclass
class EvalPointOptions:
    """When eval.dataset is evaluated besides every eval.steps, and how it is sampled.

    Args:
        at_start: Evaluate before the first step.
        at_end: Evaluate after the last step.
        top_p: Nucleus of evaluation, in (0, 1]; null is rollout.top_p (the temperature is eval.temperature).
    """

    at_start: bool = True
    at_end: bool = True
    top_p: float | None = None


@dataclass
class PromptOptions:
    """What is put around the prompts of training and evaluation.

    Args:
        system_prompt: System message of every chat (needs data.apply_chat_template); rows that are chats with a
            system message of their own keep it. Null is what the chat template does by itself.
    """

    system_prompt: str | None = None


@dataclass
class CobaOptions:
    """Rollout budgets, scoring and the run folder.

    Args:
        strategy: Budget rule: coba = capability-oriented budgets (arXiv 2602.03048); uniform = GRPO, n for everyone;
            coba_released, static, linear_decay, explore_then_exploit, knapsack, vip, reinforce_ada, gvm, hora, duet,
            mixed, mixedhard, last_outcome (docs/allocation.md); or one of your own, path/to/rule.py:ClassName.
        tau: Saturation of a budget's value; 7-8 is suggested for long chains of reasoning.
        tau_mode: fixed, or adaptive = between tau_min and tau_max by the variance of the batch's pass rates.
        tau_min: Smallest adaptive tau.
        tau_max: Largest adaptive tau.
        saturation: variance = 1 - exp(-B p(1-p) / tau); inverse_variance = 1 - exp(-B / (tau p(1-p))).
        kappa: alpha + beta of the preference density.
        lambd: Slope of alpha over the transformed failure rate.
        gamma: Steepness of the transform at failure rates below one half.
        alpha_min: Lower bound of alpha.
        alpha_max: Upper bound of alpha; null is kappa - 1.
        capability_window: Steps averaged into the global failure rate.
        capability_bins: 1 = one failure rate for all prompts; more = one per equal bin of the pass rate.
        perturbation: Values are multiplied by 1 + perturbation * u, u uniform in [-1, 1), seeded by train.seed.
        eps: Pass rates are clipped to [eps, 1 - eps].
        static_alpha: alpha of strategy static.
        static_beta: beta of strategy static.
        decay_steps: Steps over which linear_decay lowers alpha.
        vip_estimator: Whose gradient variance vip minimises; dr_grpo needs budget.min >= 3.
        fallback_steps: Steps in a row that estimates must predict worse than the plain mean before budgets become
            uniform, and better before they come back; 0 = never.
        solver: heap and threshold give the same budgets, threshold faster; exact = dynamic programming, slow; auto
            chooses by size.
        budget: Bounds of one prompt's rollouts.
        pass_rate: Pass-rate estimation.
        revisit: Prompts of earlier steps that come again.
        group_weight: Weights in the policy loss: rollout = every token or rollout the same (as published);
            prompt = every prompt the same, whatever its budget.
        verifier: Built-in scoring of responses against data.label_key: exact text, numeric value, math (math-verify,
            last boxed answer), multiple_choice, code or reasoning_gym (docs/rewards.md). Unused with reward.remote_url
            or train.agent_func_path.
        verifier_of: Another verifier for some data sources, {"gsm8k": "numeric"}; the data's column datasource.
        verifier_tolerance: Most that numbers may differ and still be equal (verifier numeric), relative or absolute;
            >= 0.
        verifier_timeout: Seconds after which one answer check is abandoned and counted as unscored.
        verifier_memory_mb: MiB that one answer check may take; beyond them it is counted as unscored.
        verifier_workers: Answer checks at a time, per engine.
        eval: When to evaluate, and how it is sampled.
        data: What is put around prompts.
        run_dir: Folder of everything a run writes; null is runs/<date>-<time>.
        log_to_driver: Show every line that actors and libraries print (they are in Ray's log folder anyway).
    """

    strategy: str = "coba"
    tau: float = 5.0
    tau_mode: Literal["fixed", "adaptive"] = "fixed"
    tau_min: float = 3.0
    tau_max: float = 12.0
    saturation: Literal["variance", "inverse_variance"] = "variance"
    kappa: float = 11.0
    lambd: float = 8.0
    gamma: float = 10.0
    alpha_min: float = 1.0
    alpha_max: float | None = None
    capability_window: int = 10
    capability_bins: int = 1
    perturbation: float = 0.0
    eps: float = 0.01
    static_alpha: float = 10.5
    static_beta: float = 1.5
    decay_steps: int = 100
    vip_estimator: Literal["rloo", "dr_grpo"] = "rloo"
    fallback_steps: int = 10
    solver: Literal["auto", "heap", "threshold", "exact"] = "auto"
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    pass_rate: PassRateOptions = field(default_factory=PassRateOptions)
    revisit: RevisitOptions = field(default_factory=RevisitOptions)
    group_weight: Literal["rollout", "prompt"] = "rollout"
    verifier: VerifierName = "math"
    verifier_of: dict[str, str] = field(default_factory=dict)
    verifier_tolerance: float = 1e-6
    verifier_timeout: float = 5.0
    verifier_memory_mb: int = 1024
    verifier_workers: int = 2
    eval: EvalPointOptions = field(default_factory=EvalPointOptions)
    data: PromptOptions = field(default_factory=PromptOptions)
    run_dir: str | None = None
    log_to_driver: bool = False
