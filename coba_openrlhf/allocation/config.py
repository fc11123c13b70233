"""Settings of an allocator."""

from dataclasses import dataclass
from typing import Literal, get_args

from .checks import check_bounds, check_choice, check_int, check_real
from .solvers import SOLVER_NAMES
from .value import SATURATIONS, Saturation

STRATEGY_NAMES = (
    "uniform",
    "coba",
    "coba_released",
    "static",
    "linear_decay",
    "explore_then_exploit",
    "knapsack",
    "vip",
    "reinforce_ada",
    "gvm",
    "hora",
    "duet",
    "mixed",
    "mixedhard",
    "last_outcome",
)
TauMode = Literal["fixed", "adaptive"]
VipEstimator = Literal["dr_grpo", "rloo"]
PassRateSource = Literal["window", "posterior", "probe"]
SuccessRule = Literal["threshold", "score"]


@dataclass(frozen=True)
class AllocationConfig:
    """Validated on construction; numpy numbers become Python numbers, so that the settings are JSON-able.

    Defaults are the paper's (arXiv 2602.03048). Unless said otherwise a float lies in [1e-9, 1e9].

    Attributes:
        strategy: Name of a budget rule (``STRATEGY_NAMES``), or ``path/to/rule.py:ClassName``.
        tau: Saturation of a budget's value, in rollouts; 7-8 is suggested for long chains of reasoning.
        tau_mode: ``fixed``, or ``adaptive``: between tau_min and tau_max, by the variance of the batch's pass rates.
        tau_min: Smallest adaptive tau.
        tau_max: Largest adaptive tau, >= tau_min.
        saturation: ``variance`` or ``inverse_variance``, see ``value.py``.
        kappa: alpha + beta of the preference density.
        lambd: Slope of alpha over the transformed failure rate, in [0, 1e9].
        gamma: Steepness of the transform at failure rates below one half, in [0, 1e9].
        alpha_min: Lower bound of alpha.
        alpha_max: Upper bound of alpha, in [alpha_min, kappa); None is kappa - 1.
        capability_window: Steps averaged into the failure rate, >= 1.
        capability_bins: 1 = one failure rate for all prompts; more = one per equal bin of the pass rate.
        perturbation: Values are multiplied by 1 + perturbation * u with u uniform in [-1, 1); in [0, 1).
        seed: Seed of the perturbation, >= 0.
        eps: Pass rates are clipped to [eps, 1 - eps] in the value; in [1e-9, 0.5).
        static_alpha: alpha of the strategy ``static``.
        static_beta: beta of the strategy ``static``.
        decay_steps: Steps over which ``linear_decay`` takes alpha from its largest to its smallest value, >= 1.
        vip_estimator: Whose gradient variance ``vip`` minimises; ``dr_grpo`` needs budget_min >= 3.
        budget_min: Fewest rollouts of a prompt, >= 1 (a group needs 2 to carry any signal).
        budget_max: Most rollouts of a prompt, >= budget_min.
        pass_rate_source: ``window`` = successes / rollouts over a prompt's last visits; ``posterior`` = mean of a
            Beta distribution that forgets; ``probe`` = the posterior, updated by a first wave of the same step.
        pass_rate_window: Visits remembered per prompt, >= 1.
        pass_rate_decay: Share of the counts that the posterior keeps from one policy version to the next, in (0, 1].
        prior_strength: Rollouts that the prior of an unseen prompt counts as.
        optimism: Posterior standard deviations added to estimates below one half, never beyond it; in [0, 1e9].
        probe_rollouts: Rollouts of every prompt in the first wave of ``probe``, >= 1.
        unseen_pass_rate: ``window``'s estimate for a prompt without history, in [0, 1]; with other sources the
            prior mean before the first step.
        success_rule: ``threshold`` = a score of at least success_threshold is a success; ``score`` = the score
            itself is the share of a success.
        success_threshold: In (0, 1].
        fallback_steps: Steps in a row that estimates must predict worse than the plain mean before budgets become
            uniform, and better before they come back; 0 = never.
        solver: ``auto``, ``heap``, ``threshold`` (the same budgets, faster) or ``exact`` (dynamic programming).

    Raises:
        ValueError: A value is out of its range or of another type.
    """

    strategy: str = "coba"
    tau: float = 5.0
    tau_mode: TauMode = "fixed"
    tau_min: float = 3.0
    tau_max: float = 12.0
    saturation: Saturation = "variance"
    kappa: float = 11.0
    lambd: float = 8.0
    gamma: float = 10.0
    alpha_min: float = 1.0
    alpha_max: float | None = None
    capability_window: int = 10
    capability_bins: int = 1
    perturbation: float = 0.0
    seed: int = 0
    eps: float = 0.01
    static_alpha: float = 10.5
    static_beta: float = 1.5
    decay_steps: int = 100
    vip_estimator: VipEstimator = "rloo"
    budget_min: int = 2
    budget_max: int = 128
    pass_rate_source: PassRateSource = "window"
    pass_rate_window: int = 3
    pass_rate_decay: float = 0.95
    prior_strength: float = 2.0
    optimism: float = 0.0
    probe_rollouts: int = 2
    unseen_pass_rate: float = 0.5
    success_rule: SuccessRule = "threshold"
    success_threshold: float = 1.0
    fallback_steps: int = 10
    solver: str = "auto"

    def __post_init__(self) -> None:
        if not is_rule_file(self.strategy):
            check_choice("strategy", self.strategy, (*STRATEGY_NAMES, "path/to/rule.py:ClassName"))
        for name, choices in (
            ("tau_mode", get_args(TauMode)),
            ("saturation", SATURATIONS),
            ("vip_estimator", get_args(VipEstimator)),
            ("pass_rate_source", get_args(PassRateSource)),
            ("success_rule", get_args(SuccessRule)),
            ("solver", SOLVER_NAMES),
        ):
            check_choice(name, getattr(self, name), choices)
        for name in (
            "tau", "tau_min", "tau_max", "kappa", "alpha_min", "static_alpha", "static_beta", "prior_strength",
        ):  # fmt: skip
            self._set(name, check_real(name, getattr(self, name), "[]"))
        if self.tau_min > self.tau_max:
            raise ValueError(f"tau_min must be <= tau_max, got {self.tau_min} > {self.tau_max}")
        for name in ("lambd", "gamma", "optimism"):
            self._set(name, check_real(name, getattr(self, name), "[]", 0))
        if self.alpha_max is not None:
            self._set("alpha_max", check_real("alpha_max", self.alpha_max, "[]"))
        if not self.alpha_min <= self.alpha_limit < self.kappa:
            raise ValueError(
                "alpha_max must be in [alpha_min, kappa), as alpha and beta = kappa - alpha must be positive, "
                f"got {self.alpha_limit} with alpha_min = {self.alpha_min}, kappa = {self.kappa}"
            )
        self._set("eps", check_real("eps", self.eps, "[)", high=0.5))
        self._set("perturbation", check_real("perturbation", self.perturbation, "[)", 0, 1))
        self._set("unseen_pass_rate", check_real("unseen_pass_rate", self.unseen_pass_rate, "[]", 0, 1))
        for name in ("success_threshold", "pass_rate_decay"):
            self._set(name, check_real(name, getattr(self, name), "(]", 0, 1))
        for name, low, high in (
            ("capability_window", 1, LARGEST_WINDOW),
            ("pass_rate_window", 1, LARGEST_WINDOW),
            ("capability_bins", 1, 100),
            ("probe_rollouts", 1, LARGEST_BUDGET),
            ("decay_steps", 1, LARGEST_BUDGET),
            ("fallback_steps", 0, LARGEST_BUDGET),
            ("seed", 0, 2**63 - 1),
        ):
            self._set(name, check_int(name, getattr(self, name), low, high))
        budget_min, budget_max = check_bounds(self.budget_min, self.budget_max, lowest=1)
        self._set("budget_min", budget_min)
        self._set("budget_max", budget_max)
        if self.smallest_budget > budget_max:
            raise ValueError(f"probe_rollouts must be <= budget_max, got {self.probe_rollouts} > {budget_max}")
        if self.strategy == "vip":
            self._check_vip()

    def _check_vip(self) -> None:
        lowest = 3 if self.vip_estimator == "dr_grpo" else 2
        if self.smallest_budget < lowest:
            raise ValueError(
                f"budget_min must be >= {lowest} with strategy vip and vip_estimator {self.vip_estimator}: below, its "
                f"variance does not fall with diminishing steps, got {self.budget_min}"
            )

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # a frozen dataclass has no other way, and only until it is built

    @property
    def smallest_budget(self) -> int:
        """Fewest rollouts that any prompt gets: a first wave is part of the budget."""
        return max(self.budget_min, self.probe_rollouts) if self.pass_rate_source == "probe" else self.budget_min

    @property
    def alpha_limit(self) -> float:
        """Upper bound of alpha with the default resolved."""
        return self.kappa - 1 if self.alpha_max is None else self.alpha_max


# Memory per prompt grows with the window; no run has more visits.
LARGEST_WINDOW = 10_000
LARGEST_BUDGET = 10**9


def is_rule_file(strategy: object) -> bool:
    """Whether a strategy is named as ``path/to/rule.py:ClassName``."""
    return isinstance(strategy, str) and ".py:" in strategy
