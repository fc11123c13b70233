"""The evaluation command on real engines: it continues, and its responses do not depend on how they were made."""

import json
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from coba_openrlhf.evaluation.response_files import FOLDER, ResponseFiles

from .local_ray import ROOT, environment

K = 3


@pytest.fixture(scope="module")
def evaluate(local_ray, tiny, tmp_path_factory):
    out = tmp_path_factory.mktemp("evaluation") / "out"

    def run(*more):
        options = {"model": tiny / "model", "benchmarks": tiny / "eval.jsonl", "input_key": "input", "k": K}
        options |= {"temperature": 1.0, "max_len": 24, "max_new_tokens": 8, "out": out, "coba.verifier": "exact"}
        words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        done = subprocess.run(
            [sys.executable, "-m", "coba_openrlhf.evaluate", *words, "--vllm.enforce_eager", *more],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment() | {"RAY_ADDRESS": local_ray.address},
            timeout=300,
            check=False,
        )
        return done

    return run, out


def test_a_continued_evaluation_gives_the_same_responses(evaluate):
    run, out = evaluate
    done = run("--chunk", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    files = sorted((out / FOLDER).iterdir())
    assert len(files) == 3 and "[6/6] 18 responses" in done.stdout
    first = ResponseFiles(out).read().to_pylist()
    assert len(first) == 6 * K and [row["index"] for row in first] == [0, 1, 2] * 6
    # Each response has random numbers of its own, also within a group.
    assert len({row["response"] for row in first}) > 12
    assert {row["reason"] for row in first} <= {"equal texts", "different texts"}
    removed = pq.read_table(files[1])
    files[1].unlink()  # as if the evaluation had been killed before it
    (out / "results.json").unlink()
    done = run("--chunk", "1", "--engines", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 problems are there, 2 are left" in done.stdout and "[6/6] 6 responses" in done.stdout
    again = ResponseFiles(out).read().to_pylist()
    assert again == first
    assert set(removed["problem_id"].to_pylist()) <= {row["problem_id"] for row in again}
    results = json.loads((out / "results.json").read_text())["benchmarks"]["graded_arithmetic"]
    scores = [row["score"] for row in first]
    assert results["avg"]["value"] == pytest.approx(sum(scores) / len(scores)) and results["num_problems"] == 6
    assert results["length_max"] <= 8 and set(results["passes"]) == {"1", "2", "3"}


def test_a_finished_evaluation_needs_no_engines_and_other_settings_are_refused(evaluate):
    run, out = evaluate
    before = (out / "results.json").read_bytes()
    done = run()
    assert done.returncode == 0 and "0 are left" in done.stdout
    assert (out / "results.json").read_bytes() == before
    done = run("--top_p", "0.9", "--seed", "1")
    assert done.returncode == 2
    assert "(top_p: 1.0 -> 0.9; seed: 42 -> 1); choose another --out" in done.stderr
