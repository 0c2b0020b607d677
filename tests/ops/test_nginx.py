"""Debian's nginx with our files in front of two real processes on loopback.

The seed of this project is a proxy that cut a wait at 60 s. CHORUS_TEST_HOLD=90 holds for that long; by default the
tests hold for a few seconds and show beside that which time-outs nginx has taken from the files.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import yaml

from launcher import front
from synthesis.api import held, sound
from tests.ops import tools

FILES = tools.ROOT / "docker" / "nginx"
HOLD = float(os.environ.get("CHORUS_TEST_HOLD", "3"))
START_SECONDS = 60


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def started(argv: list[str], port: int, **environment: str) -> Iterator[None]:
    """A process that listens on `port`, ended by us."""
    process = subprocess.Popen(argv, env=os.environ | environment, cwd=tools.ROOT, stdin=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while not listens(port):
            assert process.poll() is None, f"{argv[0]} ended"
            assert time.monotonic() < end, f"{argv[0]} does not listen"
            time.sleep(0.05)
        yield
    finally:
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def upstream(name: str, port: int):
    argv = [sys.executable, "-m", "uvicorn", "tests.ops.upstream:application", "--port", str(port)]
    return started([*argv, "--no-access-log", "--log-level", "warning"], port, NAME=name)


class Proxy:
    """Where it listens, and its folder."""

    def __init__(self, folder: Path, *, web: int, streams: int) -> None:
        self.folder, self.web, self.streams = folder, web, streams
        self.http, self.https = free_port(), free_port()

    def write(self, **replaced: str) -> None:
        """Our files with the paths and ports of this test; `replaced` changes more."""
        (self.folder / "cache" / "acme" / ".well-known" / "acme-challenge").mkdir(parents=True, exist_ok=True)
        changes = {
            "/etc/nginx/tls/": f"{self.folder}/",
            "/var/cache/nginx": f"{self.folder}/cache",
            "/tmp/nginx.pid": f"{self.folder}/nginx.pid",
            "/tmp/https-port": f"{self.folder}/https-port",
            "access_log /dev/stdout": f"access_log {self.folder}/access.log",
            "error_log /dev/stderr": f"error_log {self.folder}/error.log",
            "listen 80 ": f"listen 127.0.0.1:{self.http} ",
            "listen 443 ": f"listen 127.0.0.1:{self.https} ",
            "http://web:8000": f"http://127.0.0.1:{self.web}",
            "http://streams:8000": f"http://127.0.0.1:{self.streams}",
            **replaced,
        }
        for file in FILES.glob("*.conf"):
            text = file.read_text()
            for old, new in changes.items():
                text = text.replace(old, new)
            (self.folder / file.name).write_text(text)

    def command(self, *more: str) -> list[str]:
        configuration = str(self.folder / "nginx.conf")
        return [str(tools.nginx()), "-p", str(self.folder), "-e", "stderr", "-c", configuration, *more]

    def run(self):
        return started(
            self.command("-g", "daemon off; user root;" if os.geteuid() == 0 else "daemon off;"), self.https
        )

    def client(self, **options) -> httpx.Client:
        return httpx.Client(
            base_url=f"https://127.0.0.1:{self.https}",
            verify=False,  # noqa: S501
            timeout=HOLD + 60,
            **options,
        )

    def whole(self) -> str:
        """The configuration as nginx reads it, all files in one."""
        return tools.run(*self.command("-T")).stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nginx")
    folder.chmod(0o755)
    tools.run(
        *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-days", "2", "-subj", "/CN=localhost", "-keyout", folder / "privkey.pem"),
        *("-out", folder / "fullchain.pem"),
    )
    return folder


@pytest.fixture(scope="module")
def proxy(folder):
    """nginx in front of `web` and `streams`."""
    tools.nginx()
    made = Proxy(folder, web=free_port(), streams=free_port())
    made.write()
    with upstream("web", made.web), upstream("streams", made.streams), made.run():
        yield made


@pytest.fixture
def client(proxy):
    with proxy.client() as client:
        yield client


def test_the_configuration_is_right(proxy):
    assert "test is successful" in tools.run(*proxy.command("-t")).stdout


def directives(text: str, location: str) -> dict[str, str]:
    """The directives of one location block of our file, with what it includes."""
    [block] = re.findall(rf"location {re.escape(location)} \{{(.*?)\n        \}}", text, re.DOTALL)
    for name in re.findall(r"include (\S+);", block):
        block += (FILES / name).read_text()
    return dict(re.findall(r"^\s*([a-z_]+) ([^;{]+);", block, re.MULTILINE))


@pytest.mark.parametrize(
    "location",
    [
        "~ ^/(v1/audio/speech$|v1/text-to-speech/|events(/|$))",
        "~ /(events|stream)/?$",
        "~ ^/v1/(syntheses|conversions|voices/[^/]+/preview)$",
    ],
)
def test_waiting_is_allowed_for_longer_than_the_service_waits(location):
    found = directives((FILES / "nginx.conf").read_text(), location)
    longest = max(sound.WAIT_SECONDS, held.WAIT_SECONDS)
    assert int(found["proxy_read_timeout"].removesuffix("s")) >= longest + 30
    assert int(found["proxy_send_timeout"].removesuffix("s")) >= longest + 30
    assert found["proxy_buffering"] == "off"


@pytest.mark.parametrize("path", ["syntheses", "conversions", "voices/0198/preview"])
def test_who_waits_goes_to_the_streams_process(client, path):
    for prefer, process in (("wait=5", "streams"), ("respond-async", "web")):
        answer = client.post(f"/v1/{path}", headers={"prefer": prefer}, json={})
        assert answer.json()["backend"] == process


def test_a_held_answer_arrives_whole(client):
    begun = time.monotonic()
    answer = client.post(f"/v1/syntheses?hold={HOLD}", headers={"prefer": "wait"}, json={"text": "x"})
    assert answer.status_code == 200
    assert answer.json()["backend"] == "streams"
    assert time.monotonic() - begun >= HOLD


def test_silence_inside_a_stream_is_not_its_end(client):
    with client.stream("POST", f"/v1/audio/speech?stream=2&every={HOLD}&type=audio/mpeg") as answer:
        assert b"".join(answer.iter_raw()) == b"data: 0\n\ndata: 1\n\n"


def test_a_time_out_would_be_noticed(folder, tmp_path):
    """With 2 s in the place of 960 the same requests fail: so the time-outs above are the ones that count."""
    scratch = Path(tmp_path)
    scratch.chmod(0o755)
    for name in ("privkey.pem", "fullchain.pem"):
        (scratch / name).write_bytes((folder / name).read_bytes())
    short = Proxy(scratch, web=free_port(), streams=free_port())
    short.write(**{"960s": "2s"})
    with upstream("streams", short.streams), short.run(), short.client() as client:
        answer = client.post("/v1/audio/speech?hold=4")
        assert answer.status_code == 503
        assert answer.json()["error"]["code"] == "unavailable"
        assert answer.headers["retry-after"] == "2"
        assert answer.headers["x-request-id"]
        page = client.get("/studio/")  # nobody listens on web's port
        assert page.status_code == 503
        assert "正在重新启动" in page.text


def test_pieces_arrive_as_they_are_made(client):
    arrived = []
    with client.stream("GET", "/events/?stream=3&every=0.7") as answer:
        for _piece in answer.iter_raw():
            arrived.append(time.monotonic())
    assert len(arrived) == 3
    assert arrived[2] - arrived[0] > 1.0


@pytest.mark.parametrize(
    ("method", "path", "headers", "backend"),
    [
        ("GET", "/", {}, "web"),
        ("GET", "/v1/voices", {}, "web"),
        ("POST", "/v1/syntheses", {}, "web"),
        ("POST", "/v1/syntheses", {"prefer": "respond-async"}, "web"),
        ("POST", "/v1/syntheses", {"prefer": "wait=30"}, "streams"),
        ("POST", "/v1/syntheses", {"prefer": "respond-async, Wait"}, "streams"),
        ("GET", "/v1/syntheses", {"prefer": "wait"}, "web"),
        ("POST", "/v1/audio/speech", {}, "streams"),
        ("GET", "/v1/audio/speech/other", {}, "web"),
        ("POST", "/v1/text-to-speech/some-voice", {}, "streams"),
        ("POST", "/v1/text-to-speech/some-voice/stream", {}, "streams"),
        ("GET", "/events", {}, "streams"),
        ("GET", "/events/", {}, "streams"),
        ("GET", "/v1/syntheses/some-id/events", {}, "streams"),
        ("GET", "/v1/syntheses/some-id/stream/", {}, "streams"),
        ("GET", "/v1/syntheses/some-id", {}, "web"),
        ("GET", "/sign-in/", {}, "web"),
    ],
)
def test_routes(client, method, path, headers, backend):
    assert client.request(method, path, headers=headers).json()["backend"] == backend


def test_routes_are_those_of_the_embedded_front(client):
    """Every pattern of `./chorus up`'s own front leads to the same process here."""
    for pattern in front._STREAMS:
        path = pattern.replace("*", "x")
        path = path if path.startswith("/") else f"/v1/{path}"
        assert client.post(path).json()["backend"] == "streams", pattern


