"""The people of the tests: Alice owns a team, Bob is in it, Charlie is a stranger with a team of his own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accounts.actors import Actor
from accounts.models import Membership, Plan, Role, User
from accounts.services import keys, teams
from synthesis.models import SynthesisRequest, Voice
from synthesis.services import submission

PASSWORD = "correct horse battery"


@dataclass(frozen=True)
class Person:
    """An actor by session, and one by key with the key's secret."""

    actor: Actor
    by_key: Actor
    secret: str

    @property
    def user(self) -> User:
        return self.actor.user

    @property
    def headers(self) -> dict[str, str]:
        """What Django's test client sends: `client.get(path, headers=alice.headers)`."""
        return {"authorization": f"Bearer {self.secret}"}


def plan(name: str = "Test", **limits: Any) -> Plan:
    return Plan.objects.get_or_create(name=name, defaults=limits)[0]


def _person(actor: Actor) -> Person:
    key, secret = keys.create(actor=actor, name="test key", scopes=sorted(actor.permissions))
    return Person(actor, Actor(actor.membership, key), secret)


def owner(name: str, *, team: str = "", plan_: Plan | None = None) -> Person:
    """A person with a team of their own."""
    user = User.objects.create_user(f"{name.lower()}@example.org", PASSWORD, name=name)
    return _person(teams.create(owner=user, name=team or f"{name}'s team", plan=plan_ or plan()))


def colleague(of: Person, name: str, role: str = Role.MEMBER) -> Person:
    """A person in somebody's team; a viewer's key cannot be made, so that `by_key` has none."""
    user = User.objects.create_user(f"{name.lower()}@example.org", PASSWORD, name=name)
    actor = Actor(Membership.objects.create(team=of.actor.team, user=user, role=role))
    return Person(actor, actor, "") if role == Role.VIEWER else _person(actor)


def preset(name: str = "Hibari", **fields: Any) -> Voice:
    """A preset of the engine that the tests run (hibari, unless a test says otherwise)."""
    defaults = {
        "kind": Voice.Kind.PRESET,
        "name": name,
        "language": "en-US",
        "engine": "hibari",
        "preset": "heart" if name == "Hibari" else name.lower(),
    } | fields
    return Voice.objects.get_or_create(
        team=None, engine=defaults["engine"], preset=defaults["preset"], defaults=defaults
    )[0]


def submit(by: Person, text: str = "Hello there, this is a test.", **fields: Any) -> SynthesisRequest:
    """A queued request."""
    voice = fields.pop("voice", None) or str(preset().id)
    actor = by.by_key
    return submission.submit(
        actor=actor, planned=submission.plan(actor=actor, voice=voice, text=text, **fields)
    )
