"""The pool: limits, neighbours of hostile answers, every kind of caller, nothing left behind."""

import asyncio
import os
import pickle
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from coba_openrlhf.rewards.outcome import Outcome
from coba_openrlhf.rewards.verifier_pool import VerifierPool

HOSTILE = {
    "factorials": "9999999!!!",
    "tower": "9^{9^{9^{9}}}",
    "binomial": "\\binom{10^9}{5\\cdot 10^8}",
}
HARMLESS_IN_THE_END = {
    "megabytes": "x+" * 1_000_000 + "1",
    "nested roots": "\\sqrt{" * 1500 + "2" + "}" * 1500,
    "nested brackets": "(" * 3000 + "1" + ")" * 3000,
    "many members": ",".join(map(str, range(2000))),
    "long number": "9" * 9000,
    "wide matrix": "\\begin{pmatrix}" + "1&" * 400 + "1\\end{pmatrix}",
}


class Calls:
    """A reference answer that runs Python where it is unpickled: inside the checking process."""

    def __init__(self, code):
        self.code = code

    def __reduce__(self):
        return eval, (self.code,)


def children_of(pid):
    return {
        int(child) for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    }


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition, seconds=10):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture(scope="module")
def pool():
    pool = VerifierPool(["math", "exact", "numeric"], timeout=3.0, memory_mb=300, max_workers=2)
    assert pool.submit("math", "\\boxed{x+1}", "1+x").result(60).score == 1.0
    yield pool
    pool.close()


def neighbours(pool, count=12):
    return [pool.submit("math", f"\\boxed{{x+{i}}}", f"{i}+x" if i % 3 else "x") for i in range(1, count)]


def assert_right(futures):
    scores = [future.result(60).score for future in futures]
    assert scores == [1.0 if i % 3 else 0.0 for i in range(1, len(futures) + 1)]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_answer_costs_its_own_limit_and_nobody_else(pool, name):
    before = neighbours(pool)
    started = time.perf_counter()
    hostile = pool.submit("math", f"\\boxed{{{HOSTILE[name]}}}", "x^2+12")
    after = neighbours(pool)
    assert hostile.result(60).kind == "unscorable", hostile.result()
    assert hostile.result().reason in ("took longer than 3 s", "needed more than 300 MB of memory")
    assert time.perf_counter() - started < 20
    assert_right(before)
    assert_right(after)


@pytest.mark.parametrize("name", HARMLESS_IN_THE_END)
def test_large_answers_are_wrong_or_unscorable(pool, name):
    hostile = pool.submit("math", f"\\boxed{{{HARMLESS_IN_THE_END[name]}}}", "12")
    after = neighbours(pool)
    assert hostile.result(60).kind in ("wrong", "unscorable")
    assert_right(after)


@pytest.mark.parametrize("response", ["$x$ and " * 50_000, "1 " * 100_000, "answer " * 20_000, "$$" * 10_000])
def test_megabytes_without_a_box(pool, response):
    assert pool.submit("math", response, "12").result(60).kind in ("wrong", "unscorable")


def test_memory_limit(pool):
    outcome = pool.submit("exact", "x" * 30_000, Calls("bytearray(10**9)")).result(60)
    assert outcome == Outcome(None, "needed more than 300 MB of memory")
    assert_right(neighbours(pool))


def test_within_the_memory_limit(pool):
    assert pool.submit("exact", "x" * 30_000, Calls("len(bytearray(10**8))")).result(60).kind == "wrong"


def test_a_check_that_takes_its_process_down_is_unscorable(pool):
    futures = [pool.submit("exact", "x" * 30_000, Calls("__import__('os')._exit(3)")) for _ in range(3)]
    killed = pool.submit("exact", "x" * 30_000, Calls("__import__('os').kill(__import__('os').getpid(), 11)"))
    for future in futures:
        assert future.result(60) == Outcome(None, "the process of the check ended with status 3")
    assert killed.result(60) == Outcome(None, "the process of the check ended with signal 11")
    assert_right(neighbours(pool))


def test_a_verifier_that_raises_is_an_error_and_not_an_exception(pool):
    quick = pool.submit("numeric", "12", "twelve").result(60)
    assert quick == Outcome(None, "ValueError: could not convert string to float: 'twelve'", is_error=True)
    assert quick.kind == "error"
    slow = pool.submit("numeric", "12 " * 10_000, "twelve").result(60)
    assert slow == quick
    assert pool.submit("exact", "x" * 30_000, Calls("1/0")).result(60).reason == "ZeroDivisionError: division by zero"


def test_answers_that_cannot_travel_are_errors(pool):
    assert pool.submit("math", "\\boxed{x}", [lambda: 0]).result(60).kind == "error"


def test_the_same_from_threads_and_event_loops(pool):
    pairs = [("\\boxed{x+1}", "1+x", 1.0), ("\\boxed{x+2}", "1+x", 0.0), ("\\boxed{7}", "7", 1.0)] * 4

    def from_thread(pair):
        return pool.submit("math", pair[0], pair[1]).result(60).score

    async def from_loop():
        return await asyncio.gather(*(pool.score("math", response, label) for response, label, _ in pairs))

    expected = [score for _, _, score in pairs]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(from_thread, pairs)) == expected
        assert [o.score for o in threads.submit(lambda: asyncio.run(from_loop())).result(60)] == expected
    assert [o.score for o in asyncio.run(from_loop())] == expected


