"""A Ray cluster of the tests' own: free ports, own folder, own process group; ended by group id."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import psutil

from coba_openrlhf.ray_ready import wait_until_ready

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    """A port that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class LocalRay:
    """``ray start --head`` as a child process.

    Attributes:
        address: For ``ray.init``.
        dashboard: For ``ray job submit``.
    """

    def __init__(self, num_gpus: int) -> None:
        # Ray gives its dashboard a fixed time to start and gives up on a busy machine; nothing of the try is left.
        for attempts_left in (2, 1, 0):
            self._start(num_gpus)
            try:
                self._wait_until_up()
                return
            except RuntimeError:
                self.stop()
                if not attempts_left:
                    raise

    def _start(self, num_gpus: int) -> None:
        # Short: the names of Ray's sockets lie below it and must fit in 107 bytes.
        self._folder = tempfile.mkdtemp(prefix="coba.", dir="/tmp")
        port, dashboard, agent = free_port(), free_port(), free_port()
        self.address = f"127.0.0.1:{port}"
        self.dashboard = f"http://127.0.0.1:{dashboard}"
        self._agent = f"http://127.0.0.1:{agent}"
        self._log = open(Path(self._folder) / "start.log", "wb")  # noqa: SIM115 - closed in stop()
        self._process = subprocess.Popen(
            [str(Path(sys.executable).parent / "ray"), "start", "--head", "--block", "--node-ip-address", "127.0.0.1"]
            + ["--port", str(port), "--dashboard-port", str(dashboard), "--dashboard-host", "127.0.0.1"]
            + ["--dashboard-agent-listen-port", str(agent)]
            + ["--num-cpus", "32", "--num-gpus", str(num_gpus), "--temp-dir", self._folder, "--disable-usage-stats"],
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env=environment(),
        )

    def _wait_until_up(self) -> None:
        end = time.monotonic() + 120
        while True:
            if self._process.poll() is not None:
                raise RuntimeError((Path(self._folder) / "start.log").read_text())
            try:
                wait_until_ready(self.dashboard, self._agent, 1)
                return
            except TimeoutError as error:
                if time.monotonic() > end:
                    raise RuntimeError("Ray did not come up within two minutes") from error

    def submit(self, *arguments: str) -> subprocess.Popen:
        """``ray job submit -- python -m coba_openrlhf.train_grpo ...`` with its output in a pipe."""
        return subprocess.Popen(
            [str(Path(sys.executable).parent / "ray"), "job", "submit", "--address", self.dashboard, "--"]
            + [sys.executable, "-m", "coba_openrlhf.train_grpo", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment(),
        )

    def actor_pids(self, class_name: str) -> set[int]:
        """Processes below this cluster that run an actor of the class."""
        pids = set()
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if process.cmdline()[:1] and process.cmdline()[0].startswith(f"ray::{class_name}"):
                    pids.add(process.pid)
        return pids

    def last_job_status(self) -> str:
        """Status of the job that was submitted last, e.g. ``FAILED``."""
        with urllib.request.urlopen(f"{self.dashboard}/api/jobs/", timeout=10) as reply:
            jobs = [job for job in json.load(reply) if job["type"] == "SUBMISSION"]
        return max(jobs, key=lambda job: job["start_time"])["status"]

    def stop_jobs(self) -> None:
        """Stop jobs that still run, for a test that ends early."""
        with urllib.request.urlopen(f"{self.dashboard}/api/jobs/", timeout=10) as reply:
            running = [job["submission_id"] for job in json.load(reply) if job["status"] == "RUNNING"]
        for submission_id in filter(None, running):
            request = urllib.request.Request(f"{self.dashboard}/api/jobs/{submission_id}/stop", method="POST")
            urllib.request.urlopen(request, timeout=10).close()

    def stop(self) -> None:
        """End the cluster and what it started, and remove its folder."""
        for sent in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, sent)
                self._process.wait(timeout=30)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue
        self._log.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def environment() -> dict[str, str]:
    """This process's environment without another cluster's address."""
    dropped = ("RAY_ADDRESS", "RAY_JOB_CONFIG_JSON_ENV_VAR")
    return {k: v for k, v in os.environ.items() if k not in dropped} | {"RAY_USAGE_STATS_ENABLED": "0"}
