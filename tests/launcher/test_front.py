"""Caddy with our configuration: where requests go, what a client cannot pretend, and what it hears in a restart."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import socketserver
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import httpx
import pytest

from launcher import front
from launcher.process import Child, free_port, wait_until

CADDY = Path(sys.prefix) / "bin" / "caddy"


class Echo(BaseHTTPRequestHandler):
    """Answers with which process it stands for, and the request's headers."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        received = len(self.rfile.read(length))
        name = getattr(self.server, "name", "")
        body = {"process": name, "headers": dict(self.headers), "received": received}
        text = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = answer  # noqa: N815 (names that http.server calls)

    def log_message(self, *arguments: object) -> None:
        """Silent."""

    def address_string(self) -> str:
        return "unix"


class Upstream(socketserver.ThreadingUnixStreamServer):
    """One of the two processes behind Caddy."""

    daemon_threads = True

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        # Bound by a short name, as the real processes are: the path of the folder may be too long for a socket.
        here = Path.cwd()
        os.chdir(folder)
        try:
            super().__init__(f"{name}.sock", Echo)
        finally:
            os.chdir(here)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is nothing to report."""


@contextlib.contextmanager
def upstream(folder: Path, name: str) -> Iterator[None]:
    server = Upstream(folder, name)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
        (folder / f"{name}.sock").unlink()


@contextlib.contextmanager
def caddy(folder: Path, *, trusted_proxies: str = "") -> Iterator[str]:
    port = free_port(set())
    file = folder / "Caddyfile"
    file.write_text(front.configuration(host="127.0.0.1", port=port, trusted_proxies=trusted_proxies))
    child = Child(
        "front",
        [CADDY, "run", "--config", file, "--adapter", "caddyfile"],
        log=folder / "front.log",
        env=front.environment(folder),
        cwd=folder,
    )
    child.start()
    try:
        wait_until(lambda: _connects(port), child, timeout=30)
        yield f"http://127.0.0.1:{port}"
    finally:
        child.stop()


def _connects(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Caddy and both processes, in a folder whose path is longer than a socket's may be."""
    folder = tmp_path_factory.mktemp("front") / ("long" * 30) / "with a space"
    folder.mkdir(parents=True)
    with upstream(folder, "web"), upstream(folder, "streams"), caddy(folder) as url:
        assert (folder / "web.sock").is_socket()
        yield url


@pytest.mark.parametrize(
    ("method", "path", "headers", "process"),
    [
        ("GET", "/", {}, "web"),
        ("GET", "/v1/syntheses/0198", {}, "web"),
        ("GET", "/v1/syntheses/0198/audio", {}, "web"),
        ("POST", "/v1/syntheses", {}, "web"),
        ("POST", "/v1/syntheses", {"Prefer": "wait=20"}, "streams"),
        ("POST", "/v1/syntheses", {"Prefer": "respond-async, wait"}, "streams"),
        ("POST", "/v1/syntheses", {"Prefer": "respond-async"}, "web"),
        ("GET", "/v1/syntheses", {"Prefer": "wait"}, "web"),
        ("POST", "/v1/conversions", {"Prefer": "wait"}, "streams"),
        ("POST", "/v1/voices/0198/preview", {"Prefer": "wait"}, "streams"),
        ("POST", "/v1/voices/0198/preview", {}, "web"),
        ("GET", "/v1/syntheses/0198/events", {}, "streams"),
        ("POST", "/v1/audio/speech", {}, "streams"),
        ("POST", "/v1/audio/voices", {}, "web"),
        ("GET", "/v1/events", {}, "streams"),
        ("POST", "/v1/text-to-speech/0198/stream", {}, "streams"),
        ("GET", "/events/", {}, "streams"),
        ("GET", "/events/0198", {}, "streams"),
        ("GET", "/requests/0198/events/", {}, "streams"),
        ("GET", "/static/events.js", {}, "web"),
    ],
)
def test_what_waits_goes_to_the_streams_process(running, method, path, headers, process):
    answer = httpx.request(method, running + path, headers=headers, trust_env=False)
    assert answer.json()["process"] == process


