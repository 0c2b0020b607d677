"""Counters and histograms that all processes share and that outlive them: fields of one Redis hash.

They are for `/metrics` and nothing else. Losing them (a flushed Redis) is a counter reset, which Prometheus expects.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redis.client import Pipeline
from redis.exceptions import RedisError

from accounts.redis import client

logger = logging.getLogger(__name__)

#: The hash; fields are `name|label|label…`, a histogram's end in `|<bucket>` or `|sum`.
KEY = "metrics"
#: Up to when ended requests are counted, as seconds since 1970: whoever is scraped goes on from there.
MARK = "metrics:until"
#: Seconds that a claim takes. The aim is 0.015 at the 99th percentile with a million rows queued.
CLAIM_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.015, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
#: Seconds in the queue: from "at once" to "over lunch".
WAIT_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
#: Engine seconds for a second of sound: hibari 0.01, Kokoro on two cores 0.5, above 1 slower than it is spoken.
FACTOR_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 4.0, 8.0)


@dataclass(frozen=True, slots=True)
class Histogram:
    """What was observed: how many values up to and with each bound (the last one is infinity), and their sum."""

    cumulative: list[tuple[float, float]]
    sum: float


def field(name: str, *labels: str) -> str:
    """The field of one series. Labels hold none of our separators: plans' names may."""
    return "|".join((name, *(label.replace("|", "/") for label in labels)))


def add(pipeline: Pipeline, series: str, amount: float) -> None:
    """Count `amount` on a series."""
    if amount:
        pipeline.hincrbyfloat(KEY, series, amount)


def add_observed(pipeline: Pipeline, series: str, bounds: tuple[float, ...], values: Iterable[float]) -> None:
    """Sort `values` into a histogram's buckets."""
    for value in values:
        place = bisect_left(bounds, value)
        bound = str(bounds[place]) if place < len(bounds) else "inf"
        pipeline.hincrbyfloat(KEY, f"{series}|{bound}", 1)
        pipeline.hincrbyfloat(KEY, f"{series}|sum", value)


def note_claim(seconds: float) -> None:
    """A worker asked the database for something to speak, and that took `seconds`."""
    try:
        with client().pipeline(transaction=False) as pipeline:
            add_observed(pipeline, "claim", CLAIM_BUCKETS, [seconds])
            pipeline.execute()
    except RedisError:
        logger.debug("Redis does not answer: a claim is not counted")


def note(series: str, value: float) -> None:
    """Write down what holds now."""
    try:
        client().hset(KEY, series, str(value))
    except RedisError:
        logger.debug("Redis does not answer: %s is not written down", series)


def begin(moment: float) -> None:
    """Count ended requests from `moment` on, unless that has begun: the first scrape may come much later."""
    try:
        client().set(MARK, moment, nx=True)
    except RedisError:
        logger.debug("Redis does not answer: counting begins later")


def read() -> dict[str, float]:
    """All fields; RedisError when there is no answer."""
    found: Mapping[bytes, bytes] = client().hgetall(KEY)  # type: ignore[assignment]
    return {name.decode(): float(value) for name, value in found.items()}


def of(fields: Mapping[str, float], name: str) -> dict[tuple[str, ...], float]:
    """The series of a counter: labels → value."""
    prefix = f"{name}|"
    return {
        tuple(key.removeprefix(prefix).split("|")): value
        for key, value in fields.items()
        if key.startswith(prefix)
    }


def histograms(
    fields: Mapping[str, float], name: str, bounds: tuple[float, ...]
) -> dict[tuple[str, ...], Histogram]:
    """The series of a histogram: labels → what was observed."""
    series = {key: value for key, value in fields.items() if key.split("|", 1)[0] == name}
    labels = {tuple(key.split("|")[1:-1]) for key in series}
    found = {}
    for label in labels:
        start = "|".join((name, *label))
        total = 0.0
        cumulative = []
        for bound in (*bounds, float("inf")):
            total += series.get(f"{start}|{bound}", 0.0)
            cumulative.append((bound, total))
        found[label] = Histogram(cumulative, series.get(f"{start}|sum", 0.0))
    return found
