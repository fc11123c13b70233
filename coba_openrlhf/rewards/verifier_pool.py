"""Answer checking in worker processes that can be killed."""

import asyncio
import logging
from concurrent.futures import TimeoutError as CheckTimeout
from multiprocessing import get_context

from pebble import ProcessExpired, ProcessPool

from .verifiers import VERIFIERS


def _start_worker(verifier: str) -> None:
    # math-verify warns about its switched-off time limits at every call; the pool keeps the limit.
    logging.getLogger("math_verify").setLevel(logging.ERROR)
    if verifier == "math":
        # Loads sympy, which takes a second: not part of the first check's time.
        import math_verify  # noqa: F401


def _check(verifier: str, response: str, label: str) -> float:
    return VERIFIERS[verifier](response, label)


class VerifierPool:
    """Runs one built-in verifier in worker processes; works the same from any thread or event loop.

    Args:
        verifier: Name in ``VERIFIERS``.
        timeout: Seconds one check may take; its worker is then killed and replaced.
        max_workers: Worker processes.
    """

    def __init__(self, verifier: str, timeout: float, max_workers: int = 1) -> None:
        self._verifier = verifier
        self._timeout = timeout
        # Spawned, not forked: an engine's process is full of threads, and a forked lock stays locked.
        self._pool = ProcessPool(
            max_workers=max_workers, context=get_context("spawn"), initializer=_start_worker, initargs=(verifier,)
        )

    async def score(self, response: str, label: str) -> float | None:
        """Score of one response, or None when the check ran into its time limit or took its worker down.

        Raises:
            Exception: Whatever the verifier raised, with the worker's traceback.
        """
        future = self._pool.schedule(_check, args=(self._verifier, response, label), timeout=self._timeout)
        try:
            return await asyncio.wrap_future(future)
        except (CheckTimeout, ProcessExpired):
            return None

    def close(self) -> None:
        """Stop the workers."""
        self._pool.stop()
        self._pool.join()
