"""Linux: no process outlives the one that is responsible for it."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36


def die_with_parent(parent: int | None = None) -> None:
    """From now on the kernel kills this process when its parent ends.

    Args:
        parent: Process id of the parent, where it may have ended already; by default the present one.
    """
    parent = os.getppid() if parent is None else parent
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it had ended before
        os._exit(1)


def adopt_orphans() -> None:
    """Descendants of this process whose parent ends become its children, wherever they have moved to."""
    _prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_children() -> None:
    """Kill and reap all children of this process, and theirs as far as ``adopt_orphans`` makes them its own."""
    while children := _children():
        _kill(children)


def kill_strays() -> None:
    """``kill_children`` for those that have a session of their own, as programs do that a child has started."""
    while strays := {pid for pid in _children() if _session(pid) not in (os.getsid(0), None)}:
        _kill(strays)


def _kill(pids: set[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for pid in pids:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)


def _session(pid: int) -> int | None:
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid)
    return None


def _children() -> set[int]:
    """Children of all threads; empty where there is no Linux, or no such file."""
    children: set[int] = set()
    for file in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            children |= {int(pid) for pid in file.read_text().split()}
    return children


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