def test_what_the_service_is_told(client):
    headers = {"x-forwarded-for": "6.6.6.6", "x-forwarded-proto": "http", "x-request-id": "mine"}
    seen = client.get("/v1/voices", headers=headers).json()["headers"]
    assert seen["x-forwarded-for"] == "127.0.0.1"
    assert seen["x-forwarded-proto"] == "https"
    assert seen["x-request-id"] == "mine"
    assert seen["host"].startswith("127.0.0.1")
    assert re.fullmatch("[0-9a-f]{32}", client.get("/v1/voices").json()["headers"]["x-request-id"])


def test_uploads_of_the_largest_size_pass_and_larger_ones_do_not(client):
    assert client.post("/v1/voices", content=bytes(50 << 20)).json()["size"] == 50 << 20
    for path in ("/v1/voices", "/v2/voices"):
        refused = client.post(path, content=bytes(65 << 20))
        assert refused.status_code == 413
        assert refused.headers["x-request-id"]
        assert "strict-transport-security" in refused.headers
        assert refused.json()["error"]["code"] == "request_too_large"
    page = client.post("/voices/new/", content=bytes(65 << 20))
    assert page.status_code == 413
    assert page.headers["content-type"].startswith("text/html")


def test_an_address_that_is_too_long_is_refused_in_the_shape_of_the_api(client):
    assert client.get(f"/v1/voices?search={'x' * 7900}").status_code == 200
    refused = client.get(f"/v1/voices?search={'x' * 9000}")
    assert refused.status_code == 414
    assert refused.json()["error"]["code"] == "address_too_long"


