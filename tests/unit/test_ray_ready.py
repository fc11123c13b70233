"""A job is submitted only when Ray's job agent answers, not as soon as its dashboard does."""

import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from coba_openrlhf.ray_ready import AGENT_PATH, DASHBOARD_PATH, main, wait_until_ready

ROOT = Path(__file__).parents[2]


class Server:
    """Answers one path with 200 from ``ready_at`` on, and 503 before."""

    def __init__(self, path: str, delay: float = 0.0) -> None:
        self.ready_at = time.monotonic() + delay
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                is_ready = self.path == path and time.monotonic() >= server.ready_at
                self.send_response(200 if is_ready else 503)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._http = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def serve():
    servers = []

    def start(path, delay=0.0):
        servers.append(Server(path, delay))
        return servers[-1]

    yield start
    for server in servers:
        server.stop()


def test_the_agent_is_waited_for_after_the_dashboard(serve):
    dashboard, agent = serve(DASHBOARD_PATH), serve(AGENT_PATH, delay=1.5)
    wait_until_ready(dashboard.url, agent.url, 20)
    assert time.monotonic() >= agent.ready_at


def test_an_agent_that_never_comes_is_an_error(serve, capsys):
    dashboard, agent = serve(DASHBOARD_PATH), serve(AGENT_PATH, delay=1e6)
    assert main(["--dashboard", dashboard.url, "--agent", agent.url, "--seconds", "0.6"]) == 1
    assert f"job agent ({agent.url}{AGENT_PATH}) did not answer within 0.6 s" in capsys.readouterr().err
    agent.stop()
    with pytest.raises(TimeoutError, match="job agent"):
        wait_until_ready(dashboard.url, agent.url, 0.6)


def test_a_ray_that_has_ended_is_not_waited_for(serve):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    with pytest.raises(ChildProcessError, match="has ended"):
        wait_until_ready(serve(DASHBOARD_PATH).url, serve(AGENT_PATH, delay=1e6).url, 60, ended.pid)


def test_what_starts_ray_waits_for_the_agent_before_it_submits():
    for name in ("quickstart_cpu.sh", "submit.sh"):
        script = (ROOT / "examples/scripts" / name).read_text()
        assert script.index("ray start") < script.index("coba_openrlhf.ray_ready") < script.index("\nray job submit")
