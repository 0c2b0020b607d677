"""API keys on requests, and whose address a request comes from."""

from __future__ import annotations

import ipaddress

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts import log_context
from accounts.actors import Actor
from accounts.errors import NotAuthenticated
from accounts.models import User
from accounts.services import keys


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer …` (OpenAI's clients) or `xi-api-key: …` (ElevenLabs' clients).

    The actor becomes `request.auth` and `request.actor`. NotAuthenticated for an unknown, revoked or expired key,
    NotAllowed for a suspended team or an address that the key does not allow.
    """

    def authenticate(self, request: Request) -> tuple[User, Actor] | None:
        """None when no key was sent at all: some routes need none."""
        token = _token(request)
        if token is None:
            return None
        actor = keys.authenticate(token, ip=client_address(request))
        request.actor = actor  # type: ignore[attr-defined]
        log_context.note(team=str(actor.team.id))
        return actor.user, actor

    def authenticate_header(self, request: Request) -> str:
        """What a 401 says in `WWW-Authenticate`."""
        return 'Bearer realm="chorus"'


def _token(request: Request) -> str | None:
    token: str | None
    header = request.headers.get("Authorization", "")
    if header:
        scheme, _space, token = header.partition(" ")
        if scheme.lower() != "bearer":
            raise NotAuthenticated(
                _("Send the key as “Authorization: Bearer …”; other schemes are not understood.")
            )
    else:
        token = request.headers.get("xi-api-key")
    if token is not None and not (token.isascii() and token.isprintable()):
        raise NotAuthenticated
    return token


def uses_elevenlabs(request: Request) -> bool:
    """Whether the key came as ElevenLabs' clients send it: where two shapes share an address, they expect theirs."""
    return "xi-api-key" in request.headers and not request.headers.get("Authorization")


def client_address(request: Request | HttpRequest) -> str:
    """The IP address of the caller.

    A proxy adds the address that it saw to the end of `X-Forwarded-For`; what stands before that is the caller's own
    word. So the last entry counts, and only when the request comes over a Unix socket (where only our own proxy can
    be) or from CHORUS_TRUSTED_PROXIES; with several proxies in a row, the last entry that is none of them.
    """
    address = request.META.get("REMOTE_ADDR", "")
    if address and not is_proxy(address):
        return address
    for entry in reversed(request.headers.get("X-Forwarded-For", "").split(",")):
        try:
            address = str(ipaddress.ip_address(entry.strip()))
        except ValueError:
            break
        if not is_proxy(address):
            break
    return address


def is_proxy(address: str) -> bool:
    """Whether an address is one of our own proxies (CHORUS_TRUSTED_PROXIES)."""
    return any(ipaddress.ip_address(address) in network for network in settings.CHORUS_TRUSTED_PROXIES)
