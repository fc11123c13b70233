"""Settings of an allocator."""

from dataclasses import dataclass
from typing import Literal, get_args

from .checks import check_bounds, check_choice, check_int, check_real
from .solvers import check_solver

StrategyName = Literal["coba", "uniform"]
PassRateSource = Literal["window"]


@dataclass(frozen=True)
class AllocationConfig:
    """Validated on construction; numpy numbers become Python numbers, so that the settings are JSON-able.

    Defaults are the paper's (arXiv 2602.03048). Unless said otherwise a float lies in [1e-9, 1e9].

    Attributes:
        strategy: ``coba`` = capability-oriented budgets; ``uniform`` = the same for every prompt (GRPO).
        tau: Saturation of a budget's value, in rollouts; 7-8 is suggested for long chains of reasoning.
        kappa: alpha + beta of the preference density.
        lambd: Slope of alpha over the transformed failure rate, in [0, 1e9].
        gamma: Steepness of the transform at failure rates below one half, in [0, 1e9].
        alpha_min: Lower bound of alpha.
        alpha_max: Upper bound of alpha, in [alpha_min, kappa); None is kappa - 1.
        capability_window: Steps averaged into the failure rate, >= 1.
        eps: Pass rates are clipped to [eps, 1 - eps]; in [1e-9, 0.5).
        budget_min: Fewest rollouts of a prompt, >= 1 (a group needs 2 to carry any signal).
        budget_max: Most rollouts of a prompt, >= budget_min.
        pass_rate_source: ``window`` = successes / rollouts over a prompt's last visits.
        pass_rate_window: Visits remembered per prompt, >= 1.
        unseen_pass_rate: Estimate for a prompt without history, in [0, 1].
        success_threshold: A score of at least this counts as a success, in (0, 1].
        solver: ``heap`` = exact greedy.

    Raises:
        ValueError: A value is out of its range or of another type.
    """

    strategy: StrategyName = "coba"
    tau: float = 5.0
    kappa: float = 11.0
    lambd: float = 8.0
    gamma: float = 10.0
    alpha_min: float = 1.0
    alpha_max: float | None = None
    capability_window: int = 10
    eps: float = 0.01
    budget_min: int = 2
    budget_max: int = 128
    pass_rate_source: PassRateSource = "window"
    pass_rate_window: int = 3
    unseen_pass_rate: float = 0.5
    success_threshold: float = 1.0
    solver: str = "heap"

    def __post_init__(self) -> None:
        check_choice("strategy", self.strategy, get_args(StrategyName))
        check_choice("pass_rate_source", self.pass_rate_source, get_args(PassRateSource))
        check_solver(self.solver)
        for name in ("tau", "kappa", "alpha_min"):
            self._set(name, check_real(name, getattr(self, name), "[]"))
        for name in ("lambd", "gamma"):
            self._set(name, check_real(name, getattr(self, name), "[]", 0))
        if self.alpha_max is not None:
            self._set("alpha_max", check_real("alpha_max", self.alpha_max, "[]"))
        if not self.alpha_min <= self.alpha_limit < self.kappa:
            raise ValueError(
                "alpha_max must be in [alpha_min, kappa), as alpha and beta = kappa - alpha must be positive, "
                f"got {self.alpha_limit} with alpha_min = {self.alpha_min}, kappa = {self.kappa}"
            )
        self._set("eps", check_real("eps", self.eps, "[)", high=0.5))
        self._set("unseen_pass_rate", check_real("unseen_pass_rate", self.unseen_pass_rate, "[]", 0, 1))
        self._set("success_threshold", check_real("success_threshold", self.success_threshold, "(]", 0, 1))
        for name in ("capability_window", "pass_rate_window"):
            self._set(name, check_int(name, getattr(self, name), 1))
        budget_min, budget_max = check_bounds(self.budget_min, self.budget_max, lowest=1)
        self._set("budget_min", budget_min)
        self._set("budget_max", budget_max)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)  # a frozen dataclass has no other way, and only until it is built

    @property
    def alpha_limit(self) -> float:
        """Upper bound of alpha with the default resolved."""
        return self.kappa - 1 if self.alpha_max is None else self.alpha_max
