"""The ledger, reports and exports, forecasts, prices, and alerts."""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from django.utils import timezone

from accounts import exports
from accounts.errors import InvalidInput, NotFound
from accounts.models import Alert, AlertRule, Price
from accounts.operators import Operator
from accounts.services import alerts, prices
from synthesis.console.common import (
    WRITTEN,
    Answer,
    Verb,
    argument,
    day,
    find_plan,
    find_team,
    identifier,
)
from synthesis.services import forecast, listing, reports, rollup, verification

BY = Operator.command()


def ledger_verify(options: argparse.Namespace) -> Answer:
    result = verification.verify()
    if options.record:
        verification.record(by=BY, result=result)
    return result.as_json()


def _team(options: argparse.Namespace) -> UUID | None:
    return find_team(options.team).pk if options.team else None


def _query(options: argparse.Namespace, by: str) -> reports.Query:
    today = timezone.now().date()
    query = reports.Query(options.first or today.replace(day=1), options.last or today, by, _team(options))
    query.check()
    return query


def report_usage(options: argparse.Namespace) -> Answer:
    query = _query(options, options.by)
    if options.format:
        return _write(options, reports.COLUMNS, reports.export_rows(query))
    answer = reports.report(query)
    total = {"name": "in all", **_numbers(answer.total)}
    rows = [
        {"name": row.start or row.name or str(row.subject_id or row.team_id), **_numbers(row)}
        for row in answer.rows
    ]
    return [*rows, total]


def report_ledger(options: argparse.Namespace) -> Answer:
    query = _query(options, "day")
    rows = listing.ledger(query.first, query.last, query.team)
    return _write(options, listing.LEDGER_COLUMNS, rows)


def report_requests(options: argparse.Namespace) -> Answer:
    query = _query(options, "day")
    rows = listing.requests(query.first, query.last, query.team)
    return _write(options, listing.REQUEST_COLUMNS, rows)


def report_forecast(options: argparse.Namespace) -> Answer:
    told = forecast.this_month(team=find_team(options.team) if options.team else None)
    if told is None:
        raise NotFound("There is no use yet to forecast from.", code="no_history")
    return {
        "used": told.used,
        "expected": told.expected,
        "low": told.low,
        "high": told.high,
        "limit": told.limit,
        "limit_reached_on": told.exhausted_on,
    }


def report_rebuild(options: argparse.Namespace) -> Answer:
    return {"days_of_teams": rollup.rebuild()}


def _numbers(row: reports.Numbers) -> dict[str, object]:
    return {
        "characters": row.characters,
        "requests": row.requests,
        "failed": row.failed,
        "audio_seconds": round(row.audio_seconds, 1),
        "engine_seconds": round(row.engine_seconds, 1),
        "cost": str(round(row.cost, 4)),
    }


def _write(options: argparse.Namespace, columns: tuple[str, ...], rows: exports.Rows) -> Answer:
    """All rows as a file, a piece at a time; with --json and no format they are a JSON array."""
    _type, write = exports.FORMATS[options.format or ("json" if options.json else "csv")]
    with _output(options.out) as file:
        for piece in write(columns, rows):
            file.write(piece)
    return {"file": options.out} if options.out else WRITTEN


class _Standard:
    """Standard output as a file that is not closed."""

    def __enter__(self) -> BinaryIO:
        return sys.stdout.buffer

    def __exit__(self, *_: object) -> None:
        sys.stdout.buffer.flush()


def _output(path: str) -> BinaryIO | _Standard:
    try:
        return Path(path).open("xb") if path else _Standard()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}.", code="file_not_writable") from None


# --- Prices and alerts ------------------------------------------------------------------------------------------


def _money(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"“{text}” is not an amount such as 12.50") from None


def price_list(options: argparse.Namespace) -> Answer:
    return [
        {
            "price": one.pk,
            "plan": one.plan.name if one.plan else None,
            "from": one.valid_from,
            "per_million_characters": one.per_million_characters,
            "per_audio_hour": one.per_audio_hour,
            "per_engine_hour": one.per_engine_hour,
        }
        for one in Price.objects.select_related("plan").order_by("-valid_from", "plan__name")
    ]


