"""The files of a run survive a kill and a resume."""

import dataclasses
import json

import coba_openrlhf.device.ready  # noqa: F401  isort: skip
import numpy as np
import pyarrow.parquet as pq
import pytest

from coba_openrlhf.allocation import Allocation, AllocationConfig, Allocator
from coba_openrlhf.allocation.problem import Estimates
from coba_openrlhf.trainer.padding import pad_rollouts
from coba_openrlhf.trainer.run_log import RunLog
from tests.rollouts import rollout_batch

CONFIG = AllocationConfig()


def allocation_of(budgets):
    """Budgets and estimates whose columns all differ."""
    num_prompts = len(budgets)
    column_P = np.arange(num_prompts) / 8
    estimates = Estimates(
        pass_rate_P=column_P,
        success_P=column_P + 1,
        failure_P=column_P + 2,
        last_rate_P=column_P + 0.25,
        num_tokens_P=column_P + 4,
        seen_P=np.arange(num_prompts) % 2 == 0,
        version_P=np.arange(num_prompts) - 1.0,
    )
    return Allocation(np.array(budgets), 0.0, 0.0, estimates.pass_rate_P, estimates)


def write_steps(log, steps):
    rollouts = rollout_batch([2, 3], [1, 0, np.nan, 0.5, 1], lengths=[1, 2, 3, 4, 5])
    for step in steps:
        log.write_metrics(step, {"x": float(step)})
        log.write_allocations(step, pad_rollouts(rollouts, 4), allocation_of([2, 3]), CONFIG, num_revisited=1)


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
        "revisited": [False, True] * 2,
        "pass_rate": [0, 0.125] * 2,
        "posterior_success": [1, 1.125] * 2,
        "posterior_failure": [2, 2.125] * 2,
        "last_rate": [0.25, 0.375] * 2,
        "expected_tokens": [4, 4.125] * 2,
        "seen": [True, False] * 2,
        "estimate_version": [-1, 0] * 2,
        "budget": [2, 3] * 2,
        "wave_scored": [0, 0] * 2,
        "wave_successes": [0, 0] * 2,
        "scored": [2, 2] * 2,
        "successes": [1, 1] * 2,
        "mixed": [True, True] * 2,
        "tokens": [3, 12] * 2,
        "scored_tokens": [3, 9] * 2,
    }


def test_successes_are_the_allocators(tmp_path):
    """A score of at least the threshold, or the score itself; unscored is neither success nor failure."""
    rollouts = rollout_batch([3, 2], [0.5, 0.4, np.nan, 1, 0])
    configs = [AllocationConfig(success_threshold=t) for t in (0.4, 0.5, 1.0)] + [
        AllocationConfig(success_rule="score")
    ]
    for step, config in enumerate(configs, start=1):
        RunLog(str(tmp_path), step).write_allocations(step, rollouts, allocation_of([3, 2]), config)
    table = pq.read_table(tmp_path / "allocations.parquet").to_pydict()
    assert table["successes"] == [2, 1, 1, 1, 0, 1, 0.9, 1]
    assert table["scored"] == [2, 2] * 4
    assert table["mixed"] == [False, True, True, True, False, True, True, True]


def test_a_first_wave_is_counted_on_its_own(tmp_path):
    first = rollout_batch([2, 2, 2], [1, 0, np.nan, 1, np.nan, np.nan])
    rest = dataclasses.replace(rollout_batch([0, 1, 2], [1, 1, np.nan]), batch=first.batch)
    log = RunLog(str(tmp_path), 0)
    log.write_allocations(1, first.joined(rest), allocation_of([2, 3, 4]), CONFIG, first)
    table = pq.read_table(tmp_path / "allocations.parquet").to_pydict()
    assert table["wave_scored"] == [2, 1, 0]
    assert table["wave_successes"] == [1, 1, 0]
    assert table["scored"] == [2, 2, 1]
    assert table["successes"] == [1, 2, 1]


def test_a_step_without_any_score(tmp_path):
    log = RunLog(str(tmp_path), 0)
    log.write_allocations(1, rollout_batch([2], [np.nan, np.nan]), allocation_of([2]), CONFIG)
    row = pq.read_table(tmp_path / "allocations.parquet").to_pylist()[0]
    assert (row["scored"], row["successes"], row["mixed"], row["tokens"], row["scored_tokens"]) == (0, 0, False, 6, 0)


@pytest.mark.parametrize("source", ["window", "posterior", "probe"])
def test_what_an_allocator_believed_is_what_is_logged(tmp_path, source):
    allocator = Allocator(AllocationConfig(pass_rate_source=source, budget_max=4))
    allocator.observe(["p0", "p0", "p1"], [1, 0, 0], num_tokens=[5, 7, 9])
    rollouts = rollout_batch([4, 4, 4], [1, 0, 1, 0] * 3)
    probe = (["p0", "p1"], [1, 1]) if source == "probe" else None
    allocation = allocator.allocate(rollouts.batch.prompt_ids, 12, probe=probe)
    RunLog(str(tmp_path), 0).write_allocations(1, rollouts, allocation, allocator._config)
    table = pq.read_table(tmp_path / "allocations.parquet").to_pydict()
    assert table["pass_rate"] == allocation.pass_rate_P.tolist()
    assert table["expected_tokens"][:2] == [6, 9]
    assert table["seen"] == [True, True, False]
    assert table["last_rate"][:2] == [0.5, 0]


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
