"""`manage.py bootstrap`: what a fresh installation needs before anybody can use it. Idempotent."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from accounts.actors import Actor
from accounts.errors import ChorusError
from accounts.models import Plan, User
from accounts.redis import client
from accounts.services import keys, teams
from synthesis import storage
from synthesis.services import presets

DEMO_EMAIL = "demo@chorus.local"
ADMIN_EMAIL = "admin@chorus.local"
DEMO_TEAM = "Demo team"
#: Wide enough that nobody who tries the service out meets a limit.
DEMO_PLAN = {
    "characters_per_month": 10_000_000,
    "concurrent_requests": 8,
    "queued_requests": 5_000,
    "requests_per_minute": 6_000,
    "stored_voices": 200,
}


class Command(BaseCommand):
    """Bucket, presets, plan, demo team, demo account, administrator, first API key."""

    help = "Create the bucket, the preset voices and, with --state, a demo team; safe to run again."

    def add_arguments(self, parser: CommandParser) -> None:
        """`--state FILE`: where the demo account's secrets are kept (mode 0600)."""
        parser.add_argument(
            "--state",
            type=Path,
            help="write (once) the demo account's secrets to this file, and take out what no longer works",
        )

    def handle(self, *args: Any, state: Path | None = None, **options: Any) -> None:
        """Each part checks for itself whether it is there."""
        client().ping()  # here a start can still say which setting is wrong; later, everything waits for Redis
        storage.ensure_bucket()
        presets.seed()
        if state is not None:
            _keep(state)


def _keep(state: Path) -> None:
    """Have the file hold what works: new accounts where there is no file or nobody yet, else what of it is still true.

    After a restore the accounts are those of the installation that was backed up, which may well have no demo team: no
    administrator is added to them.
    """
    try:
        known = json.loads(state.read_text())
    except (FileNotFoundError, ValueError):  # or half written, by a start that was killed
        known = None
    if known is not None and User.objects.exists():
        accounts = _still_true(known)
        if accounts == known:
            return
    else:
        accounts = _create_demo()
    state.touch(mode=0o600)
    state.chmod(0o600)
    state.write_text(json.dumps(accounts, indent=2) + "\n")


def _still_true(known: dict[str, str]) -> dict[str, str]:
    gone: set[str] = set()
    for email, password in (("email", "password"), ("admin_email", "admin_password")):
        user = User.objects.filter(email=known.get(email, ""), is_active=True).first()
        if user is None or not user.check_password(known.get(password, "")):
            gone |= {email, password}
    try:
        keys.authenticate(known.get("api_key", ""), ip="127.0.0.1")
    except ChorusError:
        gone.add("api_key")
    return {name: value for name, value in known.items() if name not in gone}


@transaction.atomic
def _create_demo() -> dict[str, str]:
    """New passwords and a new key each time: the old ones, if there were any, are lost with the file."""
    plan, _made = Plan.objects.get_or_create(name="Demo", defaults=DEMO_PLAN)
    passwords = {email: secrets.token_urlsafe(12) for email in (DEMO_EMAIL, ADMIN_EMAIL)}
    demo = _account(DEMO_EMAIL, passwords[DEMO_EMAIL], name="Demo")
    _account(ADMIN_EMAIL, passwords[ADMIN_EMAIL], name="Admin", is_staff=True, is_superuser=True)
    membership = demo.memberships.select_related("team__plan", "user").filter(team__name=DEMO_TEAM).first()
    actor = Actor(membership) if membership else teams.create(owner=demo, name=DEMO_TEAM, plan=plan)
    _key, secret = keys.create(actor=actor, name="First key", scopes=sorted(actor.permissions))
    return {
        "email": DEMO_EMAIL,
        "password": passwords[DEMO_EMAIL],
        "api_key": secret,
        "admin_email": ADMIN_EMAIL,
        "admin_password": passwords[ADMIN_EMAIL],
    }


def _account(email: str, password: str, **fields: Any) -> User:
    user = User.objects.filter(email=email).first() or User(email=email)
    for name, value in fields.items():
        setattr(user, name, value)
    user.set_password(password)
    user.save()
    return user
