"""Wait until a Ray that was just started takes jobs.

    python -m coba_openrlhf.ray_ready --dashboard http://127.0.0.1:8265 --agent http://127.0.0.1:52365

Ray's dashboard answers before the agent that starts jobs is up, and then refuses jobs after ten seconds ("No available
agent to submit job"), which is not enough on a fresh machine, where the agent's modules are compiled at first.
"""

import argparse
import http.client
import os
import sys
import time
import urllib.request
from collections.abc import Sequence

DASHBOARD_PATH, AGENT_PATH = "/api/version", "/api/local_raylet_healthz"
INTERVAL_SECONDS = 0.5


def wait_until_ready(dashboard: str, agent: str, seconds: float, pid: int | None = None) -> None:
    """Return as soon as both answer.

    Args:
        dashboard: URL of the dashboard.
        agent: URL of the head node's agent (``ray start --dashboard-agent-listen-port``).
        seconds: Longest time for both together.
        pid: Of ``ray start --block``; when that process has ended there is nothing to wait for.

    Raises:
        TimeoutError: One of them does not answer; the message says which.
        ChildProcessError: The process has ended.
    """
    end = time.monotonic() + seconds
    for name, url in (("dashboard", dashboard + DASHBOARD_PATH), ("job agent", agent + AGENT_PATH)):
        while not _answers(url):
            if pid is not None and not _is_running(pid):
                raise ChildProcessError("Ray did not start: its process has ended")
            if time.monotonic() >= end:
                raise TimeoutError(f"Ray's {name} ({url}) did not answer within {seconds:g} s")
            time.sleep(INTERVAL_SECONDS)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):
            return True
    except (OSError, http.client.HTTPException):
        return False


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; the exit status is 1 when Ray did not come up in time."""
    parser = argparse.ArgumentParser(prog="python -m coba_openrlhf.ray_ready", description=__doc__.splitlines()[0])
    parser.add_argument("--dashboard", required=True, help="URL of Ray's dashboard")
    parser.add_argument("--agent", required=True, help="URL of the head node's dashboard agent")
    parser.add_argument("--pid", type=int, help="process of `ray start --block`; stop waiting when it has ended")
    parser.add_argument("--seconds", type=float, default=120.0, help="longest time to wait")
    arguments = parser.parse_args(argv)
    try:
        wait_until_ready(arguments.dashboard, arguments.agent, arguments.seconds, arguments.pid)
    except (TimeoutError, ChildProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
