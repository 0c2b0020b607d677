"""`chorus say`: from the text to the file, also when the connection breaks."""

from __future__ import annotations

import signal
import threading
import time

import pytest
from django.db import connection

from accounts.models import TeamQuota
from accounts.services import keys
from synthesis.audio import decode
from synthesis.models import SynthesisRequest
from tests import factories
from tests.client import flaky
from tests.synthesis import finished

pytestmark = pytest.mark.django_db(transaction=True)

TEXT = "The quick brown fox jumps over the lazy dog."


def _seconds(path):
    clip = decode.decode(path.read_bytes())
    return len(clip.samples) / clip.rate


class TestSpoken:
    @pytest.mark.parametrize("format", ["mp3", "wav", "flac", "opus", "aac"])
    def test_the_ending_says_the_format(self, chorus, worker, format):
        status, out, err = chorus("say", TEXT, "--voice", "Hibari", "-o", f"out.{format}")
        assert (status, err) == (0, "")
        assert f"out.{format}" in out.decode()
        assert f"{len(TEXT)} characters" in out.decode()
        assert 1 < _seconds(chorus.folder / f"out.{format}") < 6
        assert SynthesisRequest.objects.get().format == format
        assert sorted(path.name for path in chorus.folder.iterdir()) == [f"out.{format}"]

    @pytest.mark.parametrize("source", ["file", "stdin", "dash"])
    def test_the_text_from_elsewhere(self, chorus, worker, source):
        (chorus.folder / "text.txt").write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
        arguments = {"file": ["-f", "text.txt"], "stdin": [], "dash": ["-"]}[source]
        stdin = None if source == "file" else TEXT.encode()
        assert chorus("say", *arguments, "-v", "Hibari", "-o", "out.mp3", stdin=stdin)[0] == 0
        assert SynthesisRequest.objects.get().text == TEXT

    def test_every_option(self, chorus, worker):
        options = ["--speed", "1.5", "--language", "en-US", "--seed", "7", "--title", "早安"]
        status, out, _err = chorus("say", TEXT, "-v", "Hibari", "--format", "wav", *options)
        assert (status, out.decode().split(" ")[0]) == (0, "speech.wav")
        row = SynthesisRequest.objects.get()
        assert (row.speed, row.language, row.seed, row.title) == (1.5, "en-US", 7, "早安")
        assert chorus("say", TEXT, "-v", "Hibari", "--format", "wav")[1].startswith(b"speech-2.wav")

    def test_to_standard_output(self, chorus, worker):
        status, out, err = chorus("say", TEXT, "-v", "Hibari", "-o", "-")
        assert (status, err) == (0, "")
        assert decode.decode(out).rate > 0


class TestLostConnections:
    def test_a_lost_answer_queues_nothing_twice(self, chorus, running, worker):
        with flaky.between(running.url) as line:
            chorus.environment["CHORUS_URL"] = line.url
            line.cuts = [(b"POST /v1/syntheses", 1)] * 2
            status, _out, err = chorus("say", TEXT, "-v", "Hibari", "-o", "out.mp3")
        assert (status, err) == (0, "")
        assert SynthesisRequest.objects.count() == 1
        assert len([one for one in line.seen if one.startswith(b"POST /v1/syntheses ")]) == 3

    def test_looking_goes_on(self, chorus, running, worker):
        with flaky.between(running.url) as line:
            chorus.environment["CHORUS_URL"] = line.url
            line.cuts = [(b"GET /v1/syntheses/", 20)] * 2
            assert chorus("say", TEXT, "-v", "Hibari", "-o", "out.mp3")[0] == 0

    def test_a_download_goes_on_where_it_broke_off(self, chorus, running, worker):
        with flaky.between(running.url) as line:
            chorus.environment["CHORUS_URL"] = line.url
            line.cuts = [(b"/audio", 5_000), (b"/audio", 20_000)]
            assert chorus("say", TEXT, "-v", "Hibari", "-o", "out.wav")[0] == 0
        output = SynthesisRequest.objects.get().output
        assert (chorus.folder / "out.wav").stat().st_size == output.bytes
        ranges = [one for one in line.seen if b"\r\nRange: bytes=" in one]
        assert len(ranges) == 2
        assert not line.cuts

    def test_patience_has_an_end(self, chorus, running):
        with flaky.between(running.url) as line:
            chorus.environment["CHORUS_URL"] = line.url
            line.cuts = [(b"POST", 1)] * 50
            status, _out, err = chorus("say", TEXT, "-v", "Hibari", "--patience", "2")
        assert status == 6
        assert err.startswith(f"chorus: {line.url} cannot be reached")


