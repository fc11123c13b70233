"""What the speed tables rest on: equal opponents, fair turns, and sections that replace each other."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import pipeline_learning, results_file
from benchmarks.allocation import TWINS, agreement_row
from benchmarks.oracles import numpy_scalar_value, scalar_value
from benchmarks.timing import Contestant, interleave
from coba_openrlhf import allocate_greedy


@pytest.mark.parametrize("twin", TWINS.values())
def test_twins_solve_a_batch_without_ties_like_the_library(twin):
    pass_rate_P = np.random.default_rng(0).uniform(size=40)
    arguments = {"alpha": 5.8, "beta": 5.2, "tau": 5.0, "budget_min": 2, "budget_max": 30}
    budget_P = allocate_greedy(pass_rate_P, 640, **arguments).budget_P
    assert list(twin(pass_rate_P, 640, **arguments)) == budget_P.tolist()


def test_both_scalar_values_are_the_same_function():
    for pass_rate in (0.01, 0.3, 0.99):
        values = [value(7, np.float64(pass_rate), 3.5, 7.5, 5.0) for value in (scalar_value, numpy_scalar_value)]
        assert values[0] == pytest.approx(values[1], rel=1e-12)
    assert numpy_scalar_value(7, np.float64(0), 3.5, 7.5, 5.0) == numpy_scalar_value(7, np.float64(0.01), 3.5, 7.5, 5.0)


def test_agreement_is_asserted():
    assert "prompt by prompt" in agreement_row(num_batches=5)


def test_turns_alternate():
    log = []
    contestants = {name: Contestant(lambda name=name: log.append(name), every=1 + (name == "c")) for name in "abc"}
    contestants["b"].calls = 2
    interleave(contestants, 3)
    assert "".join(log) == "abbc" + "bba" + "cabb"
    assert [len(contestant.seconds) for contestant in contestants.values()] == [3, 6, 2]
    assert all(contestant.median > 0 for contestant in contestants.values())


def test_large_batch_in_a_process_of_its_own():
    command = [sys.executable, "-m", "benchmarks.large_batch", "2000"]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], check=True, capture_output=True, text=True)
    measured = json.loads(done.stdout)
    assert 0 < measured["seconds"] < 60 and 0 < measured["growth_bytes"] < 1e9


def test_sections_are_replaced_one_by_one(tmp_path, monkeypatch):
    monkeypatch.setattr(results_file, "RESULTS", tmp_path / "results.md")
    for title, text in (("A", "old"), ("B", "other\n\n### Part\n\nmore"), ("A", "new")):
        results_file.write_section(title, text, "benchmarks.some")
    made = "Made by `python -m benchmarks.some --write`."
    assert (tmp_path / "results.md").read_text() == (
        f"# Benchmark results\n\n## A\n\nnew\n\n{made}\n\n## B\n\nother\n\n### Part\n\nmore\n\n{made}\n"
    )


def test_a_run_of_the_pipeline_is_read_from_its_log(tmp_path):
    seconds = {f"ledger/seconds_{name}": 1.0 for name in ("generation", "make_experience", "ppo_train", "broadcast")}
    step = {"timing/step_total": 1.0, "coba/effective_group_rate": 0.25, "ledger/rollouts": 8, **seconds}
    rows = [
        {"step": 0, pipeline_learning.METRIC: 0.4},
        {"step": 1, **step, "ledger/generated_tokens": 40, "ledger/trained_tokens": 0},
        {
            "step": 2,
            **step,
            "coba/effective_group_rate": 0.75,
            "ledger/generated_tokens": 80,
            "ledger/trained_tokens": 20,
        },
        {"step": 1, pipeline_learning.METRIC: 0.6},
        {"step": 2, pipeline_learning.METRIC: 0.7},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert pipeline_learning.outcome(tmp_path) == {
        "before": 0.4, "halfway": 0.6, "after": 0.7,
        "rollouts": 8, "tokens": 80, "trained": 0.25, "signal": 0.5, "seconds": 4.0,
    }  # fmt: skip


def test_rules_of_the_pipeline_are_compared_seed_by_seed():
    def runs(*after):
        rest = {"rollouts": 8.0, "tokens": 80.0, "trained": 0.25, "signal": 0.5, "seconds": 4.0}
        return [{"before": 0.4, "halfway": value / 2, "after": value, **rest} for value in after]

    lines = pipeline_learning.table({"uniform": runs(0.1, 0.5, 0.9), "better": runs(0.2, 0.6, 1.0)}).splitlines()
    assert lines[4:6] == [
        "| uniform | 0.400 | 0.250 |  | 0.500 |  | 0.100 0.500 0.900 |",
        "| better | 0.400 | 0.300 | +0.050 [+0.050, +0.050], p 0.25 | 0.600 | +0.100 [+0.100, +0.100], p 0.25 "
        "| 0.200 0.600 1.000 |",
    ]
    assert lines[-1] == "| better | 0.50 | 8 | 80 | 0.25 | 4 |"
