"""A server on this machine that answers as the Hugging Face hub does, for one process to download data sets from.

    HF_ENDPOINT ==> /api/datasets/NAME, /api/datasets/NAME/tree/COMMIT, /datasets/NAME/resolve/COMMIT/FILE
                    large files ==> another host, /cdn/SHA-256

Routes, headers and error codes are those that ``huggingface_hub`` asks for and reads; Xet, which the hub offers besides
plain downloads, is not offered.
"""

import hashlib
import json
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

LARGE = (".parquet", ".json")


@dataclass
class Repository:
    """A data set: its files by path, the metadata of its card, the commit that is the newest.

    ``refusal`` is a status and an error code for every question, ``file_refusal`` for every question for a file.
    """

    files: dict[str, bytes] = field(default_factory=dict)
    card: dict[str, object] | None = None
    commit: str = "1" * 40
    refusal: tuple[int, str] | None = None
    file_refusal: tuple[int, str] | None = None
    is_silent: bool = False


class FakeHub:
    """Serves ``repositories`` until ``close``; ``asked`` has the paths of all questions."""

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[str] = []
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def cdn_url(self) -> str:
        """Another host as far as names go: redirects to the hub itself are followed and answered by the target."""
        return f"http://localhost:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: FakeHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        path = unquote(urlsplit(self.path).path)
        self.hub.asked.append(path)
        match path.strip("/").split("/"):
            case ["api", "datasets", owner, name, *rest]:
                self._answer(f"{owner}/{name}", self._about, rest)
            case ["datasets", owner, name, "resolve", _, *file]:
                self._answer(f"{owner}/{name}", self._file, file)
            case ["cdn", digest]:
                contents = (c for r in self.hub.repositories.values() for c in r.files.values())
                self._send(200, next(c for c in contents if hashlib.sha256(c).hexdigest() == digest))
            case _:
                self._refuse(404, "")

    do_HEAD = do_GET

    def _answer(self, name, how, rest):
        repository = self.hub.repositories.get(name)
        if repository is None:
            self._refuse(401, "RepoNotFound")  # without a token the hub does not tell what is private
        elif repository.refusal:
            self._refuse(*repository.refusal)
        else:
            if repository.is_silent:
                time.sleep(60)
            how(name, repository, rest)

    def _about(self, name, repository, rest):
        if rest[:1] == ["tree"]:
            folder = "/".join(rest[2:])
            files = {f: c for f, c in repository.files.items() if not folder or f.startswith(f"{folder}/")}
            if not files:
                self._refuse(404, "EntryNotFound")
            elif "recursive=true" in self.path.lower():
                self._json([_entry(file, content) for file, content in files.items()])
            else:
                depth = len(folder.split("/")) + 1 if folder else 1
                entries = {"/".join(f.split("/")[:depth]): _entry(f, c) for f, c in files.items()}
                self._json([e if e["path"] == p else _folder(p) for p, e in entries.items()])
        else:
            names = [{"rfilename": file} for file in repository.files]
            self._json({"id": name, "sha": repository.commit, "cardData": repository.card, "siblings": names})

    def _file(self, name, repository, rest):
        content = repository.files.get("/".join(rest))
        commit = {"X-Repo-Commit": repository.commit}
        if repository.file_refusal:
            self._refuse(*repository.file_refusal)
        elif content is None:
            self._refuse(404, "EntryNotFound", commit)
        elif rest[-1].endswith(LARGE):
            digest = hashlib.sha256(content).hexdigest()
            headers = {"Location": f"{self.hub.cdn_url}/cdn/{digest}", "X-Linked-Size": str(len(content))}
            self._send(302, b"", commit | headers | {"X-Linked-Etag": f'"{digest}"', "ETag": '"x"'})
        else:
            self._send(200, content, commit | {"ETag": f'"{hashlib.sha1(content).hexdigest()}"'})

    def _refuse(self, status, code, headers=()):
        self._json({"error": code}, status, {"X-Error-Code": code, "X-Error-Message": code, **dict(headers)})

    def _json(self, value, status=200, headers=()):
        self._send(status, json.dumps(value).encode(), {"Content-Type": "application/json", **dict(headers)})

    def _send(self, status, content, headers=()):
        self.send_response(status)
        for name, value in {**dict(headers), "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)


def _entry(file, content):
    return {"type": "file", "path": file, "size": len(content), "oid": hashlib.sha1(content).hexdigest()}


def _folder(path):
    return {"type": "directory", "path": path, "size": 0, "oid": "0" * 40}
