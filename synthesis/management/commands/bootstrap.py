"""`manage.py bootstrap`: what a fresh installation needs before anybody can use it. Idempotent."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandParser
from django.db import transaction

from accounts.actors import Actor
from accounts.models import Plan, Team, User
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
        parser.add_argument("--state", type=Path, help="write (once) the demo account's secrets to this file")

    def handle(self, *args: Any, state: Path | None = None, **options: Any) -> None:
        """Each part checks for itself whether it is there."""
        storage.ensure_bucket()
        presets.seed()
        if state is not None and not (state.is_file() and Team.objects.filter(name=DEMO_TEAM).exists()):
            demo = _create_demo()
            state.touch(mode=0o600)
            state.chmod(0o600)
            state.write_text(json.dumps(demo, indent=2) + "\n")


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
