"""Four callers who leave at once: what is spoken for nobody."""

from __future__ import annotations

import json
import time

from benchmarks import load, service, texts
from benchmarks.results import Aim, Line

CALLERS = 4
MOST = 1
#: Seconds until they leave: the first request has begun to be spoken.
LEAVE_AFTER = 1.0


def run(quick: bool) -> list[Line]:
    """See the module. One worker; each text would take several seconds."""
    with service.running(service.engine(quick)) as running:
        voice = service.preset(running)
        clients = []
        for index in range(CALLERS):
            body = json.dumps(
                {"input": texts.paragraph(index, 3 if quick else 8), "voice": voice.id}
            ).encode()
            client = load.Client(running.url)
            client.send(
                load.message(running.url, "/v1/audio/speech", key=running.ready["api_key"], body=body)
            )
            clients.append(client)
        time.sleep(LEAVE_AFTER)
        for client in clients:
            client.__exit__()
        left = time.monotonic()
        service.settle(running)
        rest = time.monotonic() - left
        with service.database(running) as connection:
            rows = connection.execute(
                "SELECT count(*) FILTER (WHERE status = 'succeeded'), count(*) FROM synthesis_synthesisrequest"
            ).fetchone()
    spoken, submitted = rows or (0, 0)
    if submitted != CALLERS:
        raise RuntimeError(f"{submitted} of {CALLERS} requests had arrived")
    return [
        Line(
            "requests spoken to the end after everybody left",
            float(spoken),
            "",
            float(CALLERS),
            "submitted",
            Aim("value", most=MOST),
            note=f"the queue was empty {rest:.1f} s after they had left",
        )
    ]
