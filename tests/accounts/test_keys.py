"""API keys: shown once, found by digest, stopped at once."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.errors import ChorusError, InvalidInput, NotAllowed, NotAuthenticated, NotFound
from accounts.models import ApiKey, AuditEntry, Role
from accounts.services import keys, teams
from tests import factories

pytestmark = pytest.mark.django_db


def test_a_key_finds_its_actor_and_is_stored_as_a_digest(django_assert_num_queries):
    alice = factories.owner("Alice")
    actor = keys.authenticate(alice.secret, ip="127.0.0.1")
    assert (actor.user, actor.team, actor.source) == (alice.user, alice.actor.team, "api")
    stored = ApiKey.objects.get()
    assert alice.secret.rsplit("_", 1)[1].encode() not in bytes(stored.digest)
    assert stored.last_used_at is not None
    # The key with team, plan and membership; the last use was written just now.
    with django_assert_num_queries(1):
        keys.authenticate(alice.secret, ip="127.0.0.1")


def test_wrong_keys_are_refused():
    alice = factories.owner("Alice")
    for token in (
        "",
        "x",
        "chorus_x_y",
        alice.secret[:-1],
        alice.secret + "x",
        alice.secret.replace("chorus", "other"),
    ):
        with pytest.raises(NotAuthenticated) as caught:
            keys.authenticate(token, ip="127.0.0.1")
        assert caught.value.code == "invalid_api_key"


def _end(alice, **changes):
    ApiKey.objects.update(**changes)


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (lambda alice: _end(alice, revoked_at=timezone.now()), "api_key_revoked"),
        (lambda alice: _end(alice, expires_at=timezone.now()), "api_key_expired"),
        (lambda alice: alice.actor.membership.delete(), "api_key_orphaned"),
        (lambda alice: type(alice.user).objects.update(is_active=False), "user_suspended"),
        (lambda alice: type(alice.actor.team).objects.update(suspended_at=timezone.now()), "team_suspended"),
        (lambda alice: _end(alice, allowed_ips=["10.0.0.1"]), "address_not_allowed"),
        (lambda alice: _end(alice, pepper_id="lost"), "invalid_api_key"),
    ],
)
def test_a_key_stops_at_once(end, code):
    alice = factories.owner("Alice")
    end(alice)
    with pytest.raises(ChorusError) as caught:
        keys.authenticate(alice.secret, ip="127.0.0.1")
    assert caught.value.code == code


def test_scopes_narrow_what_the_role_allows():
    alice = factories.owner("Alice")
    _key, secret = keys.create(actor=alice.actor, name="reader", scopes=["voices:read"])
    reader = keys.authenticate(secret, ip="127.0.0.1")
    reader.require("voices:read")
    with pytest.raises(NotAllowed) as caught:
        reader.require("syntheses:write")
    assert caught.value.code == "insufficient_scope"
    with pytest.raises(NotAllowed):
        keys.create(actor=reader, name="more")


def test_a_key_never_has_more_than_its_role():
    alice = factories.owner("Alice")
    bob = factories.colleague(alice, "Bob")
    with pytest.raises(NotAllowed):
        keys.create(actor=bob.actor, name="x", scopes=["members:write"])
    teams.change_role(actor=alice.actor, membership_id=bob.actor.membership.id, role=Role.VIEWER)
    demoted = keys.authenticate(bob.secret, ip="127.0.0.1")
    with pytest.raises(NotAllowed):
        demoted.require("syntheses:write")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"name": " "}, "name_invalid"),
        ({"name": "x", "scopes": ["nonsense"]}, "scope_unknown"),
        ({"name": "x", "scopes": []}, "scope_missing"),
        ({"name": "x", "expires_at": timezone.now() - timedelta(days=1)}, "expiry_past"),
        ({"name": "x", "allowed_ips": ["home"]}, "address_invalid"),
    ],
)
def test_bad_input_makes_no_key(arguments, code):
    alice = factories.owner("Alice")
    with pytest.raises(InvalidInput) as caught:
        keys.create(actor=alice.actor, **arguments)
    assert caught.value.code == code
    assert ApiKey.objects.count() == 1


def test_members_revoke_their_own_admins_everybodys_strangers_nothing():
    alice, charlie = factories.owner("Alice"), factories.owner("Charlie")
    bob = factories.colleague(alice, "Bob")
    for stranger in (charlie.actor, bob.actor):
        with pytest.raises(NotFound):
            keys.revoke(actor=stranger, key_id=alice.by_key.api_key.id)
    assert keys.revoke(actor=alice.actor, key_id=bob.by_key.api_key.id).revoked_at
    assert not AuditEntry.objects.filter(data__icontains=alice.secret).exists()