def test_a_client_cannot_pretend_an_address(running):
    lies = {"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Proto": "https", "X-Forwarded-Host": "evil.example"}
    seen = httpx.get(running, headers=lies, trust_env=False).json()["headers"]
    assert seen["X-Forwarded-For"] == "127.0.0.1"
    assert seen["X-Forwarded-Proto"] == "http"
    assert seen["X-Forwarded-Host"] == seen["Host"] == running.removeprefix("http://")


def test_a_trusted_proxy_may_say_who_its_client_is(tmp_path):
    with upstream(tmp_path, "web"), caddy(tmp_path, trusted_proxies="127.0.0.1/32") as url:
        truth = {"X-Forwarded-For": "10.1.2.3", "X-Forwarded-Proto": "https"}
        seen = httpx.get(url, headers=truth, trust_env=False).json()["headers"]
    assert seen["X-Forwarded-For"] == "10.1.2.3, 127.0.0.1"
    assert seen["X-Forwarded-Proto"] == "https"


def test_a_body_below_the_limit_passes(running):
    body = b"x" * (front.BODY_LIMIT_MB - 1) * 1_000_000
    answer = httpx.post(f"{running}/v1/voices", content=body, trust_env=False, timeout=60)
    assert answer.json()["received"] == len(body)


def test_a_body_past_the_limit_is_refused_in_the_shape_of_the_api(running):
    size = (front.BODY_LIMIT_MB + 1) * 1_000_000
    answer = httpx.post(f"{running}/v1/voices", content=b"x" * size, trust_env=False, timeout=60)
    assert answer.status_code == 413
    assert answer.headers["x-request-id"]
    assert "server" not in answer.headers
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == "request_too_large"
    page = httpx.post(f"{running}/voices/new/", content=b"x" * size, trust_env=False, timeout=60)
    assert page.status_code == 413
    assert page.headers["content-type"].startswith("text/html")


def test_an_address_that_is_too_long_is_refused_in_the_shape_of_the_api(running):
    fits = httpx.get(f"{running}/v1/voices?search={'x' * 7900}", trust_env=False)
    assert fits.status_code == 200
    answer = httpx.get(f"{running}/v1/voices?search={'x' * 8000}", trust_env=False)
    assert answer.status_code == 414
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["error"]["code"] == "address_too_long"
    page = httpx.get(f"{running}/voices/?q={'x' * 8000}", trust_env=False)
    assert (page.status_code, page.headers["content-type"][:9]) == (414, "text/html")


def test_nothing_names_the_server(running):
    assert "server" not in httpx.get(running, trust_env=False).headers


def test_a_restart_behind_it_is_a_short_wait(tmp_path):
    with caddy(tmp_path) as url:
        answers: list[httpx.Response] = []
        sent = json.dumps({"text": "x" * 1000})
        thread = threading.Thread(
            target=lambda: answers.append(httpx.post(url, content=sent, trust_env=False, timeout=30))
        )
        thread.start()
        time.sleep(0.5)
        with upstream(tmp_path, "web"):
            thread.join(30)
    assert answers[0].status_code == 200
    assert answers[0].json()["received"] == len(sent)


def test_a_long_absence_is_said_in_the_shape_of_the_api_and_as_a_page(tmp_path, monkeypatch):
    monkeypatch.setattr(
        front,
        "_UPSTREAM",
        front._UPSTREAM.replace(f"lb_try_duration {front.RETRY_SECONDS}s", "lb_try_duration 1s"),
    )
    with caddy(tmp_path) as url:
        answer = httpx.get(f"{url}/v1/voices", trust_env=False)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "2")
        assert answer.json()["error"]["code"] == "unavailable"
        page = httpx.get(url, trust_env=False)
        assert page.status_code == 503
        assert "started again" in page.text
        assert "正在重新启动" in page.text


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::", "::1"])  # noqa: S104 (validated, not bound)
def test_caddy_takes_every_kind_of_address(tmp_path, host):
    file = tmp_path / "Caddyfile"
    file.write_text(front.configuration(host=host, port=8000, trusted_proxies="10.0.0.0/8 192.168.0.0/16"))
    done = subprocess.run(
        [CADDY, "validate", "--config", file, "--adapter", "caddyfile"],
        env=front.environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
