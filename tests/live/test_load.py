"""Sixteen clients at once, in peace and while everything is killed under them: all correct, exact to the character."""

from __future__ import annotations

import random
import signal
import threading
import time

import httpx
import psutil
from redis import Redis

from tests.live import stack

CLIENTS, EACH = 16, 10
WORKER_KILLS = 6
_WORDS = (
    "river",
    "garden",
    "window",
    "silver",
    "market",
    "orange",
    "winter",
    "candle",
    "bridge",
    "letter",
    "simple",
)


def _text(client: int, number: int) -> str:
    generator = random.Random(client * 1000 + number)
    return " ".join(generator.choices(_WORDS, k=generator.randint(3, 6))).capitalize() + "."


def _settled(client: httpx.Client) -> dict:
    """The quota once nothing is reserved any more."""
    for _i in range(100):
        quota = client.get("/v1/quota").json()
        if quota["characters_reserved"] == 0:
            return quota
        time.sleep(0.1)
    raise AssertionError(quota)


def _run(running: stack.Stack) -> None:
    with running.client() as client:
        before = _settled(client)
    made: dict[str, str] = {}

    def work(index: int) -> None:
        with running.client() as client:
            for number in range(EACH):
                text = _text(index, number)
                identifier = stack.submit(client, text, voice=running.voice)["id"]
                result = stack.wait(client, identifier)
                assert result["status"] == "succeeded", result
                audio = client.get(f"/v1/syntheses/{identifier}/audio")
                assert audio.status_code == 200
                assert len(audio.content) == result["output"]["bytes"]
                # Six words are spoken in 1 to 5 seconds: neither empty nor somebody else's book.
                assert 0.6 < result["output"]["seconds"] < 7
                made[identifier] = text

    stack.in_threads(CLIENTS, work)
    assert len(made) == CLIENTS * EACH
    with running.client() as client:
        after = _settled(client)
    assert after["characters_used"] - before["characters_used"] == sum(map(len, made.values()))


def test_sixteen_clients_at_once(hibari):
    _run(hibari)


def test_sixteen_clients_while_everything_is_killed(hibari):
    stop = threading.Event()
    done: list[str] = []

    def kill(process: psutil.Process, number: int) -> None:
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            return

    def havoc() -> None:
        generator = random.Random(7)
        redis = Redis.from_url(hibari.environment()["REDIS_URL"])
        started, flushed, restarted, stopped = time.monotonic(), False, False, False
        while not stop.wait(generator.uniform(2, 5)):
            # Children and parents of the workers, whichever it hits; a bounded number, since each has to load its
            # engine again before it speaks, for which a busy machine may need longer than the pause between two blows.
            victims = hibari.find("-m gpu_worker") + hibari.find("django worker")
            if victims and done.count("worker") < WORKER_KILLS:
                kill(generator.choice(victims), signal.SIGKILL)
                done.append("worker")
            elapsed = time.monotonic() - started
            if elapsed > 4 and not flushed:
                redis.flushall()
                flushed = True
                done.append("flush")
            if elapsed > 7 and not restarted:
                kill(hibari.find("gunicorn")[0], signal.SIGTERM)  # the parent comes first
                restarted = True
                done.append("web")
            if elapsed > 10 and not stopped:
                weed = hibari.find("weed")[0]
                kill(weed, signal.SIGSTOP)
                stop.wait(10)
                kill(weed, signal.SIGCONT)
                stopped = True
                done.append("storage")

    thread = threading.Thread(target=havoc)
    thread.start()
    try:
        _run(hibari)
        # A fast machine may be done before the last blow has fallen.
        while "storage" not in done:
            _run(hibari)
    finally:
        stop.set()
        thread.join()
    assert {"worker", "flush", "web", "storage"} <= set(done)
    assert done.count("worker") >= 3


def test_a_light_team_runs_next_beside_300_queued(hibari):
    secret = hibari.manage(
        "from accounts.models import Plan, User\n"
        "from accounts.services import keys, teams\n"
        "user = User.objects.create_user('light@example.org', 'x')\n"
        "actor = teams.create(owner=user, name='Light', plan=Plan.objects.get())\n"
        "print(keys.create(actor=actor, name='k')[1])"
    ).strip()
    with hibari.client() as heavy, hibari.client(secret) as light:
        queued = [
            stack.submit(heavy, "The heavy team has a great many sentences to say. " * 8, voice=hibari.voice)[
                "id"
            ]
            for _i in range(300)
        ]
        try:
            mine = stack.submit(light, "Only one.", voice=hibari.voice)
            assert mine["ahead"] <= 1, mine
            ended = stack.wait(light, mine["id"])
            assert ended["status"] == "succeeded"
            waiting = heavy.get("/v1/syntheses", params={"status": "queued", "limit": 1}).json()["results"]
            assert waiting, "the heavy team was done too soon to show anything"
        finally:
            for identifier in queued:
                heavy.post(f"/v1/syntheses/{identifier}/cancel")
        _settled(heavy)
