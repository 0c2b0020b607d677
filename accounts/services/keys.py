"""API keys: made, found, changed, revoked."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import string
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, FilteredRelation, Q
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import permissions
from accounts.actors import Actor
from accounts.errors import Conflict, InvalidInput, NotAllowed, NotAuthenticated, NotFound
from accounts.models import ApiKey, Membership
from accounts.models.fields import normal_network
from accounts.queries import Compiled
from accounts.services import audit

_ALPHABET = string.ascii_letters + string.digits
#: `last_used_at` is written at most this often for a key, so that reading stays reading.
_TOUCH_EVERY = timedelta(minutes=1)
_CAPS = ("characters_per_month", "requests_per_minute", "concurrent_requests")


def create(
    *,
    actor: Actor,
    name: str,
    scopes: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    characters_per_month: int | None = None,
    requests_per_minute: int | None = None,
    concurrent_requests: int | None = None,
    allowed_ips: Sequence[str] = (),
) -> tuple[ApiKey, str]:
    """A new key for the actor, and its secret, which is never to be had again.

    `allowed_ips` are addresses and networks ("10.0.0.0/8"). The limits are the key's own, below its owner's.

    Raises InvalidInput for an unknown scope, a past expiry or an address that is none, and NotAllowed for what goes
    beyond the actor: a scope that they do not have, or, by a key that is bound, a freer key.
    """
    actor.require(permissions.KEYS_WRITE)
    name = _checked_name(name)
    chosen = _checked_scopes(
        scopes if scopes is not None else set(permissions.DEFAULT_SCOPES) & actor.permissions
    )
    _check_given(actor, chosen)
    _check_expiry(expires_at)
    allowed_ips = _networks(allowed_ips)
    _check_bounds(actor, expires_at, allowed_ips)
    prefix = "".join(secrets.choice(_ALPHABET) for _i in range(10))
    secret = "".join(secrets.choice(_ALPHABET) for _i in range(40))
    pepper_id = list(settings.API_KEY_PEPPERS)[-1]
    with transaction.atomic():
        key = ApiKey.objects.create(
            team=actor.team,
            user=actor.user,
            name=name,
            prefix=prefix,
            digest=_digest(secret, pepper_id),
            pepper_id=pepper_id,
            scopes=chosen,
            allowed_ips=allowed_ips,
            characters_per_month=characters_per_month,
            requests_per_minute=requests_per_minute,
            concurrent_requests=concurrent_requests,
            expires_at=expires_at,
        )
        audit.record("key.created", actor=actor, target=key, name=name, scopes=key.scopes)
    return key, f"chorus_{prefix}_{secret}"


def _checked_name(name: str) -> str:
    name = name.strip()
    if not name or len(name) > 100 or not name.isprintable():
        raise InvalidInput(
            _("Give the key a name of 1 to 100 characters, none of them a control character."),
            code="name_invalid",
            param="name",
        )
    return name


def _checked_scopes(scopes: Collection[str]) -> list[str]:
    for scope in scopes:
        if scope not in permissions.SCOPES:
            raise InvalidInput(
                _("“%(scope)s” is not a scope. There are: %(all)s.")
                % {"scope": scope, "all": ", ".join(permissions.SCOPES)},
                code="scope_unknown",
                param="scopes",
            )
    if not scopes:
        raise InvalidInput(_("Choose at least one scope."), code="scope_missing", param="scopes")
    return sorted(set(scopes))


def _check_given(actor: Actor, scopes: Iterable[str]) -> None:
    for scope in scopes:
        if not actor.can(scope):
            raise NotAllowed(
                _("You cannot give a key the scope “%(scope)s”, which you do not have.") % {"scope": scope},
                param="scopes",
            )


def _check_expiry(expires_at: datetime | None) -> None:
    if expires_at and expires_at <= timezone.now():
        raise InvalidInput(
            _("The expiry lies in the past. Choose a later day."), code="expiry_past", param="expires_at"
        )


def _networks(addresses: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_network(address) for address in addresses))


def _network(address: str) -> str:
    try:
        return normal_network(address)
    except ValueError:
        raise InvalidInput(
            _("“%(address)s” is neither an IP address nor a network such as 10.0.0.0/8.")
            % {"address": address},
            code="address_invalid",
            param="allowed_ips",
        ) from None


def allows(networks: Sequence[str], ip: str) -> bool:
    """Whether `ip` is in one of `networks`, or there are none."""
    if not networks:
        return True
    try:
        address = ipaddress.ip_address(ip)
    except ValueError:  # no address is known: a connection over a Unix socket without a proxy's word
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return any(address in ipaddress.ip_network(network, strict=False) for network in networks)


def _inside(networks: Sequence[str], outer: Sequence[str]) -> bool:
    """Whether each of `networks`, and there are some, lies in one of `outer`."""
    around = [ipaddress.ip_network(network, strict=False) for network in outer]

    def lies(network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
        return any(
            network.version == other.version and network.subnet_of(other)  # type: ignore[arg-type]
            for other in around
        )

    return bool(networks) and all(lies(ipaddress.ip_network(network)) for network in networks)


def _check_bounds(actor: Actor, expires_at: datetime | None, allowed_ips: Sequence[str]) -> None:
    """NotAllowed when a key would give somebody who has only the actor's key more than that key does."""
    own = actor.api_key
    if own is None:
        return
    for limit in _CAPS:
        if getattr(own, limit) is not None:
            # Each new key would have a count of its own.
            raise NotAllowed(
                _("A key with a cap of its own cannot create keys. Use one without, or sign in."), param=limit
            )
    if own.expires_at is not None and (expires_at is None or expires_at > own.expires_at):
        raise NotAllowed(_("The new key must not outlive the key that creates it."), param="expires_at")
    if own.allowed_ips and not _inside(allowed_ips, own.allowed_ips):
        raise NotAllowed(
            _("The new key may be allowed only from addresses of the key that creates it."),
            param="allowed_ips",
        )


