"""A person's data: handed out whole, and removed, with a report of what is gone and what has to stay."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _
from django_otp.plugins.otp_static.models import StaticDevice
from django_otp.plugins.otp_totp.models import TOTPDevice

from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.exports import Sink
from accounts.extensions import registry
from accounts.models import (
    ApiKey,
    AuditEntry,
    Invitation,
    LedgerEntry,
    MemberQuota,
    Membership,
    Role,
    Team,
    User,
)
from accounts.models.users import NOBODY
from accounts.operators import Operator
from accounts.services import audit, people

EXPORT = "accounts.export_person"
ERASE = "accounts.erase_person"


def export(*, by: Operator, user_id: UUID) -> Iterator[bytes]:
    """Everything about a person as a zip archive, written while it is read."""
    by.require(EXPORT)
    user = User.objects.filter(pk=user_id).first()
    if user is None:
        raise NotFound
    by.record("person.exported", target=user)
    return _archive(user)


def _archive(user: User) -> Iterator[bytes]:
    sink = Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("account.json", _json(_account(user)))
        with archive.open("audit.jsonl", "w") as file:
            for entry in (
                AuditEntry.objects.filter(actor_id=user.pk).order_by("id").iterator(chunk_size=1_000)
            ):
                file.write(_line({"when": entry.created_at, "action": entry.action, "data": entry.data}))
        yield sink.taken()
        for part in registry.personal_data:
            for path, content in part.export(user):
                if isinstance(content, bytes):
                    archive.writestr(path, content)
                else:
                    with archive.open(path, "w", force_zip64=True) as file:
                        for piece in content:
                            file.write(piece)
                yield sink.taken()
    yield sink.taken()


def _account(user: User) -> dict[str, Any]:
    return {
        "id": user.pk,
        "email": user.email,
        "name": user.name,
        "language": user.language,
        "joined": user.date_joined,
        "last_login": user.last_login,
        "teams": [
            {"id": one.team_id, "name": one.team.name, "role": one.role, "joined": one.created_at}
            for one in Membership.objects.filter(user=user).select_related("team")
        ],
        "api_keys": [
            {
                "name": key.name,
                "hint": key.hint,
                "team": key.team_id,
                "scopes": key.scopes,
                "created": key.created_at,
                "last_used": key.last_used_at,
                "revoked": key.revoked_at,
            }
            for key in ApiKey.objects.filter(user=user)
        ],
        "characters_charged": sum(
            LedgerEntry.objects.filter(user_id=user.pk, kind=LedgerEntry.Kind.SETTLE).values_list(
                "characters", flat=True
            )
        ),
    }


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=str).encode() + b"\n"


def what_would_go(user: User) -> list[str]:
    """Teams that keep somebody from being erased: they own them alone, with others in them."""
    alone = []
    for membership in Membership.objects.filter(user=user, role=Role.OWNER).select_related("team"):
        others = Membership.objects.filter(team=membership.team_id).exclude(pk=membership.pk)
        if others.exists() and not others.filter(role=Role.OWNER).exists():
            alone.append(membership.team.name)
    return alone


def erase(*, by: Operator, user_id: UUID, reason: str = "") -> dict[str, Any]:
    """Remove a person: account, voices, texts, sound; what was removed and what stays.

    What stays are numbers under an id that leads to nobody (ledger, usage), and the audit log, which cannot be
    changed. Raises Conflict for oneself, an administrator, and the only owner of a team with others in it.
    """
    by.require(ERASE)
    with transaction.atomic():
        user = User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
        if user is None:
            raise NotFound
        if user.is_superuser or (by.user is not None and by.user.pk == user.pk):
            raise Conflict(
                _("An administrator is not erased. Take their access away first."), code="erase_staff"
            )
        outcome = _erase(user, _("They are the only owner of %(teams)s. Make somebody else an owner first."))
        by.record("person.erased", target=user, **outcome, reason=reason)
    return outcome


def erase_oneself(*, user: User, password: str) -> None:
    """The same by the person, who types their password once more. Raises InvalidInput (`password_wrong`) and Conflict
    (`last_owner`; `erase_staff` for who runs the service).
    """
    with transaction.atomic():
        locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if not locked.check_password(password):
            raise InvalidInput(
                _("This is not your password. Nothing was deleted."), code="password_wrong", param="password"
            )
        if locked.is_staff or locked.is_superuser:
            raise Conflict(
                _("You run this service: another administrator has to take your access away first."),
                code="erase_staff",
            )
        audit.record("person.erased", user=locked, by="oneself")
        _erase(locked, _("You are the only owner of %(teams)s. Hand it over first, on its settings page."))


def _erase(user: User, refusal: str) -> dict[str, Any]:
    """In the caller's transaction; Conflict with `refusal` for the only owner of a team with others in it."""
    alone = what_would_go(user)
    if alone:
        raise Conflict(refusal % {"teams": ", ".join(alone)}, code="last_owner")
    removed: dict[str, int] = {}
    for part in registry.personal_data:
        removed |= part.erase(user)
    removed |= _erase_account(user)
    kept = {
        "audit_entries": AuditEntry.objects.filter(Q(actor_id=user.pk) | Q(actor_name=user.email)).count(),
        "ledger_entries": LedgerEntry.objects.filter(user_id=user.pk).count(),
    }
    _anonymise(user)
    return {"removed": removed, "kept": kept}


def _erase_account(user: User) -> dict[str, int]:
    sole = [
        membership.team_id
        for membership in Membership.objects.filter(user=user)
        if not Membership.objects.filter(team=membership.team_id).exclude(pk=membership.pk).exists()
    ]
    # Nobody is left in them: closed, and not deleted, since the ledger and the reports are about them.
    closed = Team.objects.filter(pk__in=sole, suspended_at=None).update(suspended_at=timezone.now())
    MemberQuota.objects.filter(membership__user=user).delete()
    return {
        "teams_closed": closed,
        "memberships": Membership.objects.filter(user=user).delete()[0],
        "api_keys": ApiKey.objects.filter(user=user).update(
            name=_("Erased"), revoked_at=timezone.now(), allowed_ips=[], digest=b""
        ),
        "invitations": Invitation.objects.filter(email=user.email).delete()[0],
        "sessions": people.end_sessions(user.pk),
        "second_factors": TOTPDevice.objects.filter(user=user).delete()[0]
        + StaticDevice.objects.filter(user=user).delete()[0],
    }


def _anonymise(user: User) -> None:
    user.email = f"{user.pk}@{NOBODY}"
    user.name = user.language = ""
    user.is_active = user.is_staff = False
    user.last_login = None
    user.set_unusable_password()
    user.save()
    user.groups.clear()
