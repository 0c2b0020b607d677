"""One team with hundreds queued and nine that ask now and then: how long those wait, beside an ideal scheduler."""

from __future__ import annotations

import random
import time

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line
from tests.live import stack
from tests.live.stack import Stack

LIGHT = 9
MOST = 1.5


def run(quick: bool) -> list[Line]:
    """See the module. One worker; the ideal scheduler gives each turn to the team that was served longest ago."""
    heavy, each, spread = (60, 2, 6.0) if quick else (400, 10, 60.0)
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)
        keys = service.teams(running, LIGHT)

        def work(index: int) -> None:
            generator = random.Random(index)  # noqa: S311 (the same moments each time)
            moments = sorted(generator.uniform(0, spread) for _number in range(each))
            started = time.monotonic()
            with running.client(keys[index]) as client:
                for number, moment in enumerate(moments):
                    time.sleep(max(0.0, started + moment - time.monotonic()))
                    text = texts.sentence(index * 100 + number, 4)
                    stack.submit(client, text, voice=voice.id)

        with running.client() as client:
            for number in range(heavy):
                stack.submit(client, texts.sentence(5000 + number, 4), voice=voice.id)
        load.at_once(LIGHT, work)
        _light_ones_done(running)
        jobs = _jobs(running)
        service.clear_queue(running)
    ideal = _ideal(jobs)
    light = [job for job in jobs if job[0] != 0]
    waits = [started - submitted for _team, submitted, started, _seconds in light]
    ideals = [ideal[number] for number, job in enumerate(jobs) if job[0] != 0]
    return [
        Line(
            f"wait of {LIGHT} light teams, mean",
            sum(waits) / len(waits),
            "s",
            sum(ideals) / len(ideals),
            "an ideal fair scheduler",
            Aim("ratio", most=MOST),
            note=f"{len(light)} requests beside {heavy} of one team; p95 {load.percentile(waits, 95):.2f} s, ideally "
            f"{load.percentile(ideals, 95):.2f} s; the bound is our own",
        )
    ]


def _light_ones_done(running: Stack) -> None:
    deadline = time.monotonic() + 600
    with service.database(running) as connection:
        while time.monotonic() < deadline:
            row = connection.execute(
                "SELECT count(*) FROM synthesis_synthesisrequest r JOIN accounts_team t ON t.id = r.team_id"
                " WHERE t.name LIKE 'Bench %' AND r.status IN ('queued', 'running')"
            ).fetchone()
            if row == (0,):
                return
            time.sleep(0.2)
    raise RuntimeError("the light teams' requests do not end")


#: (team, 0 is the heavy one; submitted; started; seconds until the next one began), times in seconds.
Job = tuple[int, float, float, float]


def _jobs(running: Stack) -> list[Job]:
    with service.database(running) as connection:
        found = connection.execute(
            "SELECT CASE WHEN t.name LIKE 'Bench %' THEN 1 + substr(t.name, 7)::int ELSE 0 END,"
            " extract(epoch FROM r.created_at)::float, extract(epoch FROM r.started_at)::float,"
            " extract(epoch FROM r.completed_at)::float"
            " FROM synthesis_synthesisrequest r JOIN accounts_team t ON t.id = r.team_id"
            " WHERE r.status = 'succeeded' ORDER BY r.started_at"
        ).fetchall()
    # The worker never rested: what lies between two beginnings is what a turn takes, whoever chooses whose it is.
    ends = [row[2] for row in found[1:]] + [found[-1][3]]
    return [(int(row[0]), row[1], row[2], end - row[2]) for row, end in zip(found, ends, strict=True)]


def _ideal(jobs: list[Job]) -> dict[int, float]:
    """The wait of each job, by its place in `jobs`."""
    waiting = dict(enumerate(jobs))
    served: dict[int, float] = {}
    waits = {}
    now = jobs[0][2]  # the first began when it began
    while waiting:
        arrived = {number: job for number, job in waiting.items() if job[1] <= now}
        if not arrived:
            now = min(job[1] for job in waiting.values())
            continue
        chosen = min(arrived, key=lambda number: (served.get(arrived[number][0], 0.0), arrived[number][1]))
        team, submitted, _started, seconds = waiting.pop(chosen)
        waits[chosen] = now - submitted
        served[team] = now
        now += seconds
    return waits
