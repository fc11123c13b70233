"""The options this project adds, all under ``--coba.*``."""

from dataclasses import dataclass, field
from typing import Literal


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
        source: window = successes / rollouts over the prompt's last visits.
        window: Visits remembered per prompt.
        unseen: Estimate for a prompt without history, in [0, 1].
        success_threshold: A score of at least this counts as a success, in (0, 1].
    """

    source: Literal["window"] = "window"
    window: int = 3
    unseen: float = 0.5
    success_threshold: float = 1.0


@dataclass
class EvalPointOptions:
    """When eval.dataset is evaluated besides every eval.steps.

    Args:
        at_start: Evaluate before the first step.
        at_end: Evaluate after the last step.
    """

    at_start: bool = True
    at_end: bool = True


@dataclass
class CobaOptions:
    """Rollout budgets, scoring and the run folder.

    Args:
        strategy: coba = capability-oriented budgets (arXiv 2602.03048); uniform = GRPO, n for everyone.
        tau: Saturation of a budget's value; 7-8 is suggested for long chains of reasoning.
        kappa: alpha + beta of the preference density.
        lambd: Slope of alpha over the transformed failure rate.
        gamma: Steepness of the transform at failure rates below one half.
        alpha_min: Lower bound of alpha.
        alpha_max: Upper bound of alpha; null is kappa - 1.
        capability_window: Steps averaged into the global failure rate.
        eps: Pass rates are clipped to [eps, 1 - eps].
        solver: heap = exact greedy.
        budget: Bounds of one prompt's rollouts.
        pass_rate: Pass-rate estimation.
        group_weight: Weights in the policy loss: rollout = every token or rollout the same (as published);
            prompt = every prompt the same, whatever its budget.
        verifier: Built-in scoring of responses against data.label_key: exact text, numeric value, or math
            (math-verify, last boxed answer). Unused with reward.remote_url or train.agent_func_path.
        verifier_timeout: Seconds after which one answer check is abandoned and counted as unscored.
        eval: When to evaluate.
        run_dir: Folder of everything a run writes; null is runs/<date>-<time>.
        log_to_driver: Show every line that actors and libraries print (they are in Ray's log folder anyway).
    """

    strategy: Literal["coba", "uniform"] = "coba"
    tau: float = 5.0
    kappa: float = 11.0
    lambd: float = 8.0
    gamma: float = 10.0
    alpha_min: float = 1.0
    alpha_max: float | None = None
    capability_window: int = 10
    eps: float = 0.01
    solver: Literal["heap"] = "heap"
    budget: BudgetOptions = field(default_factory=BudgetOptions)
    pass_rate: PassRateOptions = field(default_factory=PassRateOptions)
    group_weight: Literal["rollout", "prompt"] = "rollout"
    verifier: Literal["exact", "numeric", "math"] = "math"
    verifier_timeout: float = 5.0
    eval: EvalPointOptions = field(default_factory=EvalPointOptions)
    run_dir: str | None = None
    log_to_driver: bool = False
