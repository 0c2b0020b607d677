"""Requests to an address that somebody else chose: posting to it, or fetching what lies there.

One look-up, and one connection to what was looked up: the address that is checked is the address that is connected to,
so that a name cannot change its mind in between. A redirect is a new address, checked like the first; posting follows
none. Everything is bounded: the whole exchange in time, an answer in size.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from urllib.parse import SplitResult, urljoin, urlsplit

from django.utils.translation import gettext as _

from accounts.errors import InvalidInput

#: For one connection, and for a whole exchange.
TIMEOUT_SECONDS = 10.0
FETCH_SECONDS = 60.0
#: So much of an answer to a post is read.
_MOST = 64 * 1024
#: A fetch follows so many redirects.
_REDIRECTS = 3
_PIECE = 64 * 1024
#: Ports of files, shells and mail. Who answers there is no web server, and might take what we say for orders; browsers
#: do not go there either.
_OTHER_PORTS = frozenset({20, 21, 22, 23, 25, 110, 119, 143, 465, 563, 587, 993, 995})
#: IPv6 addresses that lead to IPv4 ones: translated (NAT64, RFC 6052 and 8215) and compatible (RFC 4291, given up).
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NAT64_LOCAL = ipaddress.ip_network("64:ff9b:1::/48")
_COMPATIBLE = ipaddress.ip_network("::/96")


class Refused(InvalidInput):
    """The address may not be asked."""

    code = "address_refused"


class TooLarge(InvalidInput):
    """What lies there is larger than what is taken."""

    code = "audio_too_large"


class Unreachable(Exception):
    """Nobody answered there, or not in time; the text is for operators."""


def post(url: str, body: bytes, *, headers: dict[str, str] | None = None, internal: bool = False) -> int:
    """POST `body` (JSON) and return the status. Raises Refused and Unreachable.

    `internal` also allows private, loopback and link-local addresses.
    """
    sent = {"Content-Type": "application/json", "User-Agent": "Chorus", **(headers or {})}
    with _exchange("POST", _parsed(url), sent, body, internal, TIMEOUT_SECONDS) as answer:
        answer.read(_MOST)
        return answer.status


@dataclass(frozen=True, slots=True)
class Fetched:
    """What lay at an address, and what its address (after redirects) ends with."""

    data: bytes
    name: str


def fetch(url: str, *, most: int, internal: bool = False) -> Fetched:
    """GET at most `most` bytes. Raises Refused, TooLarge and Unreachable."""
    deadline = time.monotonic() + FETCH_SECONDS
    for _hop in range(_REDIRECTS + 1):
        parts = _parsed(url)
        headers = {"User-Agent": "Chorus", "Accept": "*/*", "Accept-Encoding": "identity"}
        left = max(0.1, deadline - time.monotonic())
        with _exchange("GET", parts, headers, None, internal, left) as answer:
            if answer.status in {301, 302, 303, 307, 308}:
                url = urljoin(url, answer.headers.get("Location", ""))
                continue
            if answer.status != 200:
                raise Unreachable(f"HTTP {answer.status}")
            return Fetched(_read(answer, most), parts.path.rpartition("/")[2])
    raise Unreachable("too many redirects")


def _read(answer: http.client.HTTPResponse, most: int) -> bytes:
    length = answer.headers.get("Content-Length", "")
    if length.isascii() and length.isdigit() and int(length[:20]) > most:
        raise _too_large(most)
    data = bytearray()
    while piece := answer.read(_PIECE):
        data += piece
        if len(data) > most:
            raise _too_large(most)
    return bytes(data)


def _too_large(most: int) -> TooLarge:
    return TooLarge(_("What lies there is larger than %(max)d MB.") % {"max": most // (1024 * 1024)})


def check(url: str, *, internal: bool = False) -> None:
    """Raise Refused now for what would be refused later; an address that nobody knows is Unreachable."""
    parts = _parsed(url)
    _resolve(str(parts.hostname), _port(parts), internal)


def signature(secret: str, body: bytes, at: float | None = None, *, previous: Sequence[str] = ()) -> str:
    """`t=<seconds since 1970>,v1=<HMAC-SHA256 of "<t>.<body>">`, for a header; a v1 more for each `previous` secret."""
    moment = int(time.time() if at is None else at)
    signed = f"{moment}.".encode() + body
    digests = [hmac.new(key.encode(), signed, hashlib.sha256).hexdigest() for key in (secret, *previous)]
    return ",".join([f"t={moment}", *(f"v1={digest}" for digest in digests)])


def _parsed(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and not (parts.username or parts.password)
        port = _port(parts)
    except ValueError:
        good, port = False, 0
    if good and not url.isascii():
        raise Refused(
            _(
                "An address has only ASCII characters: write others percent-encoded, and a host's name as xn--…."
            )
        )
    if not good or not url.isprintable() or " " in url:
        raise Refused(_("An address begins with https:// or http:// and has no password in it."))
    if not port or port in _OTHER_PORTS:
        raise Refused(
            _("Port %(port)d is not for the web. Leave it out, or name the port of your web server.")
            % {"port": port}
        )
    return parts


def _port(parts: SplitResult) -> int:
    if parts.port is not None:
        return parts.port
    return 443 if parts.scheme == "https" else 80


@contextmanager
def _exchange(
    method: str,
    parts: SplitResult,
    headers: dict[str, str],
    body: bytes | None,
    internal: bool,
    seconds: float,
) -> Iterator[http.client.HTTPResponse]:
    host, port = str(parts.hostname), _port(parts)
    connection = _Connection(
        host, _resolve(host, port, internal), port, secure=parts.scheme == "https", seconds=seconds
    )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    # Time-outs of sockets are for one read each: a byte now and then would keep us for ever.
    alarm = threading.Timer(seconds, connection.cut)
    alarm.daemon = True
    alarm.start()
    try:
        connection.request(method, path, body=body, headers=headers)
        yield connection.getresponse()
        if connection.was_cut:
            # What has no length looks complete wherever it ends.
            raise TimeoutError
    except (OSError, http.client.HTTPException, ValueError) as error:
        # A connection that we cut looks as if the other side had closed it.
        if connection.was_cut or isinstance(error, TimeoutError):
            raise Unreachable(f"TimeoutError: no answer within {seconds:.0f} seconds") from error
        raise Unreachable(f"{type(error).__name__}: {error}") from error
    finally:
        alarm.cancel()
        connection.close()


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
    if isinstance(parsed, ipaddress.IPv6Address):
        inner = parsed.ipv4_mapped or parsed.sixtofour
        if inner is None and (parsed in _NAT64 or parsed in _COMPATIBLE):
            inner = ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
        if parsed in _NAT64_LOCAL or parsed.is_site_local or not (inner or parsed).is_global:
            return False
        return not (inner or parsed).is_multicast
    return parsed.is_global and not parsed.is_multicast


class _Connection(http.client.HTTPConnection):
    """To a known address, under the name for which the certificate must be."""

    def __init__(self, host: str, address: str, port: int, *, secure: bool, seconds: float) -> None:
        super().__init__(host, port, timeout=min(TIMEOUT_SECONDS, seconds))
        self._address, self._secure = address, secure
        self._socket: socket.socket | None = None
        self.was_cut = False
        self.default_port = 443 if secure else 80  # leaves the port out of the Host header

    def connect(self) -> None:
        self.sock = self._socket = socket.create_connection((self._address, self.port), self.timeout)
        if self._secure:
            context = ssl.create_default_context()
            self.sock = self._socket = context.wrap_socket(self.sock, server_hostname=self.host)

    def cut(self) -> None:
        """End whatever is under way, from another thread."""
        self.was_cut = True
        if self._socket is not None:  # `sock` is given up as soon as an answer without a length begins
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
