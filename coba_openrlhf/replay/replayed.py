"""The steps of a log, allocated again."""

# Legend: P = prompts of a step, S = steps of the log.

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coba_openrlhf.allocation import Allocator
from coba_openrlhf.allocation.calibration import calibrate
from coba_openrlhf.config.rules import name_options

from .belief import Belief
from .error import ReplayError
from .log import Log
from .logged_step import LoggedStep
from .rule import Rule
from .signal import chance_of_signal

AS_RUN = "as run"
CALIBRATION = ("brier", "brier_seen", "brier_prior", "calibration_error")
# Of each rule and step, in the order of replay.csv.
COLUMNS = (
    "prompts", "total_budget", "signal", "extrapolated", "gradient_rollouts", "gradient_share", "entropy", "largest",
    *CALIBRATION, "tokens", "tokens_per_gradient_rollout", "fallback",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Replayed:
    """What one rule does with the steps of a log.

    Attributes:
        label: Name of the rule.
        options: What differs from the run's own settings, as typed.
        budgets: int64 ``[P]`` per step.
        pass_rates: float64 ``[P]`` per step, the estimates behind the budgets.
        seen: bool ``[P]`` per step, whether they rest on a history or a first wave.
        columns: ``COLUMNS``, each float64 ``[S]``; NaN where a number is not known.
        warnings: What the allocator warned of, each text once.
    """

    label: str
    options: dict[str, str]
    budgets: list[NDArray[np.int64]]
    pass_rates: list[NDArray[np.float64]]
    seen: list[NDArray[np.bool_]]
    columns: dict[str, NDArray[np.float64]]
    warnings: list[str]

    def means(self) -> dict[str, float]:
        """Means over the steps that have the number; NaN where none has it.

        Tokens per gradient-carrying rollout are those of the whole log: a step without any would count as infinite.
        """
        means = {}
        for name, value_S in self.columns.items():
            value_S = value_S[np.isfinite(value_S)]
            means[name] = float(value_S.mean()) if value_S.size else np.nan
        gradient = means["gradient_rollouts"]
        means["tokens_per_gradient_rollout"] = means["tokens"] / gradient if gradient > 0 else np.nan
        return means


def replay(rule: Rule, log: Log) -> Replayed:
    """Budgets of ``rule`` for every step, from the outcomes of the steps before it.

    The log's outcomes are observed whatever the rule: those of its own budgets, and of the policy that they would
    have trained, are not known.

    Raises:
        ReplayError: The rule cannot be used, or a batch has no budgets within its bounds.
    """
    budgets, pass_rates, seen, rows = [], [], [], []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            allocator = Allocator(rule.config)
        except ValueError as error:
            raise ReplayError(f"{rule.label}: {name_options(str(error))}") from error
        has_waves = rule.config.pass_rate_source == "probe"
        for step, belief in zip(log.steps, log.beliefs, strict=True):
            try:
                allocation = allocator.allocate(
                    step.prompt_ids, step.total_budget, probe=step.first_wave() if has_waves else None
                )
            except ValueError as error:
                raise ReplayError(f"{rule.label}: step {step.step}: {name_options(str(error))}") from error
            assert allocation.estimates is not None, "an Allocator says what it believed"
            is_fallback = allocator.metrics()["fallback"]
            calibration: dict[str, float] = {}
            observation = step.observation()
            if observation is not None:
                allocator.observe_counts(observation, step.policy_version)
                calibration = allocator.metrics()
            budgets.append(allocation.budget_P)
            pass_rates.append(allocation.pass_rate_P)
            seen.append(allocation.estimates.seen_P | (has_waves & (step.wave_scored_P > 0)))
            rows.append({**_measure(step, belief, allocation.budget_P), **_pick(calibration), "fallback": is_fallback})
    texts = dict.fromkeys(name_options(str(warning.message)) for warning in caught)
    return Replayed(rule.label, rule.options, budgets, pass_rates, seen, _to_columns(rows), list(texts))


def replay_log(log: Log, own: Replayed | None) -> Replayed:
    """The logged budgets, measured like those of a rule.

    Args:
        log: The log.
        own: The run's own settings replayed, for what the log lacks: how well the plain mean of earlier outcomes
            predicted, and whether the allocator had fallen back to uniform budgets.
    """
    rows = []
    for index, (step, belief) in enumerate(zip(log.steps, log.beliefs, strict=True)):
        # An estimate that contains a first wave is judged by the second only.
        scored_P = step.scored_P - step.wave_scored_P
        success_P = np.clip(step.success_P - step.wave_success_P, 0, scored_P)
        row = _measure(step, belief, step.budget_P) | {"fallback": np.nan}
        for name, among_P in (("brier", scored_P > 0), ("brier_seen", (scored_P > 0) & step.known_P)):
            if among_P.any():
                calibration = calibrate(step.pass_rate_P[among_P], success_P[among_P], scored_P[among_P])
                row[name] = calibration.brier
                if name == "brier":
                    row["calibration_error"] = calibration.expected_error
        if own is not None:
            row["brier_prior"] = float(own.columns["brier_prior"][index])
            if np.array_equal(own.budgets[index], step.budget_P):
                row["fallback"] = float(own.columns["fallback"][index])
        rows.append(row)
    budgets, pass_rates = [step.budget_P for step in log.steps], [step.pass_rate_P for step in log.steps]
    return Replayed(AS_RUN, {}, budgets, pass_rates, [step.known_P for step in log.steps], _to_columns(rows), [])


def _measure(step: LoggedStep, belief: Belief, budget_P: NDArray[np.int64]) -> dict[str, float]:
    """What budgets would have brought, by the outcomes of the log."""
    # As many of a prompt's rollouts can be scored as could be in the log.
    size_P = np.rint(budget_P * step.scored_P / step.budget_P)
    chance_P, extrapolated_P = chance_of_signal(step, belief, size_P)
    total, num_prompts = step.total_budget, len(budget_P)
    gradient = float(size_P @ chance_P)
    tokens = float(budget_P @ (step.tokens_P / step.budget_P))
    share_P = budget_P / total
    entropy = -float(share_P @ np.log(share_P)) / np.log(num_prompts) if num_prompts > 1 else 1.0
    return {
        "prompts": num_prompts,
        "total_budget": total,
        "signal": float(chance_P.mean()),
        "extrapolated": float(extrapolated_P.mean()),
        "gradient_rollouts": gradient,
        "gradient_share": gradient / total,
        "entropy": min(entropy, 1.0),
        "largest": int(budget_P.max()),
        "tokens": tokens,
        "tokens_per_gradient_rollout": tokens / gradient if gradient > 0 else np.nan,
    }


def _pick(metrics: dict[str, float]) -> dict[str, float]:
    return {name: metrics[name] for name in CALIBRATION if name in metrics}


def _to_columns(rows: list[dict[str, float]]) -> dict[str, NDArray[np.float64]]:
    return {name: np.array([row.get(name, np.nan) for row in rows], np.float64) for name in COLUMNS}
