"""`chorus login`, `logout`: who is asked, and where the key goes."""

from __future__ import annotations

import json
import os
import stat
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from accounts.services import keys

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def config(command):
    return command.folder / ".config" / "chorus" / "config.json"


@contextmanager
def serve(answer):
    """An HTTP server on loopback: `answer(handler)`; the heads that it saw."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            server.seen.append((self.path, dict(self.headers)))
            answer(self)

        def do_POST(self):
            self.do_GET()

        def log_message(self, *_args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.seen = []
    server.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _send(status, body=b"", **headers):
    def answer(handler):
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


class TestLogin:
    def test_it_keeps_what_works(self, command, running, alice, config):
        old = os.umask(0)
        try:
            status, out, err = command(
                "login", "--url", f"{running.url}/v1/", stdin=f"{alice.secret}\n".encode()
            )
        finally:
            os.umask(old)
        assert (status, err) == (0, "")
        assert alice.secret not in out.decode()
        assert json.loads(config.read_text()) == {"url": running.url, "key": alice.secret}
        assert stat.S_IMODE(config.stat().st_mode) == 0o600
        assert stat.S_IMODE(config.parent.stat().st_mode) == 0o700
        assert command("voices")[0] == 0
        assert command("logout")[0] == 0
        assert not config.exists()
        assert command("voices")[0] == 3

    @pytest.mark.parametrize(
        ("url", "key", "status"),
        [
            (None, "chorus_a_b", 3),
            (None, "", 2),
            (None, "schlüssel", 3),
            ("nonsense", "chorus_a_b", 2),
            ("ftp://127.0.0.1/", "chorus_a_b", 2),
            ("http://user:pass@127.0.0.1/", "chorus_a_b", 2),
            ("http://127.0.0.1:99999/", "chorus_a_b", 2),
            ("http://127.0.0.1:9/", "chorus_a_b", 6),
        ],
    )
    def test_it_does_not_keep_what_does_not(self, command, running, alice, config, url, key, status):
        found, out, err = command("login", "--url", url or running.url, stdin=f"{key}\n".encode())
        assert (found, out) == (status, b"")
        assert err.count("\n") == 1
        assert not config.exists()

    def test_a_narrow_key_is_a_key(self, command, running, alice, config):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        assert command("login", "--url", running.url, stdin=f"{secret}\n".encode())[0] == 0


class TestWhereTheKeyGoes:
    def test_not_to_another_server_than_it_was_entered_for(self, command, config):
        config.parent.mkdir(parents=True)
        config.write_text(json.dumps({"url": "http://127.0.0.1:9", "key": "chorus_a_secret"}))
        with serve(_send(200, b"{}")) as other:
            command.environment["CHORUS_URL"] = other.url
            assert command("voices")[0] == 3
        assert other.seen == []

    def test_not_along_with_a_redirect(self, command):
        moved: list[str] = []
        with (
            serve(_send(200, b'{"next": null, "results": []}')) as storage,
            serve(lambda handler: _send(302, Location=moved[0])(handler)) as server,
        ):
            moved.append(f"{storage.url}/object?signed=1")
            command.environment |= {"CHORUS_URL": server.url, "CHORUS_API_KEY": "chorus_a_secret"}
            assert command("voices")[0] == 0
        ((path, headers),) = storage.seen
        assert path == "/object?signed=1"
        assert "chorus_a_secret" not in str(headers)

    def test_a_damaged_file(self, command, config):
        config.parent.mkdir(parents=True)
        config.write_text("{")
        status, _out, err = command("voices")
        assert status == 1
        assert "chorus login" in err


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b"<html>Welcome</html>"),
        (200, b""),
        (404, b"<html>Nothing</html>"),
        (404, b'{"detail": "nothing"}'),
        (500, b""),
    ],
)
def test_a_server_of_another_kind(command, status, body):
    with serve(_send(status, body)) as other:
        command.environment |= {"CHORUS_URL": other.url, "CHORUS_API_KEY": "chorus_a_b"}
        found, _out, err = command("usage")
    assert (found, err.count("\n")) == (6, 1)
    assert "not as a Chorus server does" in err


def test_it_answers_later(command):
    answers = [_send(503, b"busy", Retry_After="1"), _send(502), _send(200, b'{"next": null, "results": []}')]
    with serve(lambda handler: answers.pop(0)(handler)) as server:
        command.environment |= {"CHORUS_URL": server.url, "CHORUS_API_KEY": "chorus_a_b"}
        assert command("voices")[0] == 0
    assert len(server.seen) == 3


def test_a_file_that_is_not_what_was_said(command):
    """Longer, shorter, or other bytes: an end, and nothing left."""
    made = {
        "id": "x",
        "status": "succeeded",
        "characters": 5,
        "segments_done": 1,
        "segments_total": 1,
        "output": {"bytes": 10, "sha256": "0" * 64, "seconds": 1},
    }
    for sound in (b"x" * 20, b"x" * 5, b"x" * 10):

        def answer(handler, sound=sound):
            if handler.path.endswith("/audio"):
                ranged = "Range" in handler.headers
                return _send(416)(handler) if ranged else _send(200, sound)(handler)
            return _send(200, json.dumps(made).encode())(handler)

        with serve(answer) as server:
            command.environment |= {"CHORUS_URL": server.url, "CHORUS_API_KEY": "chorus_a_b"}
            status, _out, err = command("say", "Hello", "-v", "x", "-o", "out.mp3")
        assert (status, err) == (1, "chorus: out.mp3 arrived damaged. Try again.\n")
        assert not list(command.folder.glob("out*"))