def price_set(options: argparse.Namespace) -> Answer:
    made = prices.set_price(
        by=BY,
        plan=find_plan(options.plan) if options.plan else None,
        valid_from=options.valid_from or timezone.now().date(),
        per_million_characters=options.per_million_characters,
        per_audio_hour=options.per_audio_hour,
        per_engine_hour=options.per_engine_hour,
    )
    return {"price": made.pk, "from": made.valid_from}


def price_delete(options: argparse.Namespace) -> Answer:
    prices.delete_price(by=BY, price_id=options.price)
    return None


def alert_list(options: argparse.Namespace) -> Answer:
    return [
        {
            "alert": one.pk,
            "percent": one.percent,
            "team": one.team.name if one.team else None,
            "owners": one.tell_owners,
            "emails": one.emails,
            "webhook": one.webhook_url,
            "on": one.enabled,
            "raised": Alert.objects.filter(rule=one).count(),
        }
        for one in AlertRule.objects.select_related("team").order_by("percent")
    ]


def alert_create(options: argparse.Namespace) -> Answer:
    made = alerts.save_rule(
        by=BY,
        team=find_team(options.team) if options.team else None,
        percent=options.percent,
        tell_owners=not options.no_owners,
        emails=options.email or [],
        webhook_url=options.webhook,
    )
    return {"alert": made.pk, "webhook_secret": made.webhook_secret or None}


def alert_delete(options: argparse.Namespace) -> Answer:
    alerts.delete_rule(by=BY, rule_id=options.alert)
    return None


RANGE = [
    argument("--from", dest="first", type=day, default=None, help="first day (default: of this month)"),
    argument("--to", dest="last", type=day, default=None, help="last day (default: today)"),
    argument("--team", default="", help="of one team"),
    argument("--format", choices=sorted(exports.FORMATS), help="write a file"),
    argument("--out", default="", help="where (default: standard output)"),
]

NOUNS: dict[str, tuple[str, list[Verb]]] = {
    "ledger": (
        "the ledger",
        [
            Verb(
                "verify",
                "find any difference between ledger, counters and requests",
                ledger_verify,
                [argument("--record", action="store_true", help="keep the result where the panel shows it")],
                verification.words,
            )
        ],
    ),
    "report": (
        "usage and what it costs, and exports",
        [
            Verb(
                "usage",
                "what was used in a range, added up",
                report_usage,
                [argument("--by", choices=sorted(reports.GROUPS), default="day"), *RANGE],
            ),
            Verb("ledger", "each entry of the ledger (CSV unless a format is named)", report_ledger, RANGE),
            Verb("requests", "each request (CSV unless a format is named)", report_requests, RANGE),
            Verb(
                "forecast",
                "characters by the end of this month",
                report_forecast,
                [argument("--team", default="", help="of one team")],
            ),
            Verb("rebuild", "add everything up anew from the requests", report_rebuild),
        ],
    ),
    "price": (
        "what use costs",
        [
            Verb("list", "the price table", price_list),
            Verb(
                "set",
                "prices from a day on",
                price_set,
                [
                    argument("--plan", default="", help="of one plan (default: every plan without its own)"),
                    argument("--from", dest="valid_from", type=day, help="first day (default: today)"),
                    *(
                        argument(flag, type=_money, default=Decimal(0), metavar="MONEY")
                        for flag in ("--per-million-characters", "--per-audio-hour", "--per-engine-hour")
                    ),
                ],
            ),
            Verb("delete", "a line of the table", price_delete, [argument("price", type=identifier)]),
        ],
    ),
    "alert": (
        "who is told when a limit comes near",
        [
            Verb("list", "all alerts", alert_list),
            Verb(
                "create",
                "tell somebody at a share of the month's characters",
                alert_create,
                [
                    argument("percent", type=int),
                    argument("--team", default="", help="of one team (default: each team)"),
                    argument("--no-owners", action="store_true", help="do not tell the team's owners"),
                    argument("--email", action="append", help="also this address; may be repeated"),
                    argument("--webhook", default="", help="also this address by HTTP"),
                ],
            ),
            Verb("delete", "an alert", alert_delete, [argument("alert", type=identifier)]),
        ],
    ),
}