def find(actor: Actor, key_id: object) -> ApiKey:
    """One of the keys that the actor may see; NotFound."""
    actor.require(permissions.KEYS_WRITE)
    key: ApiKey | None = visible(actor).select_related("user").filter(id=key_id).first()
    if key is None:
        raise NotFound
    return key


def update(*, actor: Actor, key_id: object, **changes: Any) -> ApiKey:
    """Change what is given of name, scopes, expires_at, allowed_ips and the three caps; it holds from the next call on.

    None takes a cap or the expiry away. Raises NotFound, Conflict (a revoked key), InvalidInput as `create` does, and
    NotAllowed for a scope that the actor lacks, and for whoever acts by a key that is itself bound: such a key makes
    no key freer than itself, itself included. Making one narrower is always allowed.
    """
    actor.require(permissions.KEYS_WRITE)
    if "name" in changes:
        changes["name"] = _checked_name(changes["name"])
    if "scopes" in changes:
        changes["scopes"] = _checked_scopes(changes["scopes"])
    if "allowed_ips" in changes:
        changes["allowed_ips"] = _networks(changes["allowed_ips"])
    _check_expiry(changes.get("expires_at"))
    with transaction.atomic():
        key = (
            visible(actor)
            .select_related("user")
            .select_for_update(of=("self",), no_key=True)
            .filter(id=key_id)
            .first()
        )
        if key is None:
            raise NotFound
        if key.revoked_at is not None:
            raise Conflict(_("This API key was revoked. Create a new one."), code="api_key_revoked")
        changed = {name: value for name, value in changes.items() if getattr(key, name) != value}
        _check_change(actor, key, changed)
        if changed:
            before = {name: getattr(key, name) for name in changed}
            for name, value in changed.items():
                setattr(key, name, value)
            key.save(update_fields=list(changed))
            audit.record("key.updated", actor=actor, target=key, before=_plain(before), after=_plain(changed))
    return key


