"""Linux: no process outlives the one that is responsible for it."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def die_with_parent() -> None:
    """From now on the kernel kills this process when its parent ends."""
    parent = os.getppid()
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants of this process whose parent ends become its children, wherever they have moved to."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_children(but: set[int] = frozenset()) -> None:  # type: ignore[assignment]
    """Kill and reap all children of this process, and theirs as far as ``adopt_orphans`` makes them its own.

    Args:
        but: Process ids that are spared.
    """
    while children := _children() - but:
        for pid in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> set[int]:
    file = Path(f"/proc/self/task/{os.getpid()}/children")
    try:
        return {int(pid) for pid in file.read_text().split()}
    except OSError:  # not Linux, or a kernel without this file
        return set()


def _prctl(option: int, value: int) -> None:
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def num_descendants(pid: int) -> int:
    """Processes that ``pid`` and its descendants have started and that still run."""
    count, parents = 0, [pid]
    while parents:
        children: list[int] = []
        for parent in parents:
            with contextlib.suppress(OSError):
                children += map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
        count += len(children)
        parents = children
    return count