class TestExitCodes:
    @pytest.mark.parametrize(
        ("arguments", "status", "words"),
        [
            (["say", TEXT], 2, "--voice"),
            (["say", TEXT, "-v", "Hibari", "-o", "out.ogg"], 2, "ogg"),
            (["say", TEXT, "-v", "Hibari", "-o", "out"], 2, "with an ending"),
            (["say", TEXT, "-v", "Hibari", "-f", "x.txt"], 2, "not both"),
            (["say", TEXT, "-v", "Hibari", "-o", "missing/out.mp3"], 2, "missing"),
            (["say", "-f", "nothing.txt", "-v", "Hibari"], 2, "nothing.txt"),
            (["say", TEXT, "-v", "Nobody"], 4, "“Nobody”"),
            (["say", "?!", "-v", "Hibari"], 4, "nothing to speak"),
            (["say", TEXT, "-v", "Hibari", "--speed", "9"], 4, "speed"),
            (["sing"], 2, "sing"),
            ([], 2, "required"),
        ],
    )
    def test_wrong_input(self, chorus, arguments, status, words):
        found, out, err = chorus(*arguments)
        assert (found, out) == (status, b"")
        assert words in err
        assert err.count("\n") == 1
        assert not SynthesisRequest.objects.exists()

    def test_what_is_no_text(self, chorus):
        assert chorus("say", "-v", "Hibari", stdin=b"\xff\xfe")[0] == 2
        assert chorus("say", "-v", "Hibari", stdin=b"x" * 2**21)[0] == 2

    def test_a_wrong_key_and_one_that_may_not(self, chorus, alice):
        _key, secret = keys.create(actor=alice.actor, name="narrow", scopes=["voices:read"])
        for key in ("chorus_a_b", secret):
            chorus.environment["CHORUS_API_KEY"] = key
            assert chorus("say", TEXT, "-v", "Hibari")[0] == 3

    def test_the_months_characters_are_used_up(self, chorus, alice):
        TeamQuota.objects.create(team=alice.actor.team, characters_per_month=5)
        begun = time.monotonic()
        status, _out, err = chorus("say", TEXT, "-v", "Hibari")
        assert status == 5
        assert "5 characters remain" in err
        assert time.monotonic() - begun < 5

    def test_a_full_queue_is_waited_for(self, chorus, alice):
        TeamQuota.objects.create(team=alice.actor.team, queued_requests=1)
        first = factories.submit(alice)
        with chorus.start("say", TEXT, "-v", "Hibari", "-o", "out.mp3") as process:
            time.sleep(2)
            assert process.poll() is None
            finished.succeed(first)
            _until(lambda: SynthesisRequest.objects.filter(status="queued").exists(), 20)
            finished.succeed(SynthesisRequest.objects.get(status="queued"))
            assert process.wait(20) == 0
        assert (chorus.folder / "out.mp3").read_bytes() == finished.SOUND

    def test_it_could_not_be_spoken(self, chorus):
        def fail():
            try:
                _until(SynthesisRequest.objects.exists)
                finished.fail(SynthesisRequest.objects.get())
            finally:
                connection.close()

        thread = threading.Thread(target=fail)
        thread.start()
        status, _out, err = chorus("say", TEXT, "-v", "Hibari")
        thread.join()
        assert (status, err) == (7, "chorus: It broke.\n")

    def test_interrupted(self, chorus):
        with chorus.start("say", TEXT, "-v", "Hibari") as process:
            _until(SynthesisRequest.objects.exists)
            time.sleep(0.5)
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(10) == 130
            finally:
                process.kill()  # leaving the block waits for its end
            assert process.stderr.read() == b"chorus: Interrupted.\n"
        assert SynthesisRequest.objects.get().status == "canceled"


def _until(look, within=10.0):
    end = time.monotonic() + within
    while not look():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def test_in_chinese(chorus):
    chorus.environment["LANG"] = "zh_CN.UTF-8"
    status, _out, err = chorus("say", TEXT, "-v", "Nobody")
    assert status == 4
    assert err.startswith("chorus: 没有")


def test_into_a_folder(chorus, worker):
    (chorus.folder / "sounds").mkdir()
    for name in ("speech.mp3", "speech-2.mp3"):
        assert chorus("say", TEXT, "-v", "Hibari", "-o", "sounds")[0] == 0
        assert (chorus.folder / "sounds" / name).is_file(), list((chorus.folder / "sounds").iterdir())