def test_ranges_pass(client):
    answer = client.get("/v1/syntheses/x/audio?bytes=1000", headers={"range": "bytes=10-19"})
    assert answer.status_code == 206
    assert answer.headers["content-range"] == "bytes 10-19/1000"
    assert len(answer.content) == 10


def test_text_is_packed_and_sound_is_not(client):
    assert client.get("/v1/voices?pad=1").headers["content-encoding"] == "gzip"
    sound = client.get("/v1/syntheses/x/audio?bytes=100000")
    assert "content-encoding" not in sound.headers
    assert sound.headers["content-length"] == "100000"


def test_security_headers(client):
    headers = client.get("/").headers
    assert headers["strict-transport-security"] == "max-age=31536000"
    assert "microphone=(self)" in headers["permissions-policy"]
    assert headers["server"] == "nginx", "no version"


def test_metrics_are_for_inside(client):
    assert client.get("/metrics").status_code == 404


def test_plain_http_leads_to_tls(proxy):
    answer = httpx.get(f"http://127.0.0.1:{proxy.http}/history/?page=2", follow_redirects=False)
    assert answer.status_code == 308
    assert answer.headers["location"] == "https://127.0.0.1/history/?page=2"
    assert httpx.get(f"http://127.0.0.1:{proxy.http}/healthz").json()["backend"] == "web"


@pytest.mark.parametrize(("port", "written"), [("443", ""), ("8443", ":8443")])
def test_another_port_of_tls_is_kept(folder, tmp_path, port, written):
    """By what compose.yml runs before nginx."""
    tmp_path.chmod(0o755)
    for name in ("privkey.pem", "fullchain.pem"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    composed = yaml.safe_load((tools.ROOT / "docker" / "compose.yml").read_text())
    [*shell, script] = composed["services"]["nginx"]["entrypoint"]
    script = script.replace("$$", "$").replace("/tmp/", f"{tmp_path}/").replace("exec nginx", "exec true")
    tools.run(*shell, script, env=os.environ | {"HTTPS_PORT": port})
    moved = Proxy(tmp_path, web=free_port(), streams=free_port())
    moved.write()
    with moved.run():
        answer = httpx.get(f"http://127.0.0.1:{moved.http}/history/?page=2", follow_redirects=False)
    assert answer.headers["location"] == f"https://127.0.0.1{written}/history/?page=2"


def test_acme_answers_are_served(proxy):
    place = proxy.folder / "cache" / "acme" / ".well-known" / "acme-challenge"
    (place / "token").write_text("answer")
    address = f"http://127.0.0.1:{proxy.http}/.well-known/acme-challenge/token"
    assert httpx.get(address).text == "answer"


def test_secrets_in_addresses_stay_out_of_the_log(proxy, client):
    client.get("/invitations/a-secret-token/?and=this")
    client.get("/password/reset/abc/another-secret/")
    time.sleep(0.2)
    log = (proxy.folder / "access.log").read_text()
    assert "a-secret-token" not in log
    assert "another-secret" not in log
    assert "and=this" not in log
    assert '"path":"/invitations/-"' in log


def test_many_streams_at_once(proxy):
    """As many as an office has open; each gets its pieces."""

    async def one(client: httpx.AsyncClient) -> int:
        async with client.stream("GET", "/events/?stream=3&every=0.5") as answer:
            return len(b"".join([piece async for piece in answer.aiter_raw()]).split(b"\n\n")) - 1

    async def all_of_them() -> list[int]:
        limits = httpx.Limits(max_connections=None)
        address = f"https://127.0.0.1:{proxy.https}"
        async with httpx.AsyncClient(base_url=address, verify=False, limits=limits, timeout=60) as client:  # noqa: S501
            return await asyncio.gather(*(one(client) for _number in range(60)))

    assert asyncio.run(all_of_them()) == [3] * 60


def test_guessing_passwords_is_slowed_down(client):
    """Last in this file: it uses up what this address may try."""
    statuses = [client.post("/sign-in/").status_code for _try in range(16)]
    assert statuses[:10] == [200] * 10
    assert statuses.count(429) >= 4
    refused = client.post("/sign-in/")
    assert refused.headers["retry-after"] == "6"
    assert client.get("/sign-in/").status_code == 200, "the page itself is always shown"
    assert client.post("/v1/syntheses").status_code == 200, "the API has limits of its own"
