"""What runs in the processes that check answers: within a memory limit, until they are told to stop or killed.

Forked by pebble from ``verifier_server.py``, which has loaded the verifiers; runs nowhere else.
"""

import os
import pickle
import resource
import signal
from pathlib import Path

from .outcome import Outcome, failed
from .process_tree import die_with_parent
from .verifiers import VERIFIERS, Limits

# Exit status; the process is not fit for another check.
OUT_OF_MEMORY = 77


def start_checker(limits: Limits, server_pid: int, foreign_fds: tuple[int, ...]) -> None:
    """Prepare a new process.

    Args:
        limits: Memory is what may come on top of what the process holds now.
        server_pid: The process that this one ends with.
        foreign_fds: The server's own pipes: a copy of them here would hide that the server has ended.
    """
    die_with_parent(server_pid)
    # Pebble's handler is Python code, which a long computation in C keeps waiting.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for fd in foreign_fds:
        os.close(fd)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + limits.memory_mb * 2**20
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def check(verifier: str, content: bytes, limits: Limits) -> Outcome:
    """Check one answer.

    Args:
        verifier: Name in ``VERIFIERS``.
        content: The pickled response and reference answer.
        limits: Those of this check.
    """
    try:
        response, label = pickle.loads(content)
        return VERIFIERS[verifier].verify(response, label, limits)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    except Exception as error:
        return failed(error)
