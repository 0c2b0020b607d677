"""A team's list of requests: the first and the hundredth page with a million rows beside a thousand."""

from __future__ import annotations

import json
import time
from urllib.parse import urlsplit

from benchmarks import load, rows, service
from benchmarks.results import Aim, Line
from tests.live.stack import Stack

PAGE, PAGES = 10, 100
MOST = 1.5


def run(quick: bool) -> list[Line]:
    """See the module. The hundredth page is reached as a client does, from one cursor to the next."""
    many, times = (20_000, 40) if quick else (1_000_000, 300)
    with service.running("hibari", workers=0) as running:
        keys = service.teams(running, 2)
        teams = _teams(running, keys)
        with service.database(running) as connection:
            rows.requests(connection, 1_000, teams=[teams[0]], engine="hibari", status="succeeded")
            rows.requests(connection, many, teams=[teams[1]], engine="hibari", status="succeeded")
        service.tidy_up(running)
        requests = {(size, page): b"" for size in (0, 1) for page in (1, PAGES)}
        for size, key in enumerate(keys):
            first, last = _pages(running, key)
            requests[size, 1], requests[size, PAGES] = first, last
        taken: dict[tuple[int, int], list[float]] = {case: [] for case in requests}
        for _time in range(times):
            for case, request in requests.items():
                # A connection each: the proxy in front compresses, and says no length on a kept one.
                with load.Client(running.url) as client:
                    started = time.perf_counter()
                    status, _body = client.ask(request)
                    taken[case].append((time.perf_counter() - started) * 1000)
                if status != 200:
                    raise RuntimeError(f"HTTP {status}")
    return [
        Line(
            f"page {page} of {many:,} rows, median",
            load.percentile(taken[1, page], 50),
            "ms",
            load.percentile(taken[0, page], 50),
            "of 1,000 rows",
            Aim("ratio", most=MOST),
        )
        for page in (1, PAGES)
    ]


def _teams(running: Stack, keys: list[str]) -> list[str]:
    """The ids of the teams that the keys belong to."""
    with service.database(running) as connection:
        found = connection.execute(
            "SELECT id::text FROM accounts_team WHERE name LIKE 'Bench %' ORDER BY name"
        ).fetchall()
    return [row[0] for row in found]


def _pages(running: Stack, key: str) -> tuple[bytes, bytes]:
    """The requests for the first and for the last of the pages."""
    first = message = load.message(running.url, f"/v1/syntheses?limit={PAGE}", key=key)
    for _page in range(PAGES - 1):
        with load.Client(running.url) as client:
            status, body = client.ask(message)
        following = json.loads(body)["next"] if status == 200 else None
        if not following:
            raise RuntimeError(f"HTTP {status}: {body[:300]!r}")
        address = urlsplit(following)
        message = load.message(running.url, f"{address.path}?{address.query}", key=key)
    return first, message
