"""``score_answers`` alone: any process, any script, nothing heavy, nothing left behind."""

import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

from coba_openrlhf.rewards import close_pools, score_answers
from coba_openrlhf.rewards.verifiers.base import QUICK_CHARACTERS

ROOT = Path(__file__).parents[3]
CALL = 'score_answers(["\\\\boxed{x+1}", "\\\\boxed{8}", "\\\\boxed{x+2}"], ["1+x", "7", "x+3"], timeout=30)'
EXPECTED = "[1.0, 0.0, 0.0]"
HOSTILE = 'score_answers(["\\\\boxed{9^{9^{9^9}}}", "\\\\boxed{x+1}"], ["x+3", "1+x"], timeout=3)'


@pytest.fixture(autouse=True)
def nothing_left():
    yield
    close_pools()


def run_script(tmp_path, body):
    script = tmp_path / "script.py"
    script.write_text("from coba_openrlhf.rewards import score_answers\n" + textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_one_outcome_per_pair():
    outcomes = score_answers(["\\boxed{\\frac{1}{2}}", "\\boxed{3}", ""], ["0.5", 4, "5"])
    assert [outcome.score for outcome in outcomes] == [1.0, 0.0, 0.0]
    assert [outcome.kind for outcome in outcomes] == ["correct", "wrong", "wrong"]
    assert [outcome.reason for outcome in outcomes] == ["equal by math-verify", "different numbers", "no answer found"]
    assert score_answers([], []) == []


def test_the_tolerance_of_numbers():
    """Also where a response is long enough to be checked in the other process; numpy's numbers are numbers."""
    responses, golds = ["99.5", "x" * QUICK_CHARACTERS + "99.5"], ["100"] * 2
    for tolerance, points in ((1e-6, 0.0), (np.float64(0.01), 1.0), (0, 0.0)):
        outcomes = score_answers(responses, golds, verifier="numeric", tolerance=tolerance, timeout=30)
        assert [outcome.score for outcome in outcomes] == [points] * 2


def test_other_verifiers():
    assert [o.score for o in score_answers(["(B)", "(C)"], ["B", "B"], verifier="multiple_choice")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"golds": ["1", "2"]}, "must have the same length, got 1 and 2"),
        ({"verifier": "maths"}, "unknown verifier 'maths'"),
        ({"timeout": 0}, "timeout must be > 0, got 0"),
        ({"max_workers": 0}, "max_workers must be > 0, got 0"),
        ({"memory_mb": -1}, "memory_mb must be > 0, got -1"),
        ({"tolerance": -0.5}, "tolerance must be finite and >= 0, got -0.5"),
        ({"tolerance": float("nan")}, "tolerance must be finite and >= 0, got nan"),
        ({"tolerance": float("inf")}, "tolerance must be finite and >= 0, got inf"),
    ],
)
def test_refused_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        score_answers(**{"responses": ["1"], "golds": ["1"], **arguments})


def test_in_a_script_without_a_main_guard(tmp_path):
    done = run_script(tmp_path, f"print('once', [o.score for o in {HOSTILE}])")
    assert done.stdout == "once [None, 1.0]\n"
    assert done.stderr == ""


def test_inside_a_running_loop_and_a_thread(tmp_path):
    body = f"""
    import asyncio

    def scores():
        return [o.score for o in {CALL}]

    async def main():
        print(scores(), await asyncio.to_thread(scores))

    asyncio.run(main())
    """
    assert run_script(tmp_path, body).stdout == f"{EXPECTED} {EXPECTED}\n"


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_in_a_daemon_process(tmp_path, method):
    """Daemons may have no children of multiprocessing; a fork has a copy of the parent's pool."""
    body = f"""
    import multiprocessing

    def work(results):
        results.put([o.score for o in {CALL}])

    if __name__ == "__main__":
        print([o.score for o in {CALL}])
        context = multiprocessing.get_context("{method}")
        results = context.Queue()
        process = context.Process(target=work, args=(results,), daemon=True)
        process.start()
        print(results.get(timeout=30))
        process.join()
    """
    assert run_script(tmp_path, body).stdout == f"{EXPECTED}\n{EXPECTED}\n"


def processes_with(text):
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if text in file.read_text():
                found.append(file.parent.name)
        except OSError:
            continue
    return found


def test_a_process_that_is_killed_leaves_nothing(tmp_path):
    marker = f"{tmp_path}/marker"
    body = f"""
    import os, sys
    sys.path.append({marker!r})  # the pool's process has the path on its command line
    print([o.score for o in {CALL}])
    os.kill(os.getpid(), 9)
    """
    with pytest.raises(AssertionError):
        run_script(tmp_path, body)
    deadline = time.monotonic() + 10
    while processes_with(marker):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_importing_loads_nothing_heavy():
    heavy = ("torch", "ray", "vllm", "openrlhf", "transformers", "sympy", "math_verify")
    code = f"import sys, coba_openrlhf.rewards; print([m for m in {heavy!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
