"""Programs graded by tests: shares, limits, and nothing that survives its test."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coba_openrlhf.rewards import VerifierPool
from coba_openrlhf.rewards.verifier_choice import check_label
from coba_openrlhf.rewards.verifiers.code import last_code_block

ROOT = Path(__file__).parents[3]
SUMS = {"inputs": ["1 2\n", "3 4\n"], "outputs": ["3", "7\n"]}
SUCCESSOR = ["assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 5"]


@pytest.fixture(scope="module")
def pool():
    pool = VerifierPool(["code"], timeout=3.0, memory_mb=300, max_workers=2)
    yield pool
    pool.close()


def block(code):
    return f"Let us see.\n```python\n{code}\n```\nThat is it."


def outcome(pool, code, label):
    return pool.submit("code", block(code), label).result(60)


@pytest.mark.parametrize(
    ("code", "label", "score", "reason"),
    [
        ("a, b = map(int, input().split())\nprint(a + b)", SUMS, 1.0, "2 of 2 tests passed"),
        ("a, b = map(int, input().split())\nprint(a + b)", json.dumps(SUMS), 1.0, "2 of 2 tests passed"),
        ("print(3)", SUMS, 0.5, "1 of 2 tests passed; test 2: printed '3'"),
        ("print('3 \\n')", SUMS, 0.5, "test 2: printed '3'"),
        ("print(3)\nraise SystemExit(1)", SUMS, 0.0, "test 1: status 1"),
        ("def f(x):\n    return x + 1", SUCCESSOR, 2 / 3, "2 of 3 tests passed; test 3: AssertionError"),
        ("f = lambda x: y + 1", {"asserts": SUCCESSOR[:2], "setup": "y = 1"}, 0.5, "1 of 2 tests passed"),
        ("def f(x):\n    return x + 1\nif __name__ == '__main__':\n    input('?')", SUCCESSOR[:2], 1.0, "2 of 2"),
        ("import sys\nsys.exit(0)", SUCCESSOR, 0.0, "test 1: ended before the test"),
        ("import os\nos._exit(0)", SUCCESSOR, 0.0, "test 1: ended before the test"),
        ("def f(:", SUCCESSOR, 0.0, "SyntaxError"),
        ("while True: pass", SUMS, 0.0, "test 1: took longer than 3 s"),
        ("x = bytearray(10**10)", SUMS, 0.0, "MemoryError"),
        ("open('big', 'wb').write(b'x' * 10**8)", SUMS, 0.0, "File too large"),
        ("print('x' * 10**8)", SUMS, 0.0, "File too large"),
        ("import os\nwhile True: os.fork()", SUMS, 0.0, "test 1: started more than 32 processes"),
        ("import os\nprint(open('/proc/self/environ').read().count('SECRET') + 3)", SUMS, 0.5, "1 of 2"),
    ],
)
def test_shares_and_limits(pool, monkeypatch, code, label, score, reason):
    monkeypatch.setenv("SECRET", "x")
    result = outcome(pool, code, label)
    assert result.score == pytest.approx(score), result
    assert reason in result.reason


def test_what_a_program_starts_ends_with_it(pool):
    code = "import subprocess\nsubprocess.Popen(['sleep', '1234.5'], start_new_session=True)\nprint(3)"
    assert outcome(pool, code, SUMS).score == 0.5
    assert "1234.5" not in processes()


def processes():
    found = ""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += file.read_text()
        except OSError:
            continue
    return found


def test_without_namespaces_descendants_are_found_and_killed(tmp_path):
    """As on machines where users may make none."""
    script = tmp_path / "alone.py"
    script.write_text(
        "from coba_openrlhf.rewards import sandbox\n"
        "sandbox.isolation = lambda: ()\n"
        'start = \'subprocess.Popen(["sleep", "1234.6"], start_new_session=True)\\n\'\n'
        "code = 'import os, subprocess\\n' + 3 * start\n"
        "print(sandbox.run_program({'a.py': code + 'print(os.getcwd())'}, 'a.py', '', 5, 300))\n"
        "print(sandbox.run_program({'a.py': 'import os\\nwhile True: os.fork()'}, 'a.py', '', 5, 300).problem)\n"
        "print(sandbox.run_program({'a.py': 'while True: pass'}, 'a.py', '', 0.5, 300).problem)\n"
    )
    command = [sys.executable, str(script)]
    done = subprocess.run(
        command, env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    first, bomb, endless = done.stdout.splitlines()
    assert "sandbox-" in first and first.endswith("problem='')")
    assert bomb == "started more than 32 processes"
    assert endless == "took longer than 0.5 s"
    assert "1234.6" not in processes()
    assert not list(Path("/tmp").glob("sandbox-*/a.py"))


def test_no_network(pool):
    from coba_openrlhf.rewards.sandbox import isolation

    if not isolation():
        pytest.skip("this machine lets users make no namespaces, so the network stays")
    code = "import socket\nsocket.create_connection(('127.0.0.1', 9), timeout=2)"
    assert "Network is unreachable" in outcome(pool, code, SUMS).reason


def test_time_is_for_all_tests_together(pool):
    label = {"inputs": [""] * 20, "outputs": ["1"] * 20}
    started = time.monotonic()
    result = outcome(pool, "import time\ntime.sleep(1)\nprint(1)", label)
    assert time.monotonic() - started < 6
    assert 0 < result.score <= 3 / 20


@pytest.mark.parametrize(
    ("response", "code"),
    [
        ("```python\na\n```", "a\n"),
        ("```\na\n```", "a\n"),
        ("```py\na\n```\n```python3\nb\n```\n", "b\n"),
        ("```python\na\n```\n```json\n{}\n```", "a\n"),
        ("```python\na\n```\n```python\nb", "a\n"),
        ("  ```python title='x'\n  a\n  ```", "  a\n"),
        ("```python\na", None),
        ("a", None),
        ("", None),
    ],
)
def test_the_last_closed_block(response, code):
    assert last_code_block(response) == code


def test_no_code_is_wrong(pool):
    assert pool.submit("code", "print(3)", SUMS).result(60).reason == "no closed code block in the response"


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("assert f(1)", "must be an object, a list, or JSON of one"),
        ("3", "must be an object or a list, got int"),
        (None, "must be an object or a list, got NoneType"),
        ({}, "either inputs and outputs or asserts, got none"),
        ([], "got none"),
        ({"inputs": ["1"], "outputs": []}, "one output per input, got 1 inputs and 0 outputs"),
        ({**SUMS, "asserts": ["assert 1"]}, "got both"),
        ({"inputs": [1], "outputs": ["1"]}, r"inputs must be a list of texts, got \[1\]"),
        ({"tests": ["assert 1"]}, "inputs and outputs, or asserts and setup, got tests"),
        ({"asserts": ["assert 1"], "setup": ["x"]}, "setup must be text, got list"),
    ],
)
def test_labels_that_are_no_tests(label, message):
    with pytest.raises(ValueError, match=message):
        check_label("code", label)


def test_a_table_fills_the_missing_half_with_nothing():
    check_label("code", {"inputs": None, "outputs": None, "asserts": ["assert 1"], "setup": None})
