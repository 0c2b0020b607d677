"""One request beside a team that has a hundred queued, beside the same request alone."""

from __future__ import annotations

import time

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line
from tests.live import stack


def run(quick: bool) -> list[Line]:
    """See the module. The aim: twice its time alone, and one of the other team's jobs."""
    queued, times = (20, 1) if quick else (100, 5)
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)
        key = service.teams(running, 1)[0]

        def ask(index: int) -> float:
            with running.client(key) as client:
                body = {"input": texts.sentence(index), "voice": voice.id}
                started = time.perf_counter()
                client.post("/v1/audio/speech", json=body).raise_for_status()
                return time.perf_counter() - started

        ask(0)
        alone = [ask(index) for index in range(times)]
        with running.client() as heavy:
            for index in range(queued):
                stack.submit(heavy, texts.sentence(1000 + index), voice=voice.id)
        time.sleep(1)
        beside = [ask(index) for index in range(times)]
        service.clear_queue(running)
        with service.database(running) as connection:
            row = connection.execute(
                "SELECT extract(epoch FROM avg(completed_at - started_at))::float FROM synthesis_synthesisrequest"
                " WHERE status = 'succeeded' AND team_id <> (SELECT id FROM accounts_team WHERE name = 'Bench 0')"
            ).fetchone()
    job = row[0] if row and row[0] else 0.0
    time_alone = load.percentile(alone, 50)
    return [
        Line(
            f"a request beside {queued} of another team, median",
            load.percentile(beside, 50),
            "s",
            2 * time_alone + job,
            "2 × alone + one job",
            Aim("ratio", most=1),
            note=f"alone {time_alone:.2f} s, one job {job:.2f} s, slowest beside {max(beside):.2f} s",
        )
    ]
