"""Answer checking in processes that can be killed, the same from any thread, event loop or process."""

import asyncio
import contextlib
import math
import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from .outcome import Outcome, failed, unscorable
from .verifiers import VERIFIERS, Limits

PACKAGE = Path(__file__).parents[1]
# The package's own __init__ would load numba, whose threads a fork must not have; a bare module stands for it.
BOOTSTRAP = """
import sys, types
sys.path[:] = {path!r}
package = types.ModuleType("coba_openrlhf")
package.__path__ = [{package!r}]
sys.modules["coba_openrlhf"] = package
from coba_openrlhf.rewards.verifier_server import main
from coba_openrlhf.rewards.verifiers import Limits
main({jobs}, {results}, {workers}, Limits({seconds!r}, {memory_mb!r}, {tolerance!r}), {verifiers!r})
"""
# Server processes that may end under a job before the job is given up.
MAX_ATTEMPTS = 3
CLOSE_SECONDS = 5
MOST_AT_ONCE = 64
# A worker holds a job several times while it takes it; without memory for that the job would be lost.
COPIES = 8


class VerifierPool:
    """Checks answers by built-in verifiers; every method may be called from any thread.

    Its processes start with the first check that is not ``quick`` (or with ``start``) and end with ``close``, or when
    the process that made the pool ends, however it does. A forked copy of a pool must not be used.

    Args:
        verifiers: Those that will be used, loaded before the first check.
        timeout: Wall-clock seconds of one check; its process is then killed and replaced.
        memory_mb: MiB that one check may take on top of the loaded verifiers.
        max_workers: Checks at a time.
        tolerance: Most that numbers may differ and still be equal (``numeric``), relative or absolute.

    Raises:
        ValueError: An unknown verifier, or a tolerance that is negative or not finite.
        ImportError: One whose optional dependency is missing.
    """

    def __init__(
        self,
        verifiers: Iterable[str],
        timeout: float = 5.0,
        memory_mb: int = 1024,
        max_workers: int = 1,
        tolerance: float = 1e-6,
    ) -> None:
        require_tolerance(tolerance)
        self._verifiers = tuple(dict.fromkeys(verifiers))
        for name in self._verifiers:
            require_verifier(name)
            VERIFIERS[name].require_installed()
        self._limits = Limits(float(timeout), memory_mb, float(tolerance))
        self._max_workers = max_workers
        self._lock = threading.Lock()
        self._server: _Server | None = None
        self._is_closed = False

    def start(self) -> None:
        """Start the processes now, without waiting for them."""
        with self._lock:
            self._running_server()

    def submit(self, verifier: str, response: str, label: object) -> "Future[Outcome]":
        """Check one response; the future never has an exception.

        Raises:
            RuntimeError: The pool is closed.
        """
        future: Future[Outcome] = Future()
        future.set_running_or_notify_cancel()  # a check is not called back
        try:
            outcome = VERIFIERS[verifier].quick(response, label, self._limits)
            content = b"" if outcome else pickle.dumps((response, label))
            if COPIES * len(content) > self._limits.memory_mb * 2**20:
                outcome = unscorable(f"needed more than {self._limits.memory_mb} MB of memory")
        except Exception as error:
            outcome = failed(error)
        if outcome is not None:
            future.set_result(outcome)
        else:
            self._send(_Pending(future, verifier, content))
        return future

    async def score(self, verifier: str, response: str, label: object) -> Outcome:
        """Check one response without holding up the event loop."""
        return await asyncio.wrap_future(self.submit(verifier, response, label))

    def close(self) -> None:
        """End the processes; checks that still run are unscorable."""
        with self._lock:
            self._is_closed = True
            server, self._server = self._server, None
        if server is not None:
            server.close()

    def _send(self, pending: "_Pending") -> None:
        with self._lock:
            while True:
                if self._is_closed:
                    raise RuntimeError("the verifier pool is closed")
                if self._running_server().send(pending):
                    return

    def _running_server(self) -> "_Server":
        if self._server is None or self._server.has_ended:
            self._server = _Server(self._verifiers, self._limits, self._max_workers, self._server_ended)
        return self._server

    def _server_ended(self, left: list["_Pending"]) -> None:
        """The server process ended under jobs, which no answer should bring about: try them in another one."""
        for pending in left:
            pending.attempts += 1
            if pending.attempts >= MAX_ATTEMPTS:
                pending.future.set_result(unscorable("the verifier process ended during the check"))
                continue
            try:
                self._send(pending)
            except RuntimeError:
                pending.future.set_result(unscorable("the verifier pool was closed during the check"))
            except OSError as error:  # no other process can be started
                pending.future.set_result(failed(error))


