"""The allocator of a training run: it learns from scored rollouts and sets the budgets of the next batch."""

# Legend: P = prompts of one call, R = rollouts of one step.

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .calibration import expected_calibration_error
from .capability import CapabilityWindow
from .checks import check_keys, check_prompt_ids, check_total
from .config import AllocationConfig
from .observation import count_outcomes
from .pass_rate import PromptId, WindowPassRate
from .strategies import STRATEGIES
from .types import Allocation

STATE_VERSION = 1


class Allocator:
    """Budgets for every step of a run.

        allocate(ids, total)  ──> budgets ──> (generate, score) ──> observe(ids, scores)
              ^   pass rates per prompt, capability of the policy          │
              └────────────────────────────────────────────────────────────┘

    Deterministic: the same calls give the same budgets, also after ``state_dict`` went through JSON.

    Example:
        >>> allocator = Allocator(AllocationConfig())
        >>> allocator.allocate(["a", "b"], 8).budget_P
        array([4, 4])
        >>> allocator.observe(["a"] * 4 + ["b"] * 4, [1, 1, 1, 1, 0, 0, 0, 1])
        >>> allocator.allocate(["a", "b"], 8).budget_P
        array([2, 6])
    """

    def __init__(self, config: AllocationConfig) -> None:
        self._config = config
        self._capability = self._new_capability()
        self._pass_rate = self._new_pass_rate()
        self._allocation_metrics: dict[str, float] = {}
        self._observation_metrics: dict[str, float] = {}

    def _new_capability(self) -> CapabilityWindow:
        config = self._config
        return CapabilityWindow(
            config.capability_window,
            kappa=config.kappa,
            lambd=config.lambd,
            gamma=config.gamma,
            alpha_min=config.alpha_min,
            alpha_max=config.alpha_limit,
        )

    def _new_pass_rate(self) -> WindowPassRate:
        return WindowPassRate(self._config.pass_rate_window, self._config.unseen_pass_rate)

    def allocate(self, prompt_ids: Iterable[PromptId], total_budget: int) -> Allocation:
        """Budgets of one batch, from what has been observed so far.

        Args:
            prompt_ids: ``[P]``, str or int, without repetition, P >= 1.
            total_budget: Rollouts of the batch, in [P * budget_min, P * budget_max].

        Raises:
            ValueError: An argument breaks its rule; the message names argument, rule and value.
        """
        ids = check_prompt_ids(prompt_ids)
        if len(set(ids)) < len(ids):
            prompt_id, count = Counter(ids).most_common(1)[0]
            raise ValueError(f"prompt_ids must be unique within one allocation, got {prompt_id!r} {count} times")
        total = check_total(total_budget, len(ids), self._config.budget_min, self._config.budget_max)
        pass_rate_P, seen_P = self._pass_rate.estimate(ids)
        allocation = STRATEGIES[self._config.strategy](pass_rate_P, self._capability, total, self._config)
        self._allocation_metrics = {
            "budget_min": int(allocation.budget_P.min()),
            "budget_mean": float(allocation.budget_P.mean()),
            "budget_max": int(allocation.budget_P.max()),
            "budget_gini": allocation.gini,
            "unseen_rate": float(np.mean(~seen_P)),
            "solve_seconds": allocation.solve_seconds,
        }
        if not isnan(allocation.shadow_price):
            self._allocation_metrics["shadow_price"] = allocation.shadow_price
        return allocation

    def observe(self, prompt_ids: Iterable[PromptId], scores: ArrayLike) -> None:
        """Learn from the scored rollouts of one step, one row each.

        Args:
            prompt_ids: ``[R]``, str or int, repeated for a prompt's further rollouts, R >= 1.
            scores: ``[R]``, in [0, 1]; a score of at least ``success_threshold`` is a success.

        Raises:
            ValueError: Empty, of different lengths, or an entry of wrong type or range. Nothing has changed then.
        """
        observed = count_outcomes(prompt_ids, scores, self._config.success_threshold)
        predicted_P, _ = self._pass_rate.estimate(observed.prompt_ids)
        self._observation_metrics = {
            "effective_group_rate": observed.effective_group_rate,
            "all_correct_rate": observed.all_correct_rate,
            "all_wrong_rate": observed.all_wrong_rate,
            "calibration_error": expected_calibration_error(predicted_P, observed.successes_P, observed.rollouts_P),
        }
        self._capability.observe(observed.failure_rate)
        self._pass_rate.update(observed.prompt_ids, observed.successes_P, observed.rollouts_P)

    def metrics(self) -> dict[str, float]:
        """Numbers of the last ``allocate`` and the last ``observe``; what is not known yet is absent.

        ``alpha`` and ``beta`` (strategy ``coba`` only) follow from ``failure_rate_smoothed``: the next allocation
        uses them. ``unseen_rate`` is the share of allocated prompts without history; the group rates are shares
        of observed prompts and add up to 1; ``calibration_error`` compares the estimates before the update with
        what happened. ``shadow_price`` is absent where ``Allocation.shadow_price`` is NaN.
        """
        metrics = {**self._allocation_metrics, **self._observation_metrics}
        if self._config.strategy == "coba":
            metrics["alpha"] = self._capability.alpha
            metrics["beta"] = self._capability.beta
        if self._capability.failure_rate is not None:
            metrics["failure_rate"] = self._capability.failure_rate
            metrics["failure_rate_smoothed"] = self._capability.failure_rate_smoothed
        return metrics

    def warm_up(self) -> None:
        """Compile the kernels of the strategy now (seconds), so that no step of a run waits for them."""
        config = self._config
        total = min(2 * config.budget_min + 1, 2 * config.budget_max)
        STRATEGIES[config.strategy](np.array([0.25, 0.5]), self._capability, total, config)

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state; the metrics of the last calls are not part of it."""
        return {
            "version": STATE_VERSION,
            "config": asdict(self._config),
            "capability": self._capability.state_dict(),
            "pass_rate": self._pass_rate.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``, also after JSON.

        Raises:
            ValueError: A key is missing, or the state has another version or comes from another configuration.
                Nothing has changed then.
        """
        check_keys("allocator state", state, ("version",))
        if state["version"] != STATE_VERSION:
            raise ValueError(f"allocator state must have version {STATE_VERSION}, got {state['version']!r}")
        check_keys("allocator state", state, ("version", "config", "capability", "pass_rate"))
        saved, current = state["config"], asdict(self._config)
        check_keys("allocator state config", saved, current)
        changed = [f"{name}: {saved[name]!r} -> {current[name]!r}" for name in current if saved[name] != current[name]]
        if changed:
            raise ValueError(
                f"allocator state must come from the same configuration, got changes in {'; '.join(changed)}"
            )
        capability, pass_rate = self._new_capability(), self._new_pass_rate()
        capability.load_state_dict(state["capability"])
        pass_rate.load_state_dict(state["pass_rate"])
        self._capability, self._pass_rate = capability, pass_rate
        self._allocation_metrics, self._observation_metrics = {}, {}
