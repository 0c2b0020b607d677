"""Requests, workers, pools, voices, settings, the ledger and the reports."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import BinaryIO

from django.utils import timezone

from accounts import exports
from accounts.operators import Operator
from accounts.services import operator_settings
from synthesis.console.common import (
    REASON,
    TEAM,
    Answer,
    Verb,
    argument,
    day,
    find_team,
    identifier,
)
from synthesis.models import Pool, Status, SynthesisRequest, Worker
from synthesis.models.workers import ALIVE
from synthesis.services import operations, pools, reports, rollup, takedown, verification, waiting, workers

BY = Operator.command()
REQUEST = argument("request", type=identifier, help="id of a request")


def queue_show(options: argparse.Namespace) -> Answer:
    return [
        {
            "team": one.team.name,
            "waiting": one.waiting,
            "running": one.running,
            "allowed": one.allowed,
            "characters": one.characters,
            "longest_wait_seconds": round(one.oldest_wait),
            "pool": one.pool,
            "why": one.why,
        }
        for one in waiting.by_team()
    ]


def queue_failures(options: argparse.Namespace) -> Answer:
    return [
        {"code": one.code, "count": one.count, "teams": one.teams, "retried": one.retried, "last": one.last}
        for one in waiting.failures(hours=options.hours)
    ]


def request_cancel(options: argparse.Namespace) -> Answer:
    return {"canceled": operations.cancel(by=BY, request_id=options.request, reason=options.reason)}


def request_retry(options: argparse.Namespace) -> Answer:
    return {"request": operations.retry(by=BY, request_id=options.request).pk, "status": Status.QUEUED.value}


def request_retry_failed(options: argparse.Namespace) -> Answer:
    done, refused, why = operations.retry_all(by=BY, code=options.code, hours=options.hours)
    return {"submitted": done, "refused": refused, "last_reason": why}


def request_priority(options: argparse.Namespace) -> Answer:
    operations.set_priority(
        by=BY, request_id=options.request, priority=options.priority, reason=options.reason
    )
    return {"request": options.request, "priority": options.priority}


def worker_list(options: argparse.Namespace) -> Answer:
    now = timezone.now()
    return [
        {
            "worker": one.name,
            "state": one.state if now - one.last_seen < ALIVE or one.state == Worker.State.GONE else "silent",
            "order": one.order,
            "pool": one.pool,
            "engine": one.engine,
            "gpu": one.gpu,
            "memory_bytes": one.rss_bytes,
            "requests_done": one.requests_done,
            "in_hand": SynthesisRequest.objects.filter(worker=one.name, status=Status.RUNNING).count(),
            "last_seen": one.last_seen,
            "last_error": one.last_error,
        }
        for one in Worker.objects.order_by("name")
    ]


def worker_order(options: argparse.Namespace) -> Answer:
    order = "" if options.verb == "resume" else options.verb
    workers.order(by=BY, name=options.worker, order=order, reason=options.reason)
    return {"worker": options.worker, "order": order}


def pool_list(options: argparse.Namespace) -> Answer:
    names = list(Pool.objects.order_by("name").values_list("name", flat=True))
    teams = pools.teams_in(names)
    return [
        {
            "pool": name,
            "teams": teams.get(name, 0),
            "workers": Worker.objects.alive().filter(pool=name).count(),
        }
        for name in names
    ]


def pool_create(options: argparse.Namespace) -> Answer:
    return {"pool": pools.create(by=BY, name=options.pool, note=options.note).name}


def pool_delete(options: argparse.Namespace) -> Answer:
    pools.delete(by=BY, name=options.pool)
    return None


def pool_assign(options: argparse.Namespace) -> Answer:
    name = "" if options.pool == "none" else options.pool
    team = find_team(options.team)
    pools.assign(by=BY, team_id=team.pk, name=name, reason=options.reason)
    return {"team": team.name, "pool": name}


def voice_block(options: argparse.Namespace) -> Answer:
    return {"ended_requests": takedown.take_down(by=BY, voice_id=options.voice, reason=options.reason)}


def voice_restore(options: argparse.Namespace) -> Answer:
    takedown.restore(by=BY, voice_id=options.voice, reason=options.reason)
    return None


def setting_list(options: argparse.Namespace) -> Answer:
    operator_settings.forget()
    return [
        {"setting": key, "value": operator_settings.get(key), "default": setting.default}
        for key, setting in operator_settings.SETTINGS.items()
    ]


def setting_set(options: argparse.Namespace) -> Answer:
    return {options.key: operator_settings.change(by=BY, key=options.key, value=options.value)}


def ledger_verify(options: argparse.Namespace) -> Answer:
    result = verification.verify()
    if options.record:
        verification.record(by=BY, result=result)
    return result.as_json()


def usage_report(options: argparse.Namespace) -> Answer:
    today = timezone.now().date()
    query = reports.Query(
        options.first or today.replace(day=1),
        options.last or today,
        options.by,
        find_team(options.team).pk if options.team else None,
    )
    query.check()
    if options.format:
        _type, write = exports.FORMATS[options.format]
        with _output(options.out) as file:
            for piece in write(reports.COLUMNS, reports.export_rows(query)):
                file.write(piece)
        return None
    answer = reports.report(query)
    total = {"name": "in all", **_numbers(answer.total)}
    rows = [
        {"name": row.start or row.name or str(row.subject_id or row.team_id), **_numbers(row)}
        for row in answer.rows
    ]
    return [*rows, total]


def _numbers(row: reports.Numbers) -> dict[str, object]:
    return {
        "characters": row.characters,
        "requests": row.requests,
        "failed": row.failed,
        "audio_seconds": round(row.audio_seconds, 1),
        "engine_seconds": round(row.engine_seconds, 1),
        "cost": str(round(row.cost, 4)),
    }


class _Standard:
    """Standard output as a file that is not closed."""

    def __enter__(self) -> BinaryIO:
        return sys.stdout.buffer

    def __exit__(self, *_: object) -> None:
        sys.stdout.buffer.flush()


def _output(path: str) -> BinaryIO | _Standard:
    return Path(path).open("xb") if path else _Standard()


def usage_rebuild(options: argparse.Namespace) -> Answer:
    return {"days_of_teams": rollup.rebuild()}


HOURS = argument("--hours", type=int, default=24, help="look back so far (default: 24)")
VOICE = argument("voice", type=identifier, help="id of a voice")
POOL = argument("pool", help="name of a pool")
WORKER = argument("worker", help="name of a worker")

NOUNS: dict[str, tuple[str, list[Verb]]] = {
    "queue": (
        "what waits and what failed",
        [
            Verb("show", "by team, and why", queue_show),
            Verb("failures", "by cause", queue_failures, [HOURS]),
        ],
    ),
    "request": (
        "synthesis requests",
        [
            Verb("cancel", "end a request without charge", request_cancel, [REQUEST, REASON]),
            Verb("retry", "submit a failed one again", request_retry, [REQUEST]),
            Verb("retry-failed", "all of one cause", request_retry_failed, [argument("code"), HOURS]),
            Verb(
                "priority",
                "move it in its team's queue",
                request_priority,
                [REQUEST, argument("priority", type=int), REASON],
            ),
        ],
    ),
    "worker": (
        "workers",
        [
            Verb("list", "all workers and their health", worker_list),
            *(
                Verb(name, text, worker_order, [WORKER, REASON])
                for name, text in (
                    ("pause", "finish and take nothing more"),
                    ("resume", "go on"),
                    ("restart", "finish and start anew"),
                    ("recycle", "finish and load the engine anew"),
                    ("stop", "stop at once and take nothing more"),
                )
            ),
        ],
    ),
    "pool": (
        "workers that serve only some teams",
        [
            Verb("list", "all pools", pool_list),
            Verb("create", "a pool", pool_create, [POOL, argument("--note", default="")]),
            Verb("delete", "a pool without teams", pool_delete, [POOL]),
            Verb("assign", "put a team into a pool (“none”: out of it)", pool_assign, [TEAM, POOL, REASON]),
        ],
    ),
    "voice": (
        "voices",
        [
            Verb(
                "block", "forbid a voice at once", voice_block, [VOICE, argument("--reason", required=True)]
            ),
            Verb("restore", "allow a voice again", voice_restore, [VOICE, REASON]),
        ],
    ),
    "setting": (
        "operator settings",
        [
            Verb("list", "all settings", setting_list),
            Verb(
                "set",
                "change a setting",
                setting_set,
                [argument("key", choices=sorted(operator_settings.SETTINGS)), argument("value")],
            ),
        ],
    ),
    "ledger": (
        "the ledger",
        [
            Verb(
                "verify",
                "find any difference between ledger, counters and requests",
                ledger_verify,
                [argument("--record", action="store_true", help="keep the result where the panel shows it")],
            )
        ],
    ),
    "usage": (
        "reports",
        [
            Verb(
                "report",
                "usage of a range",
                usage_report,
                [
                    argument(
                        "--from",
                        dest="first",
                        type=day,
                        default=None,
                        help="first day (default: of this month)",
                    ),
                    argument("--to", dest="last", type=day, default=None, help="last day (default: today)"),
                    argument("--by", choices=sorted(reports.GROUPS), default="day"),
                    argument("--team", default="", help="of one team"),
                    argument("--format", choices=sorted(exports.FORMATS), help="write a file"),
                    argument("--out", default="", help="where (default: standard output)"),
                ],
            ),
            Verb("rebuild", "add everything up anew from the requests", usage_rebuild),
        ],
    ),
}
