"""Requests to addresses that somebody else chose: never inwards, never for long, never too much."""

from __future__ import annotations

import hashlib
import hmac
import socket
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from accounts import outgoing


class Handler(BaseHTTPRequestHandler):
    """Answers as `server.script` says: a function of the handler."""

    def do_GET(self):
        self.server.seen.append((self.command, self.path, dict(self.headers)))
        self.server.script(self)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.command, self.path, dict(self.headers), body))
        self.server.script(self)

    def log_message(self, *_arguments):
        pass


@contextmanager
def serve(script):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.script, server.seen = script, []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    server.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def answer(status=200, body=b"", **headers):
    def script(handler):
        handler.send_response(status)
        for name, value in ({"Content-Length": str(len(body))} | headers).items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return script


INTERNAL = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",  # noqa: S104 (never bound)
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2001::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "ff02::1",
]


@pytest.mark.parametrize("address", INTERNAL)
def test_internal_addresses_are_refused(address, monkeypatch):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *_a, **_k: [(family, socket.SOCK_STREAM, 6, "", (address, 80))]
    )

    def connect(*_arguments):
        raise AssertionError("connected")

    monkeypatch.setattr(socket, "create_connection", connect)
    for attempt in (
        lambda: outgoing.post("http://example.org/", b"{}"),
        lambda: outgoing.fetch("http://example.org/", most=10),
        lambda: outgoing.check("http://example.org/"),
    ):
        with pytest.raises(outgoing.Refused):
            attempt()


def test_why_an_address_is_none():
    with pytest.raises(outgoing.Refused, match="ASCII"):
        outgoing.check("http://127.0.0.1:9555/中文")


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_ones_are_not(address, monkeypatch):
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: [(0, 0, 6, "", (address, 80))])
    outgoing.check("http://example.org/")


def test_one_internal_address_among_public_ones(monkeypatch):
    found = [(0, 0, 6, "", (address, 80)) for address in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: found)
    with pytest.raises(outgoing.Refused):
        outgoing.check("http://example.org/")


def test_a_name_that_changes_its_mind_is_asked_once(monkeypatch):
    answers = iter([[(0, 0, 6, "", ("8.8.8.8", 80))], [(0, 0, 6, "", ("127.0.0.1", 80))]])
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_a, **_k: next(answers))
    connected = []

    def connect(address, *_arguments):
        connected.append(address)
        raise OSError("nobody there")

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(outgoing.Unreachable):
        outgoing.fetch("http://example.org/", most=10)
    assert connected == [("8.8.8.8", 80)]


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.org",
        "ftp://example.org/",
        "file:///etc/passwd",
        "gopher://example.org/",
        "http://",
        "http://user:word@example.org/",
        "http://example.org:99999/",
        "http://example.org:x/",
        "http://example.org:0/",
        "https://example.org:22/",
        "http://example.org:25/",
        "http://[::1/",
        "http://example.org/a b",
        "http://example.org/\r\nX: y",
        "http://exämple.org/",
        "//example.org/",
    ],
)
def test_what_is_no_address(url):
    for attempt in (lambda: outgoing.check(url), lambda: outgoing.fetch(url, most=10)):
        with pytest.raises(outgoing.Refused):
            attempt()


class TestFetch:
    def test_what_lies_there(self):
        with serve(answer(body=b"sound")) as server:
            found = outgoing.fetch(f"{server.url}/a/clip.mp3?x=1", most=5, internal=True)
        assert (found.data, found.name) == (b"sound", "clip.mp3")
        assert server.seen[0][1] == "/a/clip.mp3?x=1"

    def test_redirects_are_followed_a_little(self):
        def script(handler):
            depth = int(handler.path.strip("/") or 0)
            more = answer(302, Location=f"/{depth - 1}") if depth else answer(body=b"sound")
            more(handler)

        with serve(script) as server:
            assert outgoing.fetch(f"{server.url}/3", most=10, internal=True).data == b"sound"
            with pytest.raises(outgoing.Unreachable):
                outgoing.fetch(f"{server.url}/4", most=10, internal=True)

    def test_a_redirect_inwards_is_refused(self, monkeypatch):
        real = outgoing._resolve
        with serve(answer(302, Location="http://169.254.169.254/latest/meta-data")) as server:

            def resolve(host, port, internal):
                # The first address counts as public, though the test serves it.
                return host if port == server.server_port else real(host, port, internal)

            monkeypatch.setattr(outgoing, "_resolve", resolve)
            with pytest.raises(outgoing.Refused):
                outgoing.fetch(server.url, most=10)

    @pytest.mark.parametrize("location", ["file:///etc/passwd", "http://a:b@example.org/", "http://[", ""])
    def test_a_redirect_to_nowhere(self, location):
        with (
            serve(answer(302, Location=location)) as server,
            pytest.raises((outgoing.Refused, outgoing.Unreachable)),
        ):
            outgoing.fetch(server.url, most=10, internal=True)

    def test_too_much_by_its_own_word(self):
        with serve(answer(body=b"123456")) as server, pytest.raises(outgoing.TooLarge):
            outgoing.fetch(server.url, most=5, internal=True)

    def test_too_much_without_a_word(self):
        def script(handler):
            handler.send_response(200)
            handler.end_headers()
            with suppress(OSError):
                for _i in range(100):
                    handler.wfile.write(b"x" * 1000)

        with serve(script) as server, pytest.raises(outgoing.TooLarge):
            outgoing.fetch(server.url, most=5000, internal=True)

    def test_a_byte_now_and_then(self, monkeypatch):
        monkeypatch.setattr(outgoing, "FETCH_SECONDS", 0.5)

        def script(handler):
            handler.send_response(200)
            handler.end_headers()
            with suppress(OSError):
                for _i in range(30):
                    handler.wfile.write(b"x")
                    handler.wfile.flush()
                    time.sleep(0.1)

        begun = time.monotonic()
        with serve(script) as server:
            with pytest.raises(outgoing.Unreachable):
                outgoing.fetch(server.url, most=5000, internal=True)
            assert time.monotonic() - begun < 2

    @pytest.mark.parametrize("status", [204, 404, 500])
    def test_another_status(self, status):
        with serve(answer(status)) as server, pytest.raises(outgoing.Unreachable):
            outgoing.fetch(server.url, most=5, internal=True)

    def test_nobody_there(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with pytest.raises(outgoing.Unreachable):
            outgoing.fetch(f"http://127.0.0.1:{port}/", most=5, internal=True)


class TestPost:
    def test_who_does_not_answer_in_time_is_told_from_who_hangs_up(self, monkeypatch):
        monkeypatch.setattr(outgoing, "TIMEOUT_SECONDS", 0.3)
        late = pytest.raises(outgoing.Unreachable, match="no answer within")
        with serve(lambda handler: time.sleep(0.8)) as server, late:
            outgoing.post(server.url, b"{}", internal=True)

    def test_it_posts_and_follows_no_redirect(self):
        with serve(answer(302, Location="/elsewhere")) as server:
            headers = {"Chorus-Signature": "s"}
            assert outgoing.post(f"{server.url}/hook", b"{}", headers=headers, internal=True) == 302
        ((method, path, sent, body),) = server.seen
        assert (method, path, body) == ("POST", "/hook", b"{}")
        assert (sent["Content-Type"], sent["Chorus-Signature"]) == ("application/json", "s")

    def test_the_signature(self):
        assert outgoing.signature("secret", b"{}", at=1000) == (
            "t=1000,v1=" + hmac.new(b"secret", b"1000.{}", hashlib.sha256).hexdigest()
        )
