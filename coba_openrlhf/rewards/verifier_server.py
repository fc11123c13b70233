"""The process between a pool and its checkers: a pebble ``ProcessPool`` behind a pipe.

    VerifierPool (any process) == pipes ==> serve (pebble) ==> check in a worker (forked, killable)

``VerifierPool`` starts it as ``python -c BOOTSTRAP``, not through multiprocessing: that would run the caller's main
script again, and refuses to work inside a daemon process. Verifiers are loaded here, once; a worker is a fork of this
process and takes milliseconds to replace. When the pool's process ends in whatever way, its pipe closes, and everything
here ends.
"""

import contextlib
import os
import signal
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as CheckTimeout
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NoReturn

from pebble import ProcessExpired, ProcessPool

from .checker import OUT_OF_MEMORY, check, start_checker
from .outcome import Outcome, failed, unscorable
from .process_tree import adopt_orphans, kill_children, kill_strays
from .verifiers import VERIFIERS, Limits

Job = tuple[int, str, bytes]  # number, verifier, pickled response and reference answer
Result = tuple[int, Outcome]


class VerifierServer:
    """Serves jobs until the pool closes its end.

    Args:
        jobs: Where lists of jobs come in.
        results: Where lists of results go.
        max_workers: Checks at a time.
        limits: Of one check.
    """

    def __init__(self, jobs: Connection, results: Connection, max_workers: int, limits: Limits) -> None:
        self._jobs = jobs
        self._results = results
        self._limits = limits
        self._lock = threading.Lock()
        # Forked, because verifiers are loaded here; this process has no threads but pebble's.
        self._pool = ProcessPool(
            max_workers=max_workers,
            context=get_context("fork"),
            initializer=start_checker,
            initargs=(limits, os.getpid(), (jobs.fileno(), results.fileno())),
        )

    def serve(self) -> None:
        """Run until the pool's end of the pipe closes."""
        with contextlib.suppress(EOFError):
            while True:
                for number, verifier, content in self._jobs.recv():
                    seconds = self._limits.seconds + VERIFIERS[verifier].grace_seconds
                    try:
                        future = self._pool.schedule(check, args=(verifier, content, self._limits), timeout=seconds)
                    except RuntimeError:  # a worker has ended without a job, after which pebble takes no more
                        end_now()
                    future.add_done_callback(partial(self._finish, number))

    def _finish(self, number: int, future: "Future[Outcome]") -> None:
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            # ``VerifierPool`` starts another server and tries again.
            end_now()
        if isinstance(error, CheckTimeout | ProcessExpired):
            kill_strays()
        # The pool may be gone; the main thread then reads the end of its pipe.
        with contextlib.suppress(BrokenPipeError), self._lock:
            self._results.send([(number, future.result() if error is None else self._outcome_of(error))])

    def _outcome_of(self, error: BaseException) -> Outcome:
        if isinstance(error, CheckTimeout):
            return unscorable(f"took longer than {self._limits.seconds:g} s")
        if not isinstance(error, ProcessExpired):
            return failed(error)
        if error.exitcode == OUT_OF_MEMORY:
            return unscorable(f"needed more than {self._limits.memory_mb} MB of memory")
        how = f"signal {-error.exitcode}" if error.exitcode < 0 else f"status {error.exitcode}"
        return unscorable(f"the process of the check ended with {how}")


def main(jobs_fd: int, results_fd: int, max_workers: int, limits: Limits, verifiers: tuple[str, ...]) -> None:
    """Load ``verifiers`` and serve until the pool closes its end or asks for an end by SIGTERM."""
    signal.signal(signal.SIGTERM, end_now)
    adopt_orphans()
    for name in verifiers:
        VERIFIERS[name].load()
    jobs, results = Connection(jobs_fd, writable=False), Connection(results_fd, readable=False)
    VerifierServer(jobs, results, max_workers, limits).serve()
    end_now()


def end_now(*_: object) -> NoReturn:
    """Not an exception, which could be raised where none can get through, and no waiting for checks that run."""
    kill_children()
    os._exit(0)
