"""The remote engine against real HTTP servers on this machine."""

from __future__ import annotations

import base64
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpu_worker.engines.base import Audio, EngineUnavailable, Failed, Finished, SegmentJob, VoiceSpec
from gpu_worker.engines.remote import Remote
from gpu_worker.engines.remote.settings import Settings
from gpu_worker.engines.remote.upstreams import FIRST_PAUSE, LONGEST_PAUSE, Upstreams

TONE = (0.5 * np.sin(np.arange(24_000) / 10)).astype(np.float32)
PCM = (TONE * 32_767).astype("<i2").tobytes()


class Server:
    """A speech server that does what the test tells it, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.hung_up = threading.Event()
        self.most_at_once = 0
        self._now = 0
        self._lock = threading.Lock()
        #: (status, headers, pieces of the body); a float among the pieces is a pause in seconds.
        self.answer: Callable[[dict[str, Any]], tuple[int, dict[str, str], list[bytes | float]]] = (
            lambda body: (
                200,
                {"Content-Type": "audio/pcm"},
                [PCM],
            )
        )
        self.breaks_off = False
        self.models = 200
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                self.send_response(server.models)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.asked.append({"path": self.path, **body})
                server.headers.append(dict(self.headers))
                with server._lock:
                    server._now += 1
                    server.most_at_once = max(server.most_at_once, server._now)
                try:
                    self._reply(body)
                except OSError:
                    server.hung_up.set()
                    self.close_connection = True
                finally:
                    with server._lock:
                        server._now -= 1

            def _reply(self, body: dict[str, Any]) -> None:
                status, headers, pieces = server.answer(body)
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for piece in pieces:
                    if isinstance(piece, float):
                        time.sleep(piece)
                    elif piece:
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                        self.wfile.flush()
                if server.breaks_off:
                    self.close_connection = True
                    return
                self.wfile.write(b"0\r\n\r\n")

        self._httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._httpd.daemon_threads = True
        self._thread = threading.Thread(target=self._httpd.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._httpd.server_address[1]}/v1"

    def close(self) -> None:
        self._httpd.shutdown()
        self._httpd.server_close()
        self._thread.join()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def second() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


@pytest.fixture
def connect() -> Iterator[Callable[..., Remote]]:
    """Makes a loaded engine from the settings given, and closes it after the test."""
    made: list[Remote] = []

    def make(*urls: str, **settings: Any) -> Remote:
        engine = Remote(Settings(urls=urls, **settings))
        made.append(engine)
        engine.load()
        return engine

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def nobody() -> str:
    """The address of a server that is not there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


def job(key: str = "a", **fields: Any) -> SegmentJob:
    voice = VoiceSpec(key="v", language="en", preset="alloy")
    return SegmentJob(**{"key": key, "text": "Hello there.", "voice": voice, "language": "en", **fields})


def cloned(transcript: str = "Hi") -> VoiceSpec:
    return VoiceSpec(key="c", language="en", transcript=transcript, prompt_audio=lambda: b"RIFF-a-clip")


def only(events: list[Any]) -> Failed:
    (event,) = events
    assert isinstance(event, Failed)
    return event


