"""The allocator of a training run: it learns from scored rollouts and sets the budgets of the next batch."""

# Legend: P = prompts of one call, R = rollouts of one step, B = bins of the predicted pass rate.

import warnings
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import isnan
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .calibration import brier_score, calibrate
from .capability import CapabilityWindow
from .checks import check_column, check_int, check_keys, check_prompt_ids, check_saved_ids, check_total
from .concentration import concentration_warning
from .config import AllocationConfig
from .data_change import DataChange, compare_data
from .estimates import PromptId, make_history
from .first_waves import FirstWaves
from .guard import EstimateGuard
from .observation import Observation, count_outcomes
from .problem import Estimates, Problem
from .strategies import STRATEGIES, make_strategy, saved_settings
from .types import Allocation

STATE_VERSION = 2


class Allocator:
    """Budgets for every step of a run.

        allocate(ids, total)  ──> budgets ──> (generate, score) ──> observe(ids, scores)
              ^   pass rates per prompt, capability of the policy          │
              └────────────────────────────────────────────────────────────┘

    With ``pass_rate_source="probe"`` a step has two waves: generate and score ``probe_rollouts`` of every prompt, call
    ``allocate(ids, total, probe=(ids, scores))``, generate what the budgets have beyond the first wave, and
    ``observe`` both waves together.

    Deterministic: the same calls give the same budgets, also after ``state_dict`` went through JSON.

    Args:
        config: Settings.

    Raises:
        ValueError: ``config`` is no ``AllocationConfig``, or names a rule file that cannot be used.

    Example:
        >>> allocator = Allocator(AllocationConfig(budget_max=6))
        >>> allocator.allocate(["a", "b", "c", "d", "e"], 40).budget_P
        array([6, 6, 6, 6, 6])
    """

    def __init__(self, config: AllocationConfig) -> None:
        if not isinstance(config, AllocationConfig):
            raise ValueError(f"config must be an AllocationConfig, got {config!r}")
        self._config = config
        self._strategy = make_strategy(config)
        # Now, not when the state is saved: a rule file may have been edited or removed by then.
        self._saved_settings = saved_settings(config)
        self._uniform = STRATEGIES["uniform"](config)
        self._reset()
        self._allocation_metrics: dict[str, float] = {}
        self._observation_metrics: dict[str, float] = {}

    def _reset(self) -> None:
        config = self._config
        self._capability = CapabilityWindow(config.capability_window, config.capability_bins)
        self._history = make_history(config)
        self._guard = EstimateGuard(config.fallback_steps)
        self._waves = FirstWaves()
        self._data_ids: list[PromptId] | None = None
        self._step = 0
        self._policy_version = 0

    def allocate(
        self,
        prompt_ids: Iterable[PromptId],
        total_budget: int,
        *,
        probe: tuple[Iterable[PromptId], ArrayLike] | None = None,
        gradient_norms: ArrayLike | None = None,
    ) -> Allocation:
        """Budgets of one batch, from what has been observed so far.

        Args:
            prompt_ids: ``[P]``, str or int, without repetition, P >= 1.
            total_budget: Rollouts of the batch, in [P * budget_min, P * budget_max]; with ``pass_rate_source`` probe
                the minimum is at least ``probe_rollouts``, because budgets include the first wave.
            probe: Prompt ids and scores, as for ``observe``, of a first wave of these prompts.
            gradient_norms: ``[P]``, >= 0, how long the policy gradient of a rollout of each prompt is, for the rules
                that use it (``vip``, ``gvm``).

        Raises:
            ValueError: An argument breaks its rule; the message names argument, rule and value.
        """
        config = self._config
        ids = check_prompt_ids(prompt_ids)
        if len(set(ids)) < len(ids):
            prompt_id, count = Counter(ids).most_common(1)[0]
            raise ValueError(f"prompt_ids must be unique within one allocation, got {prompt_id!r} {count} times")
        lowest = config.smallest_budget
        min_name = "budget_min" if lowest == config.budget_min else "probe_rollouts"
        total = check_total(total_budget, len(ids), lowest, config.budget_max, min_name)
        norm_P = np.ones(len(ids))
        if gradient_norms is not None:
            norm_P = check_column("gradient_norms", gradient_norms, len(ids), "prompt id", zero=True)
        wave = None if probe is None else self._count_wave(ids, probe)
        warning = concentration_warning(total, lowest, len(ids), config.budget_max)
        if warning:
            warnings.warn(warning, stacklevel=2)

        started = perf_counter()
        problem = self._problem(ids, total, wave, norm_P)
        strategy = self._uniform if self._guard.active else self._strategy
        answer = strategy.allocate(problem)
        solve_seconds = perf_counter() - started
        budget_P, shadow_price = self._check_answer(answer, problem)
        allocation = Allocation(
            budget_P, shadow_price, solve_seconds, problem.estimates.pass_rate_P,
            problem.estimates,
        )  # fmt: skip
        self._step += 1
        if wave is not None:
            self._waves.remember(ids, *wave, problem.estimates.pass_rate_P)
        self._allocation_metrics = {
            **_budget_metrics(allocation),
            "unseen_rate": float(np.mean(~problem.estimates.seen_P)),
            "fallback": float(self._guard.active),
            **strategy.metrics(problem),
        }
        return allocation

    def estimate(self, prompt_ids: Iterable[PromptId]) -> Estimates:
        """What is believed about prompts now, without allocating anything: for choosing which ones
        enter a step (``PromptRevisits``).

        Args:
            prompt_ids: ``[P]``, str or int, P >= 1.

        Raises:
            ValueError: Ids of a wrong type, or none.
        """
        return self._history.estimate(check_prompt_ids(prompt_ids), self._prior, self._policy_version, None)

    @property
    def visited(self) -> list[PromptId]:
        """Every prompt that was ever observed, in the order of the first time."""
        return self._history.prompt_ids

    def _count_wave(
        self, ids: list[PromptId], probe: tuple[Iterable[PromptId], ArrayLike]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Successes and rollouts of a first wave, both ``[P]``; 0 of 0 for a prompt none of whose could be scored."""
        if not isinstance(probe, tuple | list) or len(probe) != 2 or isinstance(probe[0], str):
            raise ValueError(f"probe must be prompt ids and scores, got {probe!r}")
        success_P, rollouts_P = np.zeros(len(ids)), np.zeros(len(ids))
        wave_ids, scores = list(probe[0]), probe[1]
        if not wave_ids and not np.size(scores):
            return success_P, rollouts_P
        if not wave_ids:
            raise ValueError(f"scores must have one entry per prompt id, got {np.size(scores)} scores for 0 ids")
        observed = count_outcomes(wave_ids, scores, self._config)
        index_of = {prompt_id: index for index, prompt_id in enumerate(ids)}
        unknown = [prompt_id for prompt_id in observed.prompt_ids if prompt_id not in index_of]
        if unknown:
            raise ValueError(f"probe must be of the prompts of this batch, got {unknown[0]!r}")
        index = [index_of[prompt_id] for prompt_id in observed.prompt_ids]
        success_P[index], rollouts_P[index] = observed.success_P, observed.rollouts_P
        lowest = self._config.smallest_budget
        if rollouts_P.max() > lowest:
            prompt_id = ids[int(rollouts_P.argmax())]
            raise ValueError(
                f"probe must have at most {lowest} rollouts per prompt (the smallest budget), "
                f"got {int(rollouts_P.max())} for {prompt_id!r}"
            )
        return success_P, rollouts_P

    def _problem(
        self,
        ids: list[PromptId],
        total: int,
        wave: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
        gradient_norm_P: NDArray[np.float64],
    ) -> Problem:
        estimates = self._history.estimate(ids, self._prior, self._policy_version, wave)
        last_rate = self._capability.failure_rate
        smoothed = self._capability.failure_rate_smoothed
        return Problem(
            estimates=estimates,
            total_budget=total,
            budget_min=self._config.smallest_budget,
            budget_max=self._config.budget_max,
            failure_rate=smoothed if last_rate is None else last_rate,
            failure_rate_smoothed=smoothed,
            failure_rate_P=self._capability.failure_rate_of(estimates.pass_rate_P),
            step=self._step,
            gradient_norm_P=gradient_norm_P,
        )

    @property
    def _prior(self) -> float:
        """Pass rate of a prompt nobody knows: the policy's success rate lately."""
        if self._capability.failure_rate is None:
            return self._config.unseen_pass_rate
        return 1 - self._capability.failure_rate_smoothed

    def _check_answer(self, answer: object, problem: Problem) -> tuple[NDArray[np.int64], float]:
        """Rules of the user's own can be wrong; those that ship are held to the same.

        Raises:
            ValueError: No budgets with a price, not one whole number per prompt, out of bounds, or of another sum.
        """
        rule = f"strategy {self._config.strategy}"
        if not isinstance(answer, tuple) or len(answer) != 2 or not isinstance(answer[1], int | float | np.number):
            raise ValueError(f"{rule} must return (budget_P, shadow_price), the price a number or NaN, got {answer!r}")
        array = np.asarray(answer[0])
        if array.shape != (len(problem),) or array.dtype.kind not in "iu":
            raise ValueError(
                f"{rule} must return {len(problem)} integers, got dtype {array.dtype} and shape {array.shape}"
            )
        low, high = int(array.min()), int(array.max())
        if low < problem.budget_min or high > problem.budget_max:
            raise ValueError(
                f"{rule} must return budgets in [{problem.budget_min}, {problem.budget_max}], got {low} .. {high}"
            )
        if int(array.sum()) != problem.total_budget:
            raise ValueError(f"{rule} must return a sum of {problem.total_budget}, got {int(array.sum())}")
        return array.astype(np.int64), float(answer[1])

    def observe(
        self,
        prompt_ids: Iterable[PromptId],
        scores: ArrayLike,
        *,
        num_tokens: ArrayLike | None = None,
        policy_version: int | None = None,
    ) -> None:
        """Learn from the scored rollouts of one step, one row each.

        Args:
            prompt_ids: ``[R]``, str or int, repeated for a prompt's further rollouts, R >= 1.
            scores: ``[R]``, in [0, 1]; ``success_rule`` says what they mean.
            num_tokens: ``[R]``, > 0, tokens of the responses (``duet`` needs them).
            policy_version: Of the policy that generated, >= 0; by default one more with every call. The next
                allocation is taken to be for the version after the newest.

        Raises:
            ValueError: Empty, of different lengths, or an entry of wrong type or range. Nothing has changed then.
        """
        observed = count_outcomes(prompt_ids, scores, self._config, num_tokens)
        version = self._policy_version if policy_version is None else check_int("policy_version", policy_version, 0)
        self.observe_counts(observed, version)

    def observe_counts(self, observed: Observation, policy_version: int) -> None:
        """``observe`` for outcomes that are counted and checked already."""
        estimates = self._history.estimate(observed.prompt_ids, self._prior, policy_version)
        predicted_P, success_P, rollouts_P, known_P = self._waves.take(
            observed, estimates.pass_rate_P, estimates.seen_P
        )
        rows, changed = rollouts_P > 0, False
        self._observation_metrics = observed.metrics()
        if rows.any():
            calibration = calibrate(predicted_P[rows], success_P[rows], rollouts_P[rows])
            self._observation_metrics |= calibration.metrics()
        rows &= known_P
        if rows.any():
            brier = brier_score(predicted_P[rows], success_P[rows], rollouts_P[rows])
            prior_brier = brier_score(np.full(int(rows.sum()), self._prior), success_P[rows], rollouts_P[rows])
            self._observation_metrics |= {"brier_seen": brier, "brier_prior": prior_brier}
            changed = self._guard.observe(brier, prior_brier)
        self._capability.observe(estimates.pass_rate_P, observed.pass_rate_P)
        self._history.update(
            observed.prompt_ids, observed.success_P, observed.rollouts_P, observed.num_tokens_P, policy_version
        )
        self._policy_version = max(self._policy_version, policy_version + 1)
        if changed:
            # Last: with warnings as errors, the step has been learnt from all the same.
            warnings.warn(self._guard.message(brier, prior_brier), stacklevel=3)

    def metrics(self) -> dict[str, float]:
        """Numbers of the last ``allocate`` and the last ``observe``; what is not known is absent.

        Of ``allocate``: ``budget_*``, ``solve_seconds``, ``shadow_price`` (absent where it is NaN), ``unseen_rate``
        (share of prompts without history), ``fallback`` (1 while budgets are uniform because estimates were worse
        than the prior), and the rule's own, such as ``alpha``, ``beta`` and ``tau``.

        Of ``observe``: the failure rates, shares of groups by outcome, and how well the estimates from before the
        update predicted it: ``calibration_error``, ``brier``, in ten bins ``reliability_predicted_<b>`` and
        ``reliability_realised_<b>``, and over prompts with a history ``brier_seen`` against ``brier_prior``, that of
        the plain mean.
        """
        metrics = {**self._allocation_metrics, **self._observation_metrics}
        if self._capability.failure_rate is not None:
            metrics["failure_rate"] = self._capability.failure_rate
            metrics["failure_rate_smoothed"] = self._capability.failure_rate_smoothed
        return metrics

    def set_data(self, prompt_ids: Iterable[PromptId]) -> DataChange:
        """Tell which prompts the data set has now, in its order; nothing else needs to be called before.

        Prompts that are gone are forgotten. An edited row has a new id (ids are hashes of the content), and starts
        without history, because what is known about the old text may not hold for the new one.

        Args:
            prompt_ids: All rows of the data set, without repetition.

        Returns:
            What has changed since the last call; nothing if there was none.

        Raises:
            ValueError: Ids of a wrong type, repeated, or none.
        """
        ids = check_prompt_ids(prompt_ids)
        if len(set(ids)) < len(ids):
            raise ValueError(f"prompt_ids must be unique, got {Counter(ids).most_common(1)[0][0]!r} repeatedly")
        change = compare_data(ids if self._data_ids is None else self._data_ids, ids)
        self._data_ids = ids
        if change:
            self._history.keep(ids)
        return change

    def warm_up(self) -> None:
        """Compile the kernels now (seconds), so that no step of a run waits for them."""
        lowest = self._config.smallest_budget
        ids: list[PromptId] = list(range(512))
        # Few rollouts for the heap, many for the threshold solver, also where no prompt can have more than one extra.
        # A first wave in which half succeeded: a batch that is unseen may not be worth a solver to the rule.
        wave = np.ones(len(ids)), np.full(len(ids), 2.0)
        for extra in (8, 256):
            total = min(lowest * len(ids) + extra, self._config.budget_max * len(ids))
            problem = self._problem(ids, total, wave, np.ones(len(ids)))
            seen = replace(problem.estimates, seen_P=np.ones(len(ids), np.bool_))
            self._strategy.allocate(replace(problem, estimates=seen))

    def state_dict(self) -> dict[str, Any]:
        """JSON-able state; the metrics of the last calls are not part of it."""
        return {
            "version": STATE_VERSION,
            "config": dict(self._saved_settings),
            "step": self._step,
            "policy_version": self._policy_version,
            "capability": self._capability.state_dict(),
            "pass_rate": self._history.state_dict(),
            "guard": self._guard.state_dict(),
            "first_waves": self._waves.state_dict(),
            "data_ids": self._data_ids,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``, also after JSON.

        Raises:
            ValueError: A key is missing, a value cannot be, or the state has another version or comes from another
                configuration. Nothing has changed then.
        """
        check_keys("allocator state", state, ("version",))
        if state["version"] != STATE_VERSION:
            raise ValueError(f"allocator state must have version {STATE_VERSION}, got {state['version']!r}")
        loaded = Allocator(self._config)
        check_keys("allocator state", state, loaded.state_dict())
        saved, current = state["config"], loaded._saved_settings
        check_keys("allocator state config", saved, current)
        changed = [f"{name}: {saved[name]!r} -> {current[name]!r}" for name in current if saved[name] != current[name]]
        if changed:
            raise ValueError(
                f"allocator state must come from the same configuration, got changes in {'; '.join(changed)}"
            )
        loaded._step = check_int("allocator state step", state["step"], 0)
        loaded._policy_version = check_int("allocator state policy_version", state["policy_version"], 0)
        loaded._capability.load_state_dict(state["capability"])
        loaded._history.load_state_dict(state["pass_rate"])
        loaded._guard.load_state_dict(state["guard"])
        loaded._waves.load_state_dict(state["first_waves"])
        if state["data_ids"] is not None:
            loaded._data_ids = check_saved_ids("allocator state data_ids", state["data_ids"])
        self.__dict__ = loaded.__dict__


def _budget_metrics(allocation: Allocation) -> dict[str, float]:
    metrics: dict[str, float] = {
        "budget_min": int(allocation.budget_P.min()),
        "budget_mean": float(allocation.budget_P.mean()),
        "budget_max": int(allocation.budget_P.max()),
        "budget_gini": allocation.gini,
        "solve_seconds": allocation.solve_seconds,
    }
    if not isnan(allocation.shadow_price):
        metrics["shadow_price"] = allocation.shadow_price
    return metrics
