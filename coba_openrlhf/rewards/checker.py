"""The process that checks answers: one at a time, within a memory limit, until it is told to stop or killed.

Forked by ``verifier_server.py`` from a process of one thread that has loaded the verifiers; runs nowhere else.
"""

import os
import pickle
import resource
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NoReturn

from .outcome import Outcome, failed, unscorable
from .process_tree import die_with_parent
from .verifiers import VERIFIERS, Limits


def run_checker(jobs: Connection, limits: Limits) -> NoReturn:
    """Answer jobs with ``(Outcome, is spent)`` until the other end closes; ends the process.

    Args:
        jobs: Both directions; a job is ``(verifier, pickled response and reference answer)``.
        limits: Memory is what may come on top of what the process holds now.
    """
    die_with_parent()
    _limit_memory(limits.memory_mb)
    status = 0
    try:
        while True:
            outcome, is_spent = _check(*jobs.recv(), limits)
            jobs.send((outcome, is_spent))
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass
    except BaseException:
        status = 1
    os._exit(status)


def _check(verifier: str, content: bytes, limits: Limits) -> tuple[Outcome, bool]:
    """The outcome, and whether this process should not be used again."""
    try:
        response, label = pickle.loads(content)
        return VERIFIERS[verifier].verify(response, label, limits), False
    except MemoryError:
        return unscorable(f"needed more than {limits.memory_mb} MB of memory"), True
    except Exception as error:
        return failed(error), False


def _limit_memory(megabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + megabytes * 2**20
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
