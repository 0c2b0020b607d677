"""The queue, requests, workers, pools, and settings."""

from __future__ import annotations

import argparse

from django.utils import timezone

from accounts.operators import Operator
from accounts.services import operator_settings
from synthesis.console.common import (
    REASON,
    TEAM,
    Answer,
    Verb,
    argument,
    find_team,
    identifier,
)
from synthesis.errors import RequestNotFound
from synthesis.models import Pool, Status, SynthesisRequest, Worker
from synthesis.models.workers import ALIVE
from synthesis.services import operations, pools, waiting, workers

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


def request_show(options: argparse.Namespace) -> Answer:
    one = SynthesisRequest.objects.select_related("team", "user", "voice").filter(pk=options.request).first()
    if one is None:
        raise RequestNotFound
    why = next((row.why for row in waiting.queued(team=one.team_id) if row.pk == one.pk), None)  # type: ignore[attr-defined]
    return {
        "request": one.pk,
        "status": one.status,
        "team": one.team.name,
        "user": one.user.email,
        "voice": one.voice.name,
        "characters": one.characters,
        "priority": one.priority,
        "worker": one.worker,
        "attempt": one.attempt,
        "submitted": one.created_at,
        "started": one.started_at,
        "ended": one.completed_at,
        "error": one.error_code,
        "why_it_waits": why,
    }


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
    name = "" if options.pool == pools.NO_POOL else options.pool
    team = find_team(options.team)
    pools.assign(by=BY, team_id=team.pk, name=name, reason=options.reason)
    return {"team": team.name, "pool": name}


def setting_list(options: argparse.Namespace) -> Answer:
    operator_settings.forget()
    return [
        {"setting": key, "value": operator_settings.get(key), "default": setting.default}
        for key, setting in operator_settings.SETTINGS.items()
    ]


def setting_set(options: argparse.Namespace) -> Answer:
    return {options.key: operator_settings.change(by=BY, key=options.key, value=options.value)}


HOURS = argument("--hours", type=int, default=24, help="look back so far (default: 24)")
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
            Verb("show", "what became of a request, and why it waits", request_show, [REQUEST]),
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
}
