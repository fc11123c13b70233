"""The process between a pool and its checkers: hands out jobs, keeps the time, kills what runs over.

    VerifierPool (any process) == pipes ==> serve (one thread) == socket pairs ==> run_checker (forked, killable)

``VerifierPool`` starts it as ``python -c BOOTSTRAP``, not through multiprocessing: that would run the caller's main
script again, and refuses to work inside a daemon process. Verifiers are loaded here, once; a checker is a fork of this
process, which has one thread, and takes milliseconds to replace. When the pool's process ends in whatever way, its
pipe closes, and everything here ends.
"""

import os
import signal
import time
from collections import deque
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import NoReturn

from .checker import run_checker
from .outcome import Outcome, unscorable
from .process_tree import adopt_orphans, kill_children
from .verifiers import VERIFIERS, Limits

Job = tuple[int, str, bytes]  # number, verifier, pickled response and reference answer
Result = tuple[int, Outcome]


@dataclass
class _Checker:
    """A checker process and what it is doing."""

    pid: int
    pipe: Connection
    job: int | None = None
    deadline: float = float("inf")


class VerifierServer:
    """Serves jobs until the pool closes its end.

    Args:
        jobs: Where lists of jobs come in.
        results: Where lists of results go.
        max_workers: Most checkers at a time.
        limits: Of one check.
    """

    def __init__(self, jobs: Connection, results: Connection, max_workers: int, limits: Limits) -> None:
        self._jobs = jobs
        self._results = results
        self._max_workers = max_workers
        self._limits = limits
        self._queue: deque[Job] = deque()
        self._checkers: list[_Checker] = []

    def serve(self) -> None:
        """Run until the pool's end of the pipe closes."""
        try:
            while True:
                self._assign()
                results = self._collect()
                if results:
                    self._results.send(results)
        except (EOFError, BrokenPipeError):
            pass
        finally:
            for checker in list(self._checkers):
                self._end(checker)

    def _assign(self) -> None:
        while self._queue:
            idle = next((c for c in self._checkers if c.job is None), None)
            if idle is None:
                if len(self._checkers) >= self._max_workers:
                    return
                idle = self._fork()
            number, verifier, content = self._queue[0]
            try:
                idle.pipe.send((verifier, content))
            except (BrokenPipeError, ConnectionResetError):  # it had ended while it was idle
                self._end(idle)
                continue
            self._queue.popleft()
            idle.job = number
            idle.deadline = time.monotonic() + self._limits.seconds + VERIFIERS[verifier].grace_seconds

    def _collect(self) -> list[Result]:
        """Wait for anything to happen; results of checks that ended or ran over."""
        busy = {c.pipe: c for c in self._checkers if c.job is not None}
        deadline = min((c.deadline for c in busy.values()), default=None)
        ready = wait([self._jobs, *busy], None if deadline is None else max(0.0, deadline - time.monotonic()))
        results: list[Result] = []
        for pipe in ready:
            if pipe is self._jobs:
                self._queue.extend(self._jobs.recv())
            else:
                results.append(self._result_of(busy[pipe]))  # type: ignore[index]
        now = time.monotonic()
        for checker in busy.values():
            if checker.job is not None and checker.deadline <= now and not checker.pipe.poll():
                results.append((checker.job, unscorable(f"took longer than {self._limits.seconds:g} s")))
                self._end(checker)
        return results

    def _result_of(self, checker: _Checker) -> Result:
        number = checker.job
        assert number is not None
        try:
            outcome, is_spent = checker.pipe.recv()
            checker.job, checker.deadline = None, float("inf")
            if is_spent:
                self._end(checker)
            return number, outcome
        except (EOFError, ConnectionResetError):
            status = self._end(checker)
            how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {os.WEXITSTATUS(status)}"
            return number, unscorable(f"the process of the check ended with {how}")

    def _fork(self) -> _Checker:
        ours, theirs = Pipe()
        pid = os.fork()
        if pid == 0:
            # Ends that a checker kept open would hide from the others that this process has ended.
            for connection in (self._jobs, self._results, ours, *(c.pipe for c in self._checkers)):
                connection.close()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            run_checker(theirs, self._limits)
        theirs.close()
        checker = _Checker(pid, ours)
        self._checkers.append(checker)
        return checker

    def _end(self, checker: _Checker) -> int:
        """Kill a checker and what it has started; returns its wait status."""
        checker.pipe.close()
        self._checkers.remove(checker)
        checker.job = None
        os.kill(checker.pid, signal.SIGKILL)
        status = os.waitpid(checker.pid, 0)[1]
        kill_children(but={c.pid for c in self._checkers})
        return status


def main(jobs_fd: int, results_fd: int, max_workers: int, limits: Limits, verifiers: tuple[str, ...]) -> None:
    """Load ``verifiers`` and serve until the pool closes its end or asks for an end by SIGTERM."""
    signal.signal(signal.SIGTERM, _end_now)
    adopt_orphans()
    for name in verifiers:
        VERIFIERS[name].load()
    VerifierServer(
        Connection(jobs_fd, writable=False), Connection(results_fd, readable=False), max_workers, limits
    ).serve()


def _end_now(*_: object) -> NoReturn:
    """Not an exception, which could be raised where none can get through."""
    kill_children()
    os._exit(0)