def test_waiting_does_not_block_the_loop(pool):
    """Generation goes on in the engine's event loop while answers are checked."""

    async def both():
        checks = [asyncio.create_task(pool.score("math", "\\boxed{9^{9^{9^{9}}}}", "12")) for _ in range(2)]
        checks += [asyncio.create_task(pool.score("math", "x" * 5_000_000, "12")) for _ in range(4)]
        longest = 0.0
        while not all(check.done() for check in checks):
            started = time.perf_counter()
            await asyncio.sleep(0.01)
            longest = max(longest, time.perf_counter() - started)
        return [check.result().kind for check in checks], longest

    kinds, longest = asyncio.run(both())
    assert kinds == ["unscorable"] * 2 + ["wrong"] * 4
    assert longest < 0.5


def test_a_cancelled_wait_does_not_disturb_the_pool(pool):
    async def give_up():
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pool.score("math", "\\boxed{9^{9^{9^{9}}}}", "12"), 0.1)
        return await pool.score("math", "\\boxed{x+1}", "1+x")

    assert asyncio.run(give_up()).score == 1.0


def test_easy_answers_per_second(pool):
    pairs = [(f"We get \\boxed{{{i:,}}}.", str(i + i % 2)) for i in range(4000)]
    started = time.process_time()
    scores = [pool.submit("math", *pair).result(60).score for pair in pairs]
    assert time.process_time() - started < 2.0
    assert scores == [1.0 - i % 2 for i in range(4000)]


def test_a_killed_server_is_replaced(pool):
    server = pool._server._process.pid
    checks = neighbours(pool)
    os.kill(server, signal.SIGKILL)
    assert_right(checks)
    assert_right(neighbours(pool))
    assert pool._server._process.pid != server


def test_idle_workers_that_are_killed_are_replaced_without_a_word(capfd):
    pool = VerifierPool(["math"], timeout=30.0, max_workers=2)
    assert pool.submit("math", "\\boxed{x+1}", "1+x").result(60).score == 1.0
    for worker in children_of(pool._server._process.pid):
        os.kill(worker, signal.SIGKILL)
    time.sleep(0.5)
    assert pool.submit("math", "\\boxed{x+1}", "1+x").result(60).score == 1.0
    pool.close()
    assert capfd.readouterr().err == ""


def test_no_check_is_left_waiting_when_no_other_server_can_be_started(monkeypatch):
    pool = VerifierPool(["math"], timeout=60.0)
    check = pool.submit("math", "\\boxed{9^{9^{9^{9}}}}", "12")
    server = pool._server._process.pid
    wait_until(lambda: children_of(server))

    def no_process(*_args, **_kwargs):
        raise FileNotFoundError("no such program")

    monkeypatch.setattr("subprocess.Popen", no_process)
    os.kill(server, signal.SIGKILL)
    assert check.result(30) == Outcome(None, "FileNotFoundError: no such program", is_error=True)
    pool.close()


def test_a_job_that_a_worker_cannot_even_take_is_unscorable():
    """Its neighbour runs on, so that the pool does not see that a worker has ended with a job of nobody's."""
    pool = VerifierPool(["math"], timeout=4.0, memory_mb=64, max_workers=2)
    neighbour = pool.submit("math", "\\boxed{9^{9^{9^{9}}}}", "12")
    huge = pool.submit("math", "x" * 60_000_000, "12")
    assert huge.result(30) == Outcome(None, "needed more than 64 MB of memory")
    assert neighbour.result(30).score is None
    pool.close()


def test_closing_ends_every_process_and_settles_every_check():
    pool = VerifierPool(["math"], timeout=30.0, max_workers=2)
    checks = [pool.submit("math", "\\boxed{9^{9^{9^{9}}}}", "12") for _ in range(4)]
    server = pool._server._process.pid
    wait_until(lambda: len(children_of(server)) == 2)
    checkers = children_of(server)
    pool.close()
    assert [check.result(10).reason for check in checks] == ["the verifier pool was closed during the check"] * 4
    assert not any(map(is_alive, {server, *checkers}))
    with pytest.raises(RuntimeError, match="closed"):
        pool.submit("math", "\\boxed{x+1}", "1+x")
    pool.close()


def test_unknown_verifiers_are_refused():
    with pytest.raises(ValueError, match="unknown verifier 'maths'; there are exact, numeric, math, "):
        VerifierPool(["maths"])


def test_quick_answers_start_no_process():
    pool = VerifierPool(["math"])
    assert pool.submit("math", "\\boxed{7}", "7").result(0).score == 1.0
    assert pool._server is None
    pool.close()


def test_outcomes_travel():
    outcome = Outcome(0.5, "2 of 4 tests passed")
    assert pickle.loads(pickle.dumps(outcome)) == outcome
    assert outcome.kind == "wrong"
