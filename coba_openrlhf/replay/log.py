"""What a run has logged about its budgets, step by step."""

# Legend: P = prompts of a step.

import functools
import itertools
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
from numpy.typing import NDArray

from .belief import Belief, compute_beliefs
from .error import ReplayError
from .logged_step import LoggedStep

NEEDED = ("step", "prompt_id", "pass_rate", "budget", "scored", "successes", "tokens")
# Of sums of graded scores.
_ROUNDING = 1e-9
# Not in the logs of 0.1.0.
NEWER = ("seen", "wave_scored", "wave_successes", "mixed", "scored_tokens")


@dataclass(frozen=True, eq=False)
class Log:
    """All steps of a run.

    Attributes:
        steps: By number.
        missing: Columns that an older version did not log, filled with what can be known.
    """

    steps: list[LoggedStep]
    missing: list[str]

    @functools.cached_property
    def beliefs(self) -> list[Belief]:
        """What the whole log says about the pass rates of each step."""
        return compute_beliefs(self.steps)

    @property
    def is_contiguous(self) -> bool:
        """Whether no step is missing between the first and the last."""
        return self.steps[-1].step - self.steps[0].step + 1 == len(self.steps)


def read_log(run: Path) -> Log:
    """Read ``allocations.parquet/``.

    Raises:
        ReplayError: No such folder, no step in it, or a file that is damaged or holds what cannot be.
    """
    folder = run / "allocations.parquet"
    if not folder.is_dir():
        raise ReplayError(f"{run} is not the folder of a run: it has no folder allocations.parquet")
    files = sorted(folder.glob("step-*.parquet"))
    if not files:
        raise ReplayError(f"{run} has no finished training step yet")
    steps: list[LoggedStep] = []
    missing: set[str] = set()
    known: set[str] = set()
    for file in files:
        columns = _read_columns(file)
        missing |= set(NEWER) - columns.keys()
        step = _to_step(file, columns, known)
        known.update(prompt_id for prompt_id, n in zip(step.prompt_ids, step.scored_P, strict=True) if n)
        steps.append(step)
    steps.sort(key=lambda step: step.step)
    for before, after in itertools.pairwise(steps):
        if before.step == after.step:
            raise ReplayError(f"{folder}: must have one file per step, got two of step {after.step}")
    return Log(steps, [name for name in NEWER if name in missing])


def _read_columns(file: Path) -> dict[str, NDArray]:
    try:
        table = pyarrow.parquet.ParquetFile(file).read()
        columns = {name: table[name].to_numpy() for name in table.column_names}
    except (pyarrow.ArrowException, OSError) as error:
        raise ReplayError(f"{file} is damaged: {' '.join(str(error).split())}") from error
    for name in NEEDED:
        if name not in columns:
            raise ReplayError(f"{file}: must have the column {name!r}")
    for name in (*NEEDED, *NEWER):
        if name in columns and table[name].null_count:
            raise ReplayError(f"{file}: must have the column {name!r} without gaps")
    if not table.num_rows:
        raise ReplayError(f"{file}: must have at least one row")
    return columns


def _to_step(file: Path, columns: dict[str, NDArray], known: set[str]) -> LoggedStep:
    """The step of a file; ``known`` are the prompts scored before it."""
    prompt_ids = columns["prompt_id"].tolist()

    def floats(name: str, default: NDArray) -> NDArray[np.float64]:
        try:
            return np.asarray(columns.get(name, default), np.float64)
        except (TypeError, ValueError) as error:
            raise ReplayError(f"{file}: column {name!r} must hold numbers") from error

    nothing_P = np.zeros(len(prompt_ids))
    budget_P, scored_P, success_P, tokens_P, number_P = (
        floats(name, nothing_P) for name in ("budget", "scored", "successes", "tokens", "step")
    )
    wave_scored_P, wave_success_P = floats("wave_scored", nothing_P), floats("wave_successes", nothing_P)
    scored_tokens_P = floats("scored_tokens", tokens_P * scored_P / np.maximum(budget_P, 1))
    pass_rate_P, version_P = floats("pass_rate", nothing_P), floats("policy_version", number_P - 1)
    mixed_P = np.asarray(columns.get("mixed", (success_P > 0) & (success_P < scored_P)), np.bool_)
    for rule, holds_P in (
        ("budget >= 1", budget_P >= 1),
        ("0 <= successes <= scored <= budget", _ascending(nothing_P, success_P, scored_P, budget_P)),
        (
            "0 <= wave_successes <= wave_scored <= scored",
            _ascending(nothing_P, wave_success_P, wave_scored_P, scored_P),
        ),
        (
            "0 <= successes - wave_successes <= scored - wave_scored",
            _ascending(nothing_P, success_P - wave_success_P, scored_P - wave_scored_P + _ROUNDING),
        ),
        ("mixed only with 0 < successes < scored", ~mixed_P | ((success_P > 0) & (success_P < scored_P))),
        ("0 <= pass_rate <= 1", _ascending(nothing_P, pass_rate_P, nothing_P + 1)),
        ("tokens >= 0", np.isfinite(tokens_P) & (tokens_P >= 0)),
        ("scored_tokens >= 0", np.isfinite(scored_tokens_P) & (scored_tokens_P >= 0)),
        ("policy_version >= 0", np.isfinite(version_P) & (version_P >= 0)),
        ("one step per file", number_P == number_P[0]),
        ("step >= 1", number_P >= 1),
    ):
        if not holds_P.all():
            raise ReplayError(f"{file}: must have {rule}, not so in row {int(np.argmin(holds_P))}")
    if len(set(prompt_ids)) < len(prompt_ids):
        raise ReplayError(f"{file}: must have every prompt_id once")
    return LoggedStep(
        step=int(number_P[0]),
        policy_version=int(version_P[0]),
        prompt_ids=prompt_ids,
        pass_rate_P=pass_rate_P,
        seen_P=np.asarray(columns.get("seen", np.array([i in known for i in prompt_ids])), np.bool_),
        budget_P=budget_P.astype(np.int64),
        wave_scored_P=wave_scored_P,
        wave_success_P=wave_success_P,
        scored_P=scored_P,
        success_P=success_P,
        mixed_P=mixed_P,
        tokens_P=tokens_P,
        scored_tokens_P=scored_tokens_P,
    )


def _ascending(*values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Where each value is at most the next; never with NaN."""
    return np.logical_and.reduce([low <= high for low, high in itertools.pairwise(values)])
