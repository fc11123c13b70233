"""The files of a run that other tools read."""

# Legend: P = prompts of a step.

import json
import math
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from coba_openrlhf.allocation import Allocation, AllocationConfig, Observation, count_outcomes

from .rollout_batch import PADDING, RolloutBatch


class RunLog:
    """Writes ``metrics.jsonl`` and ``allocations.parquet/`` of a run folder.

    ``allocations.parquet`` is a folder with one file per step, which every parquet reader opens as one table.
    A step's file appears under its name only when it is complete, so a killed run leaves nothing unreadable.

    Args:
        run_dir: Folder of the run.
        resume_step: Last step that is kept; what a stopped run logged beyond its checkpoint is removed,
            because those steps are about to be repeated.
    """

    def __init__(self, run_dir: str, resume_step: int) -> None:
        self._metrics = Path(run_dir) / "metrics.jsonl"
        self._allocations = Path(run_dir) / "allocations.parquet"
        self._allocations.mkdir(parents=True, exist_ok=True)
        for file in self._allocations.glob("step-*.parquet"):
            if int(file.stem.removeprefix("step-")) > resume_step:
                file.unlink()
        if self._metrics.exists():
            rows = [json.loads(line) for line in self._metrics.read_text().splitlines() if line.endswith("}")]
            kept = [json.dumps(row) + "\n" for row in rows if resume_step and row["step"] <= resume_step]
            self._replace(self._metrics, "".join(kept).encode())

    def write_metrics(self, step: int, metrics: dict[str, object]) -> None:
        """Append one line; numbers that JSON cannot hold become null."""
        row = {"step": step} | {k: _jsonable(v) for k, v in metrics.items()}
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def write_allocations(
        self,
        step: int,
        rollouts: RolloutBatch,
        allocation: Allocation,
        config: AllocationConfig,
        first_wave: RolloutBatch | None = None,
        num_revisited: int = 0,
    ) -> None:
        """One row per prompt: what was believed, the budget, the outcome and the cost.

        Args:
            step: Number of the step, from 1.
            rollouts: All rollouts of the step.
            allocation: Budgets and the estimates they were made from.
            config: What counts as a success.
            first_wave: The part of the rollouts that the estimates include.
            num_revisited: The batch's last prompts, which came again out of turn.
        """
        num_prompts = len(rollouts.batch)
        estimates = allocation.estimates
        assert estimates is not None, "budgets of a run come from an Allocator"
        outcomes, wave = _outcomes(rollouts, config), _outcomes(first_wave, config)
        group_id_R = rollouts.group_id_R[rollouts.group_id_R != PADDING]
        length_R = rollouts.response_length_R[rollouts.group_id_R != PADDING]
        tokens_P = np.bincount(group_id_R, weights=length_R, minlength=num_prompts)
        ids = rollouts.batch.prompt_ids
        scored_P = _by_prompt(ids, outcomes, lambda o: o.rollouts_P)
        tokens_per_scored_P = _by_prompt(ids, outcomes, lambda o: o.num_tokens_P)
        table = pa.table(
            {
                "step": np.full(num_prompts, step),
                "policy_version": np.full(num_prompts, step - 1),
                "prompt_id": ids,
                "datasource": rollouts.batch.datasources,
                "revisited": np.arange(num_prompts) >= num_prompts - num_revisited,
                "pass_rate": estimates.pass_rate_P,
                "posterior_success": estimates.success_P,
                "posterior_failure": estimates.failure_P,
                "last_rate": estimates.last_rate_P,
                "expected_tokens": estimates.num_tokens_P,
                "seen": estimates.seen_P,
                "estimate_version": estimates.version_P.astype(np.int64),
                "budget": allocation.budget_P,
                "wave_scored": _by_prompt(ids, wave, lambda o: o.rollouts_P).astype(np.int64),
                "wave_successes": _by_prompt(ids, wave, lambda o: o.success_P),
                "scored": scored_P.astype(np.int64),
                "successes": _by_prompt(ids, outcomes, lambda o: o.success_P),
                "mixed": _by_prompt(ids, outcomes, lambda o: o.mixed_P).astype(np.bool_),
                "tokens": tokens_P.astype(np.int64),
                "scored_tokens": np.rint(tokens_per_scored_P * scored_P).astype(np.int64),
            }
        )
        buffer = pa.BufferOutputStream()
        pq.write_table(table, buffer)
        self._replace(self._allocations / f"step-{step:08d}.parquet", buffer.getvalue().to_pybytes())

    @staticmethod
    def _replace(file: Path, content: bytes) -> None:
        temporary = file.with_name(f".{file.name}.tmp")
        temporary.write_bytes(content)
        os.replace(temporary, file)


def _outcomes(rollouts: RolloutBatch | None, config: AllocationConfig) -> Observation | None:
    """Counts as the allocator makes them; None where nothing was scored."""
    if rollouts is None:
        return None
    ids, scores, num_tokens = rollouts.observations()
    return count_outcomes(ids, scores, config, num_tokens) if ids else None


def _by_prompt(
    ids: list[str], outcomes: Observation | None, column: Callable[[Observation], NDArray | None]
) -> NDArray[np.float64]:
    """A column of the outcomes in the order of ``ids``, ``[P]``; 0 for prompts without a scored rollout."""
    if outcomes is None:
        return np.zeros(len(ids))
    values = column(outcomes)
    assert values is not None, "tokens are counted in a run"
    value_of = dict(zip(outcomes.prompt_ids, values.tolist(), strict=True))
    return np.array([value_of.get(prompt_id, 0) for prompt_id in ids], np.float64)


def _jsonable(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