def _check_change(actor: Actor, key: ApiKey, changed: dict[str, Any]) -> None:
    """NotAllowed when `key` would become freer than the actor is."""
    given = set(changed.get("scopes", ())) - set(key.scopes)
    _check_given(actor, sorted(given))
    own = actor.api_key
    if own is None:
        return
    for cap in _CAPS:
        if cap in changed and getattr(own, cap) is not None and _is_more(changed[cap], getattr(key, cap)):
            raise NotAllowed(
                _("A key with a cap of its own cannot raise one. Use a key without, or sign in."), param=cap
            )
    if "expires_at" in changed and own.expires_at is not None:
        wanted = changed["expires_at"]
        if _is_more(wanted, own.expires_at) and _is_more(wanted, key.expires_at):
            raise NotAllowed(
                _("A key must not be made to outlive the key that changes it."), param="expires_at"
            )
    if "allowed_ips" in changed and own.allowed_ips and key.allowed_ips:
        networks = changed["allowed_ips"]
        if not (_inside(networks, own.allowed_ips) or _inside(networks, key.allowed_ips)):
            raise NotAllowed(
                _("The key may be allowed only from addresses of the key that changes it."),
                param="allowed_ips",
            )


def _is_more(new: Any, old: Any) -> bool:
    """Whether a bound that is `new` binds less than one that was `old`; None is no bound."""
    return old is not None and (new is None or new > old)


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """For the audit log."""
    return {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in values.items()
    }


def revoke(*, actor: Actor, key_id: object) -> ApiKey:
    """End a key at once: one's own, or anybody's in the team for who may manage members. NotFound otherwise."""
    actor.require(permissions.KEYS_WRITE)
    with transaction.atomic():
        key = visible(actor).select_for_update(no_key=True).filter(id=key_id).first()
        if key is None:
            raise NotFound
        if key.revoked_at is None:
            key.revoked_at = timezone.now()
            key.save(update_fields=["revoked_at"])
            audit.record("key.revoked", actor=actor, target=key, name=key.name)
    return key


def visible(actor: Actor):  # type: ignore[no-untyped-def]  # a QuerySet, whose type depends on django-stubs
    """The keys that the actor may see: the whole team's for who manages members, else their own."""
    keys = ApiKey.objects.filter(team=actor.team).order_by("-created_at")
    return keys if actor.can(permissions.MEMBERS_WRITE) else keys.filter(user=actor.user)


#: A key by its prefix, with all that its limits and rights depend on; `membership` is None for who left the team.
_WITH_OWNER = Compiled(
    lambda prefix: (
        ApiKey.objects.annotate(
            membership=FilteredRelation("team__memberships", condition=Q(team__memberships__user=F("user")))
        )
        .select_related("team__plan", "team__quota", "user", "membership__quota")  # type: ignore[misc]
        .filter(prefix=prefix)
        .order_by()
    )
)


def authenticate(token: str, *, ip: str) -> Actor:
    """The actor behind a key; NotAuthenticated (401) or NotAllowed (403) with the reason."""
    parts = token.strip().split("_")
    key = None
    if len(parts) == 3 and parts[0] == "chorus":
        key = _WITH_OWNER.first(prefix=parts[1])
    if key is None or key.pepper_id not in settings.API_KEY_PEPPERS:
        raise NotAuthenticated
    if not hmac.compare_digest(bytes(key.digest), _digest(parts[2], key.pepper_id)):
        raise NotAuthenticated
    if key.revoked_at is not None:
        raise NotAuthenticated(_("This API key was revoked. Create a new one."), code="api_key_revoked")
    if not key.is_usable:
        raise NotAuthenticated(_("This API key has expired. Create a new one."), code="api_key_expired")
    membership: Membership | None = getattr(key, "membership", None)
    if membership is None:
        raise NotAuthenticated(
            _("The person whose API key this is no longer belongs to the team."), code="api_key_orphaned"
        )
    if not key.user.is_active:
        raise NotAllowed(
            _("The person whose API key this is was suspended. Ask your operator."), code="user_suspended"
        )
    if key.team.suspended_at is not None:
        raise NotAllowed(_("This team is suspended. Ask your operator."), code="team_suspended")
    if not allows(key.allowed_ips, ip):
        raise NotAllowed(_("This API key may not be used from your address."), code="address_not_allowed")
    membership.team = key.team
    membership.user = key.user
    _touch(key)
    return Actor(membership, key)


def _touch(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _TOUCH_EVERY:
        ApiKey.objects.filter(
            Q(last_used_at__isnull=True) | Q(last_used_at__lt=now - _TOUCH_EVERY), pk=key.pk
        ).update(last_used_at=now)


def _digest(secret: str, pepper_id: str) -> bytes:
    return hmac.new(settings.API_KEY_PEPPERS[pepper_id], secret.encode(), hashlib.sha256).digest()
