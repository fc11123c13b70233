"""Answer checking for anyone's own loop."""

import atexit
import os
import threading
from collections.abc import Sequence

from .outcome import Outcome
from .verifier_pool import VerifierPool

# Pools of this process by their settings: starting one takes a second, and callers call in loops.
_pools: dict[tuple[int, str, float, int, int, float], VerifierPool] = {}
_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def score_answers(
    responses: Sequence[str],
    golds: Sequence[object],
    *,
    verifier: str = "math",
    timeout: float = 5.0,
    memory_mb: int = 1024,
    max_workers: int | None = None,
    tolerance: float = 1e-6,
) -> list[Outcome]:
    """Check each response against its reference answer.

    Works from any thread or process, inside a running event loop (which it blocks; use ``asyncio.to_thread``), in
    daemon processes and in scripts without ``if __name__ == "__main__"``. The checking processes stay for the next
    call with the same settings and end with the calling process, or with ``close_pools``.

    Args:
        responses: What was written, without the prompts.
        golds: Reference answers, one per response.
        verifier: Name of a built-in verifier: exact, numeric, math, multiple_choice, code, reasoning_gym.
        timeout: Wall-clock seconds of one check.
        memory_mb: MiB of one check.
        max_workers: Checks at a time; None is one per processor.
        tolerance: Most that numbers may differ and still be equal (``numeric``), relative or absolute.

    Returns:
        One outcome per pair: ``score`` (1.0 right, 0.0 wrong, between with partial credit, None if a limit was hit or
        the verifier failed), ``reason`` and ``kind``.

    Raises:
        ValueError: An unknown verifier, lists of different lengths, limits that are not positive, or a
            tolerance that is negative or not finite.
        ImportError: The verifier's optional dependency is missing.

    Example:
        >>> [outcome.score for outcome in score_answers(["It is \\\\boxed{0.5}."], ["\\\\frac{1}{2}"])]
        [1.0]
    """
    if len(responses) != len(golds):
        raise ValueError(f"responses and golds must have the same length, got {len(responses)} and {len(golds)}")
    workers = max_workers if max_workers is not None else len(os.sched_getaffinity(0))
    for name, value in (("timeout", timeout), ("memory_mb", memory_mb), ("max_workers", workers)):
        if not value > 0:
            raise ValueError(f"{name} must be > 0, got {value}")
    pool = _pool(verifier, timeout, memory_mb, workers, tolerance)
    futures = [pool.submit(verifier, response, gold) for response, gold in zip(responses, golds, strict=True)]
    return [future.result() for future in futures]


def close_pools() -> None:
    """End the checking processes that ``score_answers`` has started in this process."""
    with _lock:
        pools = [pool for (pid, *_), pool in _pools.items() if pid == os.getpid()]
        _pools.clear()
    for pool in pools:
        pool.close()


def _pool(verifier: str, timeout: float, memory_mb: int, max_workers: int, tolerance: float) -> VerifierPool:
    key = (os.getpid(), verifier, timeout, memory_mb, max_workers, tolerance)  # a fork must not use its parent's
    with _lock:
        if key not in _pools:
            _pools[key] = VerifierPool([verifier], timeout, memory_mb, max_workers, tolerance)
        return _pools[key]


atexit.register(close_pools)
