"""How commands are declared, how they find things, and how their answers are written."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any
from uuid import UUID

from accounts.errors import NotFound
from accounts.models import Membership, Plan, Team, User

#: A JSON value: an object, a list of objects, or nothing.
Answer = dict[str, Any] | list[dict[str, Any]] | None
Run = Callable[[argparse.Namespace], Answer]
#: The answer of what has written to standard output by itself.
WRITTEN: dict[str, Any] = {}


@dataclass(frozen=True)
class Verb:
    """`./chorus admin <noun> <verb>`: `arguments` are what `add_argument` takes.

    `words` says its answer to people, where a table does not say it well.
    """

    name: str
    help: str
    run: Run
    arguments: Sequence[tuple[tuple[str, ...], dict[str, Any]]] = field(default_factory=tuple)
    words: Callable[[Any], list[str]] | None = None


def argument(*flags: str, **options: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """One argument of a verb."""
    return flags, options


TEAM = argument("team", help="name or id of a team")
USER = argument("user", help="e-mail address or id of a person")
REASON = argument("--reason", default="", help="kept in the audit log")


def day(text: str) -> date:
    """A day as 2026-01-31."""
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is not a day like 2026-01-31") from None


def identifier(text: str) -> UUID:
    """An id."""
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is not an id") from None


def find_team(given: str) -> Team:
    """By name (any case) or id; NotFound."""
    teams = Team.objects.select_related("plan", "quota")
    found = list(teams.filter(name__iexact=given)[:2])
    if len(found) > 1:
        raise NotFound(f"There are several teams called “{given}”: name the id.", code="team_ambiguous")
    team = found[0] if found else _by_id(teams, given)
    if team is None:
        raise NotFound(f"There is no team “{given}”.", code="team_not_found")
    return team


def find_user(given: str) -> User:
    """By e-mail address or id; NotFound."""
    user = User.objects.filter(email=given.strip().lower()).first() or _by_id(User.objects.all(), given)
    if user is None:
        raise NotFound(f"There is no person “{given}”.", code="user_not_found")
    return user


def find_member(team: Team, given: str) -> Membership:
    """A person in a team; NotFound."""
    members = Membership.objects.select_related("team__plan", "team__quota", "user", "quota")
    member = members.filter(team=team, user=find_user(given)).first()
    if member is None:
        raise NotFound(f"“{given}” is not in the team {team.name}.", code="member_not_found")
    return member


def find_plan(given: str) -> Plan:
    """By name or id; NotFound."""
    plan = Plan.objects.filter(name__iexact=given).first() or _by_id(Plan.objects.all(), given)
    if plan is None:
        raise NotFound(f"There is no plan “{given}”.", code="plan_not_found")
    return plan


def _by_id(rows: Any, given: str) -> Any:
    try:
        return rows.filter(pk=UUID(given)).first()
    except ValueError:
        return None


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, datetime | date):
        return value.isoformat()
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)


def lines(answer: Answer) -> list[str]:
    """An answer for people: a table, or a fact a line."""
    if answer is None:
        return ["Done."]
    if isinstance(answer, dict):
        return [f"{key.replace('_', ' ')}: {_cell(value)}" for key, value in answer.items()]
    if not answer:
        return ["Nothing."]
    columns = list(answer[0])
    rows = [[_cell(row.get(column)) for column in columns] for row in answer]
    widths = [max(len(column), *(len(row[index]) for row in rows)) for index, column in enumerate(columns)]
    head = "  ".join(
        column.replace("_", " ").ljust(width) for column, width in zip(columns, widths, strict=True)
    )
    body = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return [head.rstrip(), *body]


def _cell(value: Any) -> str:
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, dict):
        return ", ".join(f"{key} {_cell(item)}" for key, item in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_cell(item) for item in value) or "-"
    return str(value)
