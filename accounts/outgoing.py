"""Posting to an address that somebody else chose: one look-up, one connection to what was looked up, no redirects.

The address that is checked is the address that is connected to, so that a name cannot change its mind in between.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import time
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from accounts.errors import InvalidInput

TIMEOUT_SECONDS = 10.0
#: So much of an answer is read.
_MOST = 64 * 1024


class Refused(InvalidInput):
    """The address may not be posted to."""

    code = "address_refused"


class Unreachable(Exception):
    """Nobody answered there, or not in time; the text is for operators."""


def post(url: str, body: bytes, *, headers: dict[str, str] | None = None, internal: bool = False) -> int:
    """POST `body` (JSON) and return the status. Raises Refused and Unreachable.

    `internal` also allows private, loopback and link-local addresses.
    """
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.password:
        raise Refused(_("An address begins with https:// or http:// and has no password in it."))
    port = parts.port or (443 if parts.scheme == "https" else 80)
    address = _resolve(parts.hostname, port, internal)
    connection = _Connection(parts.hostname, address, port, secure=parts.scheme == "https")
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(
            "POST",
            path,
            body=body,
            headers={"Content-Type": "application/json", "User-Agent": "Chorus", **(headers or {})},
        )
        answer = connection.getresponse()
        answer.read(_MOST)
        return answer.status
    except (OSError, http.client.HTTPException) as error:
        raise Unreachable(f"{type(error).__name__}: {error}") from error
    finally:
        connection.close()


def signature(secret: str, body: bytes, at: float | None = None) -> str:
    """`t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>">`, for a header."""
    moment = int(time.time() if at is None else at)
    digest = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={moment},v1={digest}"


def _resolve(host: str, port: int, internal: bool) -> str:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unreachable(f"{host} is not known") from error
    addresses = [str(entry[4][0]) for entry in found]
    if not internal:
        for address in addresses:
            # One internal address among public ones is a trick as well.
            if not _is_public(address):
                raise Refused(_("This address leads into an internal network."))
    return addresses[0]


def _is_public(address: str) -> bool:
    parsed = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(parsed, "ipv4_mapped", None) or getattr(parsed, "sixtofour", None)
    if mapped is not None:
        parsed = mapped
    return parsed.is_global and not parsed.is_multicast


class _Connection(http.client.HTTPConnection):
    """To a known address, under the name for which the certificate must be."""

    def __init__(self, host: str, address: str, port: int, *, secure: bool) -> None:
        super().__init__(host, port, timeout=TIMEOUT_SECONDS)
        self._address, self._secure = address, secure
        self.default_port = 443 if secure else 80  # leaves the port out of the Host header

    def connect(self) -> None:
        self.sock = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            self.sock = ssl.create_default_context().wrap_socket(self.sock, server_hostname=self.host)
