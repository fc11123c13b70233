"""The files of a run that other tools read."""

# Legend: P = prompts of a step.

import json
import math
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

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
        pass_rate_P: NDArray[np.float64],
        budget_P: NDArray[np.int64],
        success_threshold: float,
    ) -> None:
        """One row per prompt: estimate, budget, outcome and cost."""
        num_prompts = len(rollouts.batch)
        real = rollouts.group_id_R != PADDING
        group_id_R = rollouts.group_id_R[real]
        success_R = np.where(rollouts.scored_R, rollouts.score_R >= success_threshold, False)[real]

        def per_prompt(weight_R: NDArray) -> NDArray[np.float64]:
            return np.bincount(group_id_R, weights=weight_R, minlength=num_prompts)

        table = pa.table(
            {
                "step": np.full(num_prompts, step),
                "policy_version": np.full(num_prompts, step - 1),
                "prompt_id": rollouts.batch.prompt_ids,
                "datasource": rollouts.batch.datasources,
                "pass_rate": pass_rate_P,
                "budget": budget_P,
                "scored": per_prompt(rollouts.scored_R[real]).astype(np.int64),
                "successes": per_prompt(success_R).astype(np.int64),
                "tokens": per_prompt(rollouts.response_length_R[real]).astype(np.int64),
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


def _jsonable(value: object) -> object:
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
