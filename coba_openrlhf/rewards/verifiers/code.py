"""Programs, graded by tests that they pass."""

import json
import re
import secrets
import time
from dataclasses import dataclass

from coba_openrlhf.rewards.outcome import Outcome, excerpt, wrong
from coba_openrlhf.rewards.sandbox import run_program

from .base import Limits, Verifier

_BLOCK = re.compile(r"^[ \t]*```[ \t]*(\w*)[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)
# Runs the response's code, then a test, and only then writes what it has been given: leaving early proves nothing.
_ASSERT_MAIN = """
import sys
token = sys.stdin.readline().strip()
sys.argv = ["solution.py"]
scope = {"__name__": "solution"}
for name in ("solution.py", "test.py"):
    with open(name, encoding="utf-8") as file:
        exec(compile(file.read(), name, "exec"), scope)
sys.__stdout__.write("\\n" + token)
sys.__stdout__.flush()
"""


@dataclass(frozen=True)
class CodeTests:
    """The reference answer of a programming problem.

    Attributes:
        inputs: Texts for the standard input, one per test.
        outputs: The output that each must give.
        asserts: Python statements that must raise nothing after the response's code.
        setup: Python that runs before each of them.
    """

    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    asserts: tuple[str, ...] = ()
    setup: str = ""


class CodeVerifier(Verifier):
    """The share of tests that the last closed code block passes.

    The tests are an object, or a JSON text of one: ``{"inputs": [...], "outputs": [...]}`` for programs that read and
    print, or ``{"asserts": ["assert f(1) == 2", ...], "setup": "..."}``, or the list of asserts alone. Each test runs
    in a process of its own (``sandbox.py``); the time limit is that of all tests together, and those that it leaves
    out are not passed.
    """

    grace_seconds = 5.0

    def verify(self, response: str, label: object, limits: Limits) -> Outcome:
        """See ``Verifier``."""
        tests = read_tests(label)
        code = last_code_block(response)
        if code is None:
            return wrong("no closed code block in the response")
        deadline = time.monotonic() + limits.seconds
        problems = []
        total = len(tests.asserts) or len(tests.inputs)
        for i in range(total):
            left = deadline - time.monotonic()
            problem = "no time left" if left <= 0 else _problem(code, tests, i, left, limits.memory_mb)
            if problem:
                problems.append(f"test {i + 1}: {problem}")
        passed = total - len(problems)
        reason = f"{passed} of {total} tests passed"
        return Outcome(passed / total, f"{reason}; {excerpt(problems[0])}" if problems else reason)

    def check_label(self, label: object) -> None:
        """See ``Verifier``."""
        read_tests(label)


def _problem(code: str, tests: CodeTests, i: int, seconds: float, memory_mb: int) -> str:
    """Why test ``i`` is not passed; empty if it is."""
    if tests.asserts:
        token = secrets.token_hex(16)
        files = {"solution.py": code, "test.py": f"{tests.setup}\n{tests.asserts[i]}\n", "main.py": _ASSERT_MAIN}
        run = run_program(files, "main.py", token + "\n", seconds, memory_mb)
        return run.problem or ("" if run.stdout.endswith(token) else "ended before the test")
    run = run_program({"solution.py": code}, "solution.py", tests.inputs[i], seconds, memory_mb)
    return run.problem or ("" if _words(run.stdout) == _words(tests.outputs[i]) else f"printed {excerpt(run.stdout)!r}")


def _words(text: str) -> list[list[str]]:
    """Lines as their words: spaces at the ends and empty lines at the end do not matter."""
    return [line.split() for line in text.strip().splitlines()]


def last_code_block(response: str) -> str | None:
    """The last closed Markdown block of Python or of no named language; None if there is none."""
    blocks = [match[2] for match in _BLOCK.finditer(response) if match[1].lower() in ("", "python", "py", "python3")]
    return blocks[-1] if blocks else None


def read_tests(label: object) -> CodeTests:
    """The tests of a reference answer; see ``CodeVerifier`` for its forms.

    Raises:
        ValueError: It has another form, or no test.
    """
    if isinstance(label, str):
        try:
            label = json.loads(label)
        except ValueError as error:
            raise ValueError(f"the tests must be an object, a list, or JSON of one, got {label!r:.100}") from error
    if isinstance(label, list):
        label = {"asserts": label}
    if not isinstance(label, dict):
        raise ValueError(f"the tests must be an object or a list, got {type(label).__name__}: {label!r:.100}")
    parts = {name: value for name, value in label.items() if value is not None}
    unknown = sorted(set(map(str, parts)) - {"inputs", "outputs", "asserts", "setup"})
    if unknown:
        raise ValueError(f"the tests may have inputs and outputs, or asserts and setup, got {', '.join(unknown)}")
    inputs, outputs, asserts = (_texts(name, parts.get(name, [])) for name in ("inputs", "outputs", "asserts"))
    if len(inputs) != len(outputs):
        raise ValueError(f"the tests need one output per input, got {len(inputs)} inputs and {len(outputs)} outputs")
    if bool(inputs) == bool(asserts):
        raise ValueError(
            "the tests must be either inputs and outputs or asserts, got " + ("both" if inputs else "none")
        )
    setup = parts.get("setup", "")
    if not isinstance(setup, str):
        raise ValueError(f"setup must be text, got {type(setup).__name__}")
    return CodeTests(inputs, outputs, asserts, setup)


def _texts(name: str, values: object) -> tuple[str, ...]:
    if not isinstance(values, list | tuple) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a list of texts, got {values!r:.100}")
    return tuple(values)
