"""The files of a run survive a kill and a resume."""

import json

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pyarrow.parquet as pq
import pytest

from coba_openrlhf.trainer.padding import pad_rollouts
from coba_openrlhf.trainer.run_log import RunLog
from tests.rollouts import rollout_batch


def write_steps(log, steps):
    rollouts = rollout_batch([2, 3], [1, 0, np.nan, 0.5, 1], lengths=[1, 2, 3, 4, 5])
    for step in steps:
        log.write_metrics(step, {"x": float(step)})
        log.write_allocations(step, pad_rollouts(rollouts, 4), np.array([0.5, 0.25]), np.array([2, 3]), 1.0)


def metric_rows(run_dir):
    return [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]


def test_one_row_per_prompt_and_step(tmp_path):
    write_steps(RunLog(str(tmp_path), 0), [1, 2])
    table = pq.read_table(tmp_path / "allocations.parquet").to_pydict()
    assert table == {
        "step": [1, 1, 2, 2],
        "policy_version": [0, 0, 1, 1],
        "prompt_id": ["p0", "p1"] * 2,
        "datasource": ["a", "b"] * 2,
        "pass_rate": [0.5, 0.25] * 2,
        "budget": [2, 3] * 2,
        "scored": [2, 2] * 2,
        "successes": [1, 1] * 2,
        "tokens": [3, 12] * 2,
    }


def test_a_success_reaches_the_threshold(tmp_path):
    """The allocator's definition: a score of at least coba.pass_rate.success_threshold; unscored is none."""
    rollouts = rollout_batch([3, 2], [0.5, 0.4, np.nan, 1, 0])
    for step, threshold in enumerate([0.4, 0.5, 1.0], start=1):
        RunLog(str(tmp_path), step).write_allocations(step, rollouts, np.zeros(2), np.array([3, 2]), threshold)
    successes = pq.read_table(tmp_path / "allocations.parquet")["successes"].to_pylist()
    assert successes == [2, 1, 1, 1, 0, 1]


def test_resume_removes_what_is_repeated(tmp_path):
    log = RunLog(str(tmp_path), 0)
    log.write_metrics(0, {"eval": 0.5})
    write_steps(log, [1, 2, 3, 4])
    write_steps(RunLog(str(tmp_path), 2), [3])
    assert [row["step"] for row in metric_rows(tmp_path)] == [0, 1, 2, 3]
    assert sorted(set(pq.read_table(tmp_path / "allocations.parquet")["step"].to_pylist())) == [1, 2, 3]


def test_start_from_zero_clears_both(tmp_path):
    write_steps(RunLog(str(tmp_path), 0), [1, 2])
    write_steps(RunLog(str(tmp_path), 0), [1])
    assert [row["step"] for row in metric_rows(tmp_path)] == [1]
    assert set(pq.read_table(tmp_path / "allocations.parquet")["step"].to_pylist()) == {1}


def test_resume_repairs_a_line_cut_by_a_kill(tmp_path):
    write_steps(RunLog(str(tmp_path), 0), [1, 2])
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 3, "x": 1')
    write_steps(RunLog(str(tmp_path), 2), [3])
    assert [row["step"] for row in metric_rows(tmp_path)] == [1, 2, 3]


def test_a_half_written_step_is_never_visible(tmp_path, monkeypatch):
    """Killed before the rename: the readers' table has the complete steps only, and the next run goes on."""
    log = RunLog(str(tmp_path), 0)
    write_steps(log, [1])
    with monkeypatch.context() as context:
        context.setattr("os.replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_steps(log, [2])
    assert set(pq.read_table(tmp_path / "allocations.parquet")["step"].to_pylist()) == {1}
    write_steps(RunLog(str(tmp_path), 1), [2])
    assert set(pq.read_table(tmp_path / "allocations.parquet")["step"].to_pylist()) == {1, 2}
    assert [p.name for p in (tmp_path / "allocations.parquet").glob(".*")] == []


def test_what_json_cannot_hold_is_null(tmp_path):
    log = RunLog(str(tmp_path), 0)
    log.write_metrics(1, {"nan": float("nan"), "inf": np.float64("inf"), "count": np.int64(3), "half": np.float32(0.5)})
    assert metric_rows(tmp_path) == [{"step": 1, "nan": None, "inf": None, "count": 3, "half": 0.5}]
