"""Limits: plans, quotas of teams and people, grants."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from datetime import datetime, time
from typing import Any
from zoneinfo import ZoneInfo

from accounts.models import Grant, Membership, Plan, QuotaChange, Team
from accounts.operators import Operator
from accounts.services import grants, limits, quotas
from synthesis.console.common import (
    REASON,
    TEAM,
    Answer,
    Verb,
    argument,
    day,
    find_member,
    find_plan,
    find_team,
    find_user,
    identifier,
)

BY = Operator.command()
MEMBER = argument("--user", help="one person in the team instead of all of it")


def _limit(text: str) -> int | None:
    """A number, or `plan` for “as the level above says”."""
    if text in {"plan", "none"}:
        return None
    try:
        return int(text.replace(",", "").replace("_", ""))
    except ValueError:
        raise argparse.ArgumentTypeError(f"“{text}” is neither a number nor “plan”") from None


LIMITS = [
    argument(f"--{name.replace('_', '-')}", type=_limit, default=argparse.SUPPRESS, metavar="N|plan")
    for name in limits.FIELDS
]
NEXT = argument("--next-month", action="store_true", help="from the team's next month on, and not now")
DRY = argument("--dry-run", action="store_true", help="only show what it would do")


def _target(options: argparse.Namespace) -> Team | Membership:
    team = find_team(options.team)
    return find_member(team, options.user) if options.user else team


def quota_show(options: argparse.Namespace) -> Answer:
    target = _target(options)
    own = limits.override_of(target)
    in_force = limits.of_team(target) if isinstance(target, Team) else limits.of_member(target)
    answer: dict[str, Any] = {
        name: {"own": getattr(own, name, None), "in_force": value} for name, value in asdict(in_force).items()
    }
    standing = limits.standing_of(target)
    if standing is not None:
        answer["this_month"] = {
            "limit": standing.limit,
            "used": standing.used,
            "reserved": standing.reserved,
            "remaining": standing.remaining,
            "ends": standing.period.end.isoformat(),
        }
    return answer


def quota_set(options: argparse.Namespace) -> Answer:
    target = _target(options)
    values: dict[str, Any] = {
        name: getattr(options, name) for name in limits.FIELDS if hasattr(options, name)
    }
    if options.plan:
        values["plan"] = find_plan(options.plan)
    if options.dry_run:
        return [effect.as_json() for effect in quotas.preview(targets=[target], values=values)]
    made = quotas.change(
        by=BY, targets=[target], values=values, next_period=options.next_month, reason=options.reason
    )
    return [
        {"change": one.pk, "before": one.before, "after": one.after, "takes_effect": one.apply_at}
        for one in made
    ]


def quota_undo(options: argparse.Namespace) -> Answer:
    made = quotas.undo(by=BY, change_id=options.change)
    return {"change": made.pk, "before": made.before, "after": made.after}


def quota_history(options: argparse.Namespace) -> Answer:
    team = find_team(options.team)
    changes = QuotaChange.objects.filter(team=team) | QuotaChange.objects.filter(membership__team=team)
    return [
        {
            "change": one.pk,
            "when": one.created_at,
            "of": str(one),
            "before": one.before,
            "after": one.after,
            "planned": one.is_planned,
            "reason": one.reason,
        }
        for one in changes.select_related("team", "membership__user", "membership__team").order_by(
            "-created_at"
        )[:100]
    ]


def grant_give(options: argparse.Namespace) -> Answer:
    team = find_team(options.team)
    expires = None
    if options.expires:
        expires = datetime.combine(options.expires, time(23, 59, 59), ZoneInfo(team.time_zone))
    made = grants.give(
        by=BY,
        team=team,
        user=find_user(options.user) if options.user else None,
        characters=options.characters,
        reason=options.reason,
        expires_at=expires,
    )
    return {"grant": made.pk, "characters": made.characters, "expires": made.expires_at}


def grant_revoke(options: argparse.Namespace) -> Answer:
    return {"taken_back": grants.revoke(by=BY, grant_id=options.grant, reason=options.reason)}


def grant_list(options: argparse.Namespace) -> Answer:
    found = Grant.objects.filter(team=find_team(options.team)).select_related(
        "team__plan", "team__quota", "user"
    )
    return [
        {
            "grant": one.pk,
            "characters": one.characters,
            "left": grants.left(one),
            "of": one.user.email if one.user else None,
            "expires": one.expires_at,
            "ended": one.ended_at,
            "reason": one.reason,
        }
        for one in found.order_by("-created_at")
    ]


def grant_adjust(options: argparse.Namespace) -> Answer:
    entry = grants.adjust(
        by=BY,
        team=find_team(options.team),
        user=find_user(options.user) if options.user else None,
        characters=options.characters,
        reason=options.reason,
    )
    return {"entry": entry.pk, "characters": entry.characters}


def plan_list(options: argparse.Namespace) -> Answer:
    plans = Plan.objects.order_by("name")
    return [{"plan": one.name} | {name: getattr(one, name) for name in quotas.PLAN_FIELDS} for one in plans]


def _plan_values(options: argparse.Namespace) -> dict[str, Any]:
    return {name: getattr(options, name) for name in quotas.PLAN_FIELDS if hasattr(options, name)}


def plan_create(options: argparse.Namespace) -> Answer:
    plan = quotas.create_plan(by=BY, name=options.name, values=_plan_values(options))
    return {"plan": plan.name, "id": plan.pk}


def plan_set(options: argparse.Namespace) -> Answer:
    plan = find_plan(options.plan)
    if options.dry_run:
        return [effect.as_json() for effect in quotas.preview(targets=[plan], values=_plan_values(options))]
    made = quotas.change(
        by=BY,
        targets=[plan],
        values=_plan_values(options),
        next_period=options.next_month,
        reason=options.reason,
    )
    return [{"change": one.pk, "before": one.before, "after": one.after} for one in made]


def plan_delete(options: argparse.Namespace) -> Answer:
    quotas.delete_plan(by=BY, plan_id=find_plan(options.plan).pk)
    return None


PLAN_LIMITS = [
    *(
        argument(f"--{name.replace('_', '-')}", type=int, default=argparse.SUPPRESS, metavar="N")
        for name in limits.FIELDS
    ),
    argument("--weight", type=float, default=argparse.SUPPRESS, help="share between teams"),
    argument("--retention-days", type=int, default=argparse.SUPPRESS, metavar="N"),
]
CHARACTERS = argument("characters", type=int)

NOUNS: dict[str, tuple[str, list[Verb]]] = {
    "quota": (
        "limits of teams and people",
        [
            Verb("show", "limits and this month's use", quota_show, [TEAM, MEMBER]),
            Verb(
                "set",
                "change limits or the plan",
                quota_set,
                [
                    TEAM,
                    MEMBER,
                    *LIMITS,
                    argument("--plan", default="", help="another plan"),
                    NEXT,
                    DRY,
                    REASON,
                ],
            ),
            Verb(
                "undo",
                "put back what was there before a change",
                quota_undo,
                [argument("change", type=identifier)],
            ),
            Verb("history", "changes of a team's limits", quota_history, [TEAM]),
        ],
    ),
    "grant": (
        "characters on top of a limit",
        [
            Verb(
                "give",
                "give characters once",
                grant_give,
                [
                    TEAM,
                    CHARACTERS,
                    argument("--reason", required=True, help="kept in the ledger"),
                    MEMBER,
                    argument("--expires", type=day, help="last day, as 2026-01-31"),
                ],
            ),
            Verb(
                "revoke", "take back what is left", grant_revoke, [argument("grant", type=identifier), REASON]
            ),
            Verb("list", "grants of a team", grant_list, [TEAM]),
            Verb(
                "adjust",
                "correct this month, by fewer characters with a minus",
                grant_adjust,
                [TEAM, CHARACTERS, argument("--reason", required=True), MEMBER],
            ),
        ],
    ),
    "plan": (
        "plans",
        [
            Verb("list", "all plans", plan_list),
            Verb("create", "a plan", plan_create, [argument("name"), *PLAN_LIMITS]),
            Verb("set", "change a plan", plan_set, [argument("plan"), *PLAN_LIMITS, NEXT, DRY, REASON]),
            Verb("delete", "a plan without teams", plan_delete, [argument("plan")]),
        ],
    ),
}
