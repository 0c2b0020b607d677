"""An upgrade while people work: new columns first, then every process is asked to end and is replaced.

Killing is another test's matter (tests/live/test_load.py); here everything ends as a deployment ends it, so nothing may
be lost, spoken twice, or refused.
"""

from __future__ import annotations

import signal
import threading
import time

import psycopg

from tests.live import stack

CLIENTS = 4
PAUSE_SECONDS = 1.0
#: What the linter of test_migrations.py lets through: the version before goes on inserting without naming them.
NEWER = (
    "ALTER TABLE synthesis_synthesisrequest ADD COLUMN of_the_next_version boolean NOT NULL DEFAULT false",
    "ALTER TABLE synthesis_worker ADD COLUMN of_the_next_version text",
)
#: Each process, in the order of a rolling deployment.
PARTS = (("gunicorn",), ("uvicorn",), ("manage.py", "sweep"), ("-m gpu_worker --",))
REPLACED_SECONDS = 90


def replace(running: stack.Stack, words: tuple[str, ...]) -> None:
    """SIGTERM, and wait until the launcher has started another one."""
    old = running.find(*words)[0]
    old.send_signal(signal.SIGTERM)
    end = time.monotonic() + REPLACED_SECONDS
    while not any(process.pid != old.pid for process in running.find(*words)) or old.is_running():
        assert time.monotonic() < end, f"{words} was not replaced"
        time.sleep(0.2)


def test_upgrade_under_load(hibari):
    stop = threading.Event()
    made: dict[str, str] = {}
    errors: list[str] = []

    def work(index: int) -> None:
        number = 0
        with hibari.client() as client:
            while not stop.is_set():
                number += 1
                text = f"Client {index} sends its sentence number {number}."
                try:
                    made[stack.submit(client, text, voice=hibari.voice)["id"]] = text
                except Exception as error:  # noqa: BLE001 (whatever a client would have seen)
                    errors.append(repr(error))
                stop.wait(PAUSE_SECONDS)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(CLIENTS)]
    for thread in threads:
        thread.start()
    try:
        time.sleep(2)
        with psycopg.connect(hibari.environment()["DATABASE_URL"], autocommit=True) as database:
            for statement in NEWER:
                database.execute(statement)
        for words in PARTS:
            replace(hibari, words)
            time.sleep(1)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert errors == []
    assert len(made) > 4 * CLIENTS
    with hibari.client() as client:
        for identifier in made:
            assert stack.wait(client, identifier)["status"] == "succeeded"
    with psycopg.connect(hibari.environment()["DATABASE_URL"]) as database:
        ours = (list(made),)
        outcomes = database.execute(
            "SELECT outcome, count(*) FROM synthesis_attempt WHERE request_id = ANY(%s::uuid[]) GROUP BY 1",
            ours,
        ).fetchall()
        outputs = database.execute(
            "SELECT count(*) FROM synthesis_output WHERE request_id = ANY(%s::uuid[])", ours
        ).fetchone()
    # Spoken once each: workers finished what they had in hand, and nobody had to begin again.
    assert outcomes == [("succeeded", len(made))]
    assert outputs == (len(made),)
    script = "from synthesis.services import verification; print(verification.verify().count)"
    assert hibari.manage(script).strip() == "0"
