"""Teams, people and keys."""

from __future__ import annotations

import argparse
from pathlib import Path

from accounts.errors import NotFound
from accounts.models import ApiKey, Team, User
from accounts.operators import Operator
from accounts.services import limits, people, personal, staff, suspension, two_factor
from synthesis.console.common import (
    REASON,
    TEAM,
    USER,
    Answer,
    Verb,
    argument,
    find_plan,
    find_team,
    find_user,
)

BY = Operator.command()


def team_list(options: argparse.Namespace) -> Answer:
    teams = Team.objects.select_related("plan", "quota").order_by("name")
    answer = []
    for team in teams:
        standing = limits.standing_of(team)
        answer.append(
            {
                "team": team.name,
                "id": team.pk,
                "plan": team.plan.name,
                "suspended": team.suspended_at is not None,
                "used": standing.used + standing.reserved if standing else None,
                "limit": standing.limit if standing else None,
            }
        )
    return answer


def team_create(options: argparse.Namespace) -> Answer:
    team, link = people.create_team(
        by=BY,
        name=options.name,
        plan=find_plan(options.plan),
        owner_email=options.owner,
        time_zone=options.time_zone,
    )
    return {"team": team.pk, "name": team.name, "invitation": link}


def team_suspend(options: argparse.Namespace) -> Answer:
    team = find_team(options.team)
    canceled = suspension.suspend_team(
        by=BY, team_id=team.pk, reason=options.reason, cancel_waiting=options.cancel_waiting
    )
    return {"team": team.name, "suspended": True, "canceled": canceled}


def team_restore(options: argparse.Namespace) -> Answer:
    team = find_team(options.team)
    suspension.restore_team(by=BY, team_id=team.pk, reason=options.reason)
    return {"team": team.name, "suspended": False}


def user_list(options: argparse.Namespace) -> Answer:
    found = User.objects.order_by("email").prefetch_related("memberships__team", "groups")
    if options.team:
        found = found.filter(memberships__team=find_team(options.team))
    return [
        {
            "user": one.email,
            "id": one.pk,
            "name": one.name,
            "active": one.is_active,
            "teams": sorted(membership.team.name for membership in one.memberships.all()),
            "access": staff.access_of(one),
            "last_here": one.last_login,
        }
        for one in found
    ]


def user_suspend(options: argparse.Namespace) -> Answer:
    user = find_user(options.user)
    return {
        "user": user.email,
        "canceled": suspension.suspend_user(by=BY, user_id=user.pk, reason=options.reason),
    }


def user_restore(options: argparse.Namespace) -> Answer:
    user = find_user(options.user)
    suspension.restore_user(by=BY, user_id=user.pk, reason=options.reason)
    return {"user": user.email, "active": True}


def user_end_access(options: argparse.Namespace) -> Answer:
    sessions, keys = people.end_access(by=BY, user_id=find_user(options.user).pk, reason=options.reason)
    return {"sessions": sessions, "keys": keys}


def user_access(options: argparse.Namespace) -> Answer:
    user = staff.set_access(
        by=BY, user_id=find_user(options.user).pk, roles=options.role or [], superuser=options.administrator
    )
    return {"user": user.email, "access": staff.access_of(user)}


def user_reset_two_factor(options: argparse.Namespace) -> Answer:
    user = find_user(options.user)
    two_factor.reset(by=BY, user_id=user.pk)
    return {"user": user.email, "two_factor": False}


def user_export(options: argparse.Namespace) -> Answer:
    path = Path(options.file)
    with path.open("xb") as file:
        path.chmod(0o600)
        for piece in personal.export(by=BY, user_id=find_user(options.user).pk):
            file.write(piece)
    return {"file": str(path), "bytes": path.stat().st_size}


def user_erase(options: argparse.Namespace) -> Answer:
    user = find_user(options.user)
    if options.confirm != user.email:
        raise NotFound("Repeat the address with --confirm: this cannot be undone.", code="not_confirmed")
    return personal.erase(by=BY, user_id=user.pk, reason=options.reason)


def key_revoke(options: argparse.Namespace) -> Answer:
    prefix = options.key.removeprefix("chorus_").split("_")[0]
    key = ApiKey.objects.filter(prefix=prefix).first()
    if key is None:
        raise NotFound(f"There is no key “{options.key}”.", code="key_not_found")
    people.revoke_key(by=BY, key_id=key.pk, reason=options.reason)
    return {"key": key.hint, "revoked": True}


NOUNS: dict[str, tuple[str, list[Verb]]] = {
    "team": (
        "teams",
        [
            Verb("list", "all teams", team_list),
            Verb(
                "create",
                "a team and its owner",
                team_create,
                [
                    argument("name"),
                    argument("--owner", required=True, help="e-mail address"),
                    argument("--plan", required=True),
                    argument("--time-zone", default="UTC"),
                ],
            ),
            Verb(
                "suspend",
                "stop a team at once",
                team_suspend,
                [
                    TEAM,
                    REASON,
                    argument("--cancel-waiting", action="store_true", help="also cancel what waits"),
                ],
            ),
            Verb("restore", "let a team work again", team_restore, [TEAM, REASON]),
        ],
    ),
    "user": (
        "people",
        [
            Verb("list", "everybody", user_list, [argument("--team", default="", help="of one team")]),
            Verb("suspend", "stop a person everywhere", user_suspend, [USER, REASON]),
            Verb("restore", "let a person in again", user_restore, [USER, REASON]),
            Verb("end-access", "end sessions and keys", user_end_access, [USER, REASON]),
            Verb(
                "access",
                "roles in the panel",
                user_access,
                [
                    USER,
                    argument("--role", action="append", choices=sorted(staff.ROLES), help="may be repeated"),
                    argument("--administrator", action="store_true", help="may do everything"),
                ],
            ),
            Verb("reset-two-factor", "for a lost phone", user_reset_two_factor, [USER]),
            Verb("export", "everything about a person as a zip file", user_export, [USER, argument("file")]),
            Verb(
                "erase",
                "remove a person for good",
                user_erase,
                [USER, argument("--confirm", required=True, help="the address again"), REASON],
            ),
        ],
    ),
    "key": (
        "API keys",
        [Verb("revoke", "end a key at once", key_revoke, [argument("key", help="its prefix"), REASON])],
    ),
}