class TestSpeaking:
    def test_what_is_asked_and_what_is_heard(self, server: Server, connect: Callable[..., Remote]) -> None:
        engine = connect(server.url, model="cosyvoice3", api_key="secret")
        events = list(engine.synthesise([job(speed=1.5, instruction="angry")]))
        assert events[-1] == Finished("a")
        sound = np.concatenate([event.samples for event in events if isinstance(event, Audio)])
        assert np.allclose(sound, TONE, atol=1e-3)
        assert server.asked == [
            {
                "path": "/v1/audio/speech",
                "input": "Hello there.",
                "model": "cosyvoice3",
                "voice": "alloy",
                "response_format": "pcm",
                "speed": 1.5,
                "instructions": "请非常生气地说一句话。",
            }
        ]
        assert server.headers[0]["Authorization"] == "Bearer secret"

    def test_a_stream_is_heard_as_it_comes(self, server: Server, connect: Callable[..., Remote]) -> None:
        # An odd number of bytes first: a sample may be cut in two on its way.
        server.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [PCM[:9_601], 2.0, PCM[9_601:]])
        engine = connect(server.url)
        started = time.monotonic()
        events = engine.synthesise([job(stream=True)])
        first = next(events)
        assert isinstance(first, Audio)
        assert time.monotonic() - started < 1.8
        rest = [event.samples for event in events if isinstance(event, Audio)]
        assert np.allclose(np.concatenate([first.samples, *rest]), TONE, atol=1e-3)
        assert server.asked[0]["stream_format"] == "audio"

    def test_another_rate_is_resampled(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (
            200,
            {"Content-Type": "audio/pcm; rate=48000"},
            [PCM[:30_000], PCM[30_000:]],
        )
        events = list(connect(server.url).synthesise([job()]))
        sound = np.concatenate([event.samples for event in events if isinstance(event, Audio)])
        assert len(sound) == pytest.approx(12_000, abs=50)

    def test_chorus_is_told_language_and_seed(self, server: Server, connect: Callable[..., Remote]) -> None:
        engine = connect(server.url, dialect="chorus")
        list(engine.synthesise([job(seed=2**40 + 5, instruction="angry")]))
        assert server.asked[0]["seed"] == 5
        assert server.asked[0]["language"] == "en"
        assert server.asked[0]["instructions"] == "angry"


class TestCloning:
    def test_vllm_omni_gets_clip_and_transcript(self, server: Server, connect: Callable[..., Remote]) -> None:
        engine = connect(server.url, dialect="vllm-omni")
        assert engine.capabilities.cloning == "zero_shot"
        list(engine.synthesise([job(voice=cloned())]))
        header, _, data = server.asked[0]["ref_audio"].partition(",")
        assert header == "data:audio/wav;base64"
        assert base64.b64decode(data) == b"RIFF-a-clip"
        assert server.asked[0]["ref_text"] == "Hi"
        assert "voice" not in server.asked[0]

    @pytest.mark.parametrize(
        ("dialect", "fields", "code"),
        [
            ("openai", {"voice": cloned()}, "voice_not_available"),
            ("vllm-omni", {"voice": cloned("")}, "transcript_needed"),
            ("vllm-omni", {"voice": VoiceSpec(key="n", language="en")}, "voice_not_available"),
            ("openai", {"source_audio": lambda: b""}, "conversion_not_supported"),
            ("openai", {"text": "。。"}, "nothing_to_speak"),
        ],
    )
    def test_what_a_server_would_do_wrong_is_not_asked(
        self, server: Server, connect: Callable[..., Remote], dialect: str, fields: dict[str, Any], code: str
    ) -> None:
        failed = only(list(connect(server.url, dialect=dialect).synthesise([job(**fields)])))
        assert (failed.code, failed.retryable) == (code, False)
        assert server.asked == []

    def test_instructions_that_would_be_ignored_are_refused(
        self, server: Server, connect: Callable[..., Remote]
    ) -> None:
        engine = connect(server.url, instructions=False)
        assert not engine.capabilities.instructions
        assert only(list(engine.synthesise([job(instruction="angry")]))).code == "instructions_not_supported"

    def test_vllm_omni_is_not_asked_to_stream_at_another_speed(
        self, server: Server, connect: Callable[..., Remote]
    ) -> None:
        engine = connect(server.url, dialect="vllm-omni")
        list(engine.synthesise([job(voice=cloned(), stream=True, speed=2.0)]))
        assert "stream_format" not in server.asked[0]


class TestServersThatFail:
    @pytest.mark.parametrize("status", [400, 404, 422])
    def test_a_refusal_is_final_and_quotes_nothing(
        self, server: Server, connect: Callable[..., Remote], caplog: pytest.LogCaptureFixture, status: int
    ) -> None:
        server.answer = lambda body: (
            status,
            {"Content-Type": "application/json"},
            [b'{"error": "Hello there."}'],
        )
        failed = only(list(connect(server.url).synthesise([job()])))
        assert (failed.code, failed.retryable) == ("upstream_refused", False)
        assert "Hello" not in failed.message + caplog.text

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_another_server_takes_over(
        self, server: Server, second: Server, connect: Callable[..., Remote], status: int
    ) -> None:
        engine = connect(server.url, second.url)
        server.answer = lambda body: (status, {}, [b""])
        for number in range(4):
            assert Finished(str(number)) in list(engine.synthesise([job(str(number))]))
        assert len(server.asked) <= 1, "a server that failed is left alone for a while"

    def test_one_that_is_away_is_stepped_over(
        self, server: Server, nobody: str, connect: Callable[..., Remote]
    ) -> None:
        engine = connect(nobody, server.url)
        assert all(Finished("a") in list(engine.synthesise([job()])) for _ in range(3))

    def test_all_away_is_said_and_may_be_tried_again(
        self, server: Server, connect: Callable[..., Remote]
    ) -> None:
        engine = connect(server.url)
        server.answer = lambda body: (503, {"Retry-After": "7"}, [])
        assert only(list(engine.synthesise([job()]))) == Failed(
            "a",
            "upstream_unavailable",
            "No speech server answers at the moment. The request is tried again by itself.",
            retryable=True,
        )

    def test_a_stream_that_breaks_off_is_not_begun_again_elsewhere(
        self, server: Server, second: Server, connect: Callable[..., Remote]
    ) -> None:
        for each in (server, second):
            each.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [PCM[:20_000]])
            each.breaks_off = True
        events = list(connect(server.url, second.url).synthesise([job(stream=True)]))
        assert isinstance(events[0], Audio)
        assert isinstance(events[-1], Failed)
        assert (events[-1].code, events[-1].retryable) == ("upstream_broke_off", True)
        assert len(server.asked) + len(second.asked) == 1

    def test_silence_on_the_line_ends(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [3.0, PCM])
        started = time.monotonic()
        assert only(list(connect(server.url, timeout=0.4).synthesise([job()]))).code == "upstream_unavailable"
        assert time.monotonic() - started < 2.9

    def test_no_sound_is_no_success(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [])
        assert only(list(connect(server.url).synthesise([job()]))).code == "sound_empty"

    def test_a_web_page_is_no_sound(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (200, {"Content-Type": "text/html"}, [b"<h1>Log in</h1>"])
        assert only(list(connect(server.url).synthesise([job()]))).code == "upstream_refused"


class TestSeveralAtOnce:
    def test_as_many_as_are_allowed(
        self, server: Server, second: Server, connect: Callable[..., Remote]
    ) -> None:
        for each in (server, second):
            each.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [0.3, PCM])
        engine = connect(server.url, second.url, concurrency=3)
        assert engine.capabilities.batch == 6
        started = time.monotonic()
        events = list(engine.synthesise([job(str(number)) for number in range(12)]))
        assert time.monotonic() - started < 3.4
        assert sum(isinstance(event, Finished) for event in events) == 12
        assert (server.most_at_once, second.most_at_once) == (3, 3)

    def test_a_bad_one_leaves_the_others_alone(self, server: Server, connect: Callable[..., Remote]) -> None:
        def answer(body: dict[str, Any]) -> tuple[int, dict[str, str], list[bytes | float]]:
            return (422, {}, []) if body["input"] == "bad" else (200, {"Content-Type": "audio/pcm"}, [PCM])

        server.answer = answer
        events = list(connect(server.url).synthesise([job("a"), job("b", text="bad"), job("c")]))
        assert {event.key for event in events if isinstance(event, Finished)} == {"a", "c"}

    def test_cancelling_hangs_up(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [PCM, 0.3] * 40)
        cancelled = threading.Event()
        events = connect(server.url).synthesise([job(cancelled=cancelled.is_set, stream=True)])
        assert isinstance(next(events), Audio)
        cancelled.set()
        assert not any(isinstance(event, Finished | Failed) for event in events)
        assert server.hung_up.wait(3)

    def test_closing_early_hangs_up(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.answer = lambda body: (200, {"Content-Type": "audio/pcm"}, [PCM, 0.3] * 40)
        events = connect(server.url).synthesise([job(stream=True)])
        next(events)
        events.close()  # type: ignore[attr-defined]
        assert server.hung_up.wait(3)

    def test_a_job_cancelled_before_its_turn_is_not_sent(
        self, server: Server, connect: Callable[..., Remote]
    ) -> None:
        assert list(connect(server.url).synthesise([job(cancelled=lambda: True)])) == []
        assert server.asked == []


class TestStart:
    def test_nobody_there(self, nobody: str) -> None:
        with pytest.raises(EngineUnavailable, match="no speech server answers: http"):
            Remote(Settings(urls=(nobody,))).load()

    def test_a_wrong_key(self, server: Server) -> None:
        server.models = 401
        with pytest.raises(EngineUnavailable, match="CHORUS_REMOTE_API_KEY"):
            Remote(Settings(urls=(server.url,))).load()

    def test_a_server_without_a_list_of_models(self, server: Server, connect: Callable[..., Remote]) -> None:
        server.models = 404
        assert Finished("a") in list(connect(server.url).synthesise([job()]))

    def test_not_loaded(self) -> None:
        with pytest.raises(EngineUnavailable):
            list(Remote(Settings(urls=("http://127.0.0.1:9/v1",))).synthesise([job()]))


class TestSettings:
    def test_from_the_environment(self, tmp_path: Path) -> None:
        (tmp_path / "key").write_text("secret\n")
        settings = Settings.from_environment(
            {
                "CHORUS_REMOTE_URLS": "http://gpu-1:8091/v1/, https://gpu-2/v1",
                "CHORUS_REMOTE_API_KEY_FILE": str(tmp_path / "key"),
                "CHORUS_REMOTE_DIALECT": "vllm-omni",
                "CHORUS_REMOTE_CONCURRENCY": "8",
            }
        )
        assert settings.urls == ("http://gpu-1:8091/v1", "https://gpu-2/v1")
        assert settings.api_key == "secret"
        assert settings.concurrency == 8
        assert not settings.instructions

    @pytest.mark.parametrize(
        "values",
        [
            {},
            {"CHORUS_REMOTE_URLS": "gpu-1:8091"},
            {"CHORUS_REMOTE_URLS": "http://a", "CHORUS_REMOTE_DIALECT": "klingon"},
            {"CHORUS_REMOTE_URLS": "http://a", "CHORUS_REMOTE_CONCURRENCY": "0"},
            {"CHORUS_REMOTE_URLS": "http://a", "CHORUS_REMOTE_API_KEY_FILE": "/nonexistent"},
            {"CHORUS_REMOTE_URLS": "http://a", "CHORUS_REMOTE_INSTRUCTIONS": "perhaps"},
        ],
    )
    def test_nonsense_is_named(self, values: dict[str, str]) -> None:
        with pytest.raises(EngineUnavailable, match="CHORUS_REMOTE_"):
            Settings.from_environment(values)


class TestUpstreams:
    def test_takes_turns(self) -> None:
        upstreams = Upstreams(["a", "b", "c"], concurrency=1)
        assert {upstreams.choose().url for _ in range(3)} == {"a", "b", "c"}  # type: ignore[union-attr]

    def test_takes_the_one_with_the_least_to_do(self) -> None:
        upstreams = Upstreams(["a", "b"], concurrency=5)
        upstreams.all[0].in_flight = 3
        assert [upstreams.choose().url for _ in range(3)] == ["b", "b", "b"]  # type: ignore[union-attr]

    def test_waits_longer_each_time_and_forgives(self, monkeypatch: pytest.MonkeyPatch) -> None:
        now = 1000.0
        monkeypatch.setattr(time, "monotonic", lambda: now)
        upstreams = Upstreams(["a"], concurrency=1)
        upstream = upstreams.all[0]
        pauses = []
        for _ in range(7):
            upstreams.failed(upstream)
            pauses.append(upstream.until - now)
        assert pauses == [FIRST_PAUSE, 2, 4, 8, 16, LONGEST_PAUSE, LONGEST_PAUSE]
        assert upstreams.choose() is None
        assert upstreams.is_hopeless([])
        now += 31
        assert upstreams.choose() is upstream
        upstreams.answered(upstream)
        upstreams.failed(upstream, retry_after=3600)
        assert upstream.until - now == LONGEST_PAUSE
