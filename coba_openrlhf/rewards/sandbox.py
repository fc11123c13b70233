"""Run a Python program that nobody has read.

Limits: wall-clock and processor time, memory, size of a file, open files, number of processes. Where the machine lets
users make namespaces (``unshare``), there is no network and everything the program starts dies with it; elsewhere its
process group is killed, and whatever has left the group is adopted and killed too. It has a temporary folder and an
environment of its own, but it can read what its user can read: do not run it where secrets lie.
"""

import contextlib
import functools
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from .process_tree import adopt_orphans, die_with_parent, kill_children, num_descendants

FILE_BYTES = 16 * 2**20
OPEN_FILES = 64
PROCESSES = 32
READ_BYTES = 2**20
POLL_SECONDS = 0.01
NAMESPACES = ("unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child=SIGKILL")


@dataclass(frozen=True)
class ProgramRun:
    """What a program did.

    Attributes:
        stdout: The first mebibyte of its output.
        problem: Why it did not end by itself with status 0; empty if it did.
    """

    stdout: str
    problem: str


@functools.cache
def isolation() -> tuple[str, ...]:
    """The command before the program: namespaces where they can be made, else nothing."""
    if shutil.which(NAMESPACES[0]) is None:
        return ()
    works = subprocess.run([*NAMESPACES, "true"], capture_output=True, check=False).returncode == 0
    return NAMESPACES if works else ()


def run_program(files: dict[str, str], main: str, stdin: str, seconds: float, memory_mb: int) -> ProgramRun:
    """Run ``main``, one of ``files``, in a folder that holds them; the calling process must have no other children.

    Args:
        files: Name -> content.
        main: Name of the program.
        stdin: Its input.
        seconds: Wall-clock and processor time.
        memory_mb: MiB of address space per process.
    """
    adopt_orphans()
    with tempfile.TemporaryDirectory(prefix="sandbox-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for file, content in {**files, ".stdin": stdin}.items():
            (folder / file).write_text(content, encoding="utf-8", errors="replace")
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(open(folder / s, m)) for s, m in ((".stdin", "rb"), (".out", "wb"))]
            errors = stack.enter_context(open(folder / ".err", "wb"))
            process = subprocess.Popen(
                [*isolation(), sys.executable, "-I", "-B", main],
                cwd=folder,
                env={"PATH": "/usr/bin:/bin", "HOME": name, "TMPDIR": name, "PYTHONIOENCODING": "utf-8"},
                stdin=streams[0],
                stdout=streams[1],
                stderr=errors,
                start_new_session=True,
                preexec_fn=functools.partial(_confine, seconds, memory_mb),
            )
            try:
                problem = _wait(process, seconds)
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                with contextlib.suppress(ChildProcessError):
                    process.wait()
                kill_children()
        if problem == "failed":
            last = _read(folder / ".err").strip().rpartition("\n")[2]
            problem = last[:200] or f"status {process.returncode}"
        return ProgramRun(_read(folder / ".out"), problem)


def _wait(process: subprocess.Popen, seconds: float) -> str:
    deadline = time.monotonic() + seconds
    while process.poll() is None:
        if time.monotonic() > deadline:
            return f"took longer than {seconds:.3g} s"
        if num_descendants(process.pid) > PROCESSES:
            return f"started more than {PROCESSES} processes"
        time.sleep(POLL_SECONDS)
    return "" if process.returncode == 0 else "failed"


def _confine(seconds: float, memory_mb: int) -> None:
    """Runs in the new process before the program."""
    die_with_parent()
    for kind, limit in (
        (resource.RLIMIT_AS, memory_mb * 2**20),
        (resource.RLIMIT_CPU, int(seconds) + 1),
        (resource.RLIMIT_FSIZE, FILE_BYTES),
        (resource.RLIMIT_NOFILE, OPEN_FILES),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(kind)[1]
        limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (limit, limit))


def _read(file: Path) -> str:
    with open(file, "rb") as stream:
        return stream.read(READ_BYTES).decode("utf-8", "replace")