def require_verifier(name: str) -> None:
    """Refuse an unknown verifier.

    Raises:
        ValueError: With the names that there are.
    """
    if name not in VERIFIERS:
        raise ValueError(f"unknown verifier {name!r}; there are {', '.join(VERIFIERS)}")


def require_tolerance(tolerance: float) -> None:
    """Refuse a tolerance that is none.

    Raises:
        ValueError: With the rule and the value.
    """
    if not (math.isfinite(tolerance) and tolerance >= 0):
        raise ValueError(f"tolerance must be finite and >= 0, got {tolerance}")


@dataclass(eq=False)
class _Pending:
    """A job on its way; ``content`` is the pickled response and reference answer."""

    future: "Future[Outcome]"
    verifier: str
    content: bytes
    attempts: int = 0


class _Server:
    """A server process, a thread that writes to it and one that reads from it.

    Args:
        verifiers, limits, max_workers: As in ``VerifierPool``.
        on_end: Gets the jobs that are left when the process ends.
    """

    def __init__(
        self,
        verifiers: tuple[str, ...],
        limits: Limits,
        max_workers: int,
        on_end: Callable[[list[_Pending]], None],
    ) -> None:
        self.has_ended = False
        self._on_end = on_end
        self._pending: dict[int, _Pending] = {}
        self._outbox: queue.SimpleQueue[tuple[int, str, bytes] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._num_sent = 0
        jobs_read, jobs_write = os.pipe()
        results_read, results_write = os.pipe()
        code = BOOTSTRAP.format(
            path=[entry or os.getcwd() for entry in sys.path],
            package=str(PACKAGE),
            jobs=jobs_read,
            results=results_write,
            workers=max_workers,
            seconds=limits.seconds,
            memory_mb=limits.memory_mb,
            tolerance=limits.tolerance,
            verifiers=verifiers,
        )
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=(jobs_read, results_write),
            start_new_session=True,  # Ctrl-C is for the run; this process ends with its pipe
        )
        os.close(jobs_read)
        os.close(results_write)
        self._jobs = Connection(jobs_write, readable=False)
        self._results = Connection(results_read, writable=False)
        self._threads = [threading.Thread(target=work, daemon=True) for work in (self._write, self._read)]
        for thread in self._threads:
            thread.start()

    def send(self, pending: _Pending) -> bool:
        """Hand over a job and return at once; False if the process has ended."""
        with self._lock:
            if self.has_ended:
                return False
            number = self._num_sent
            self._num_sent += 1
            self._pending[number] = pending
            self._outbox.put((number, pending.verifier, pending.content))
        return True

    def close(self) -> None:
        """End the process and its checkers; what is left gets an outcome."""
        self._on_end = _give_up
        self._process.terminate()
        try:
            self._process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
        for thread in self._threads:
            thread.join(CLOSE_SECONDS)

    def _write(self) -> None:
        """Jobs in the outbox, as many at a time as there are; this thread may block, callers of ``send`` do not."""
        with contextlib.suppress(OSError):
            is_open = True
            while is_open:
                items = [self._outbox.get()]
                with contextlib.suppress(queue.Empty):
                    while len(items) < MOST_AT_ONCE:
                        items.append(self._outbox.get_nowait())
                is_open = None not in items
                jobs = [item for item in items if item is not None]
                if jobs:
                    self._jobs.send(jobs)
        self._jobs.close()

    def _read(self) -> None:
        with contextlib.suppress(EOFError, OSError):
            while True:
                for number, outcome in self._results.recv():
                    with self._lock:
                        pending = self._pending.pop(number)
                    pending.future.set_result(outcome)
        self._results.close()
        self._process.wait()
        with self._lock:
            self.has_ended = True
            left = list(self._pending.values())
            self._pending.clear()
            self._outbox.put(None)
        self._on_end(left)


def _give_up(left: list[_Pending]) -> None:
    for pending in left:
        pending.future.set_result(unscorable("the verifier pool was closed during the check"))
