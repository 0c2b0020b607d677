"""Requests to the server: with patience, without losing or doubling anything.

What is safe to repeat (reading; and what carries an Idempotency-Key) is sent again while the connection is lost, the
server is just being started again, or it says when to come back.
"""

from __future__ import annotations

import http.client
import json
import secrets
import ssl
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

from chorus_voice import __version__
from chorus_voice.config import Server
from chorus_voice.errors import Refused, Unreachable
from chorus_voice.words import _, language

T = TypeVar("T")

#: Seconds that a lost connection is waited for; that one which never was there is; of each wait between two attempts;
#: for an answer to begin.
PATIENCE = 300.0
_FIRST_PATIENCE = 10.0
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 15.0
TIMEOUT = 60.0
#: Answers that mean: not now.
_LATER = {429, 502, 503, 504}
_REDIRECTS = {301, 302, 303, 307, 308}


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is followed by us, without the key: urllib would send it along to whichever host."""

    def redirect_request(self, *_args: Any) -> None:
        return None


class Api:
    """One server. `waiting` is told, in words, why nothing happens right now; empty when it goes on."""

    def __init__(
        self,
        server: Server,
        *,
        patience: float = PATIENCE,
        waiting: Callable[[str], None] = lambda words: None,
    ) -> None:
        self.server = server
        self.patience = patience
        self.waiting = waiting
        self._met = False
        context = ssl.create_default_context()
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=context))

    def get(self, path: str, **query: Any) -> Any:
        """JSON from an address below /v1; or of a whole address, as `next` is one."""
        return self._try(lambda: self._json(self._send("GET", self._address(path, query))))

    def post(
        self,
        path: str,
        body: Any = None,
        *,
        data: bytes | None = None,
        content_type: str = "application/json",
        key: str | None = None,
        safe: bool = False,
    ) -> Any:
        """`body` as JSON, or `data` as it is. With an idempotency `key`, or when it is `safe`, it is repeated."""
        if data is None:
            data = json.dumps(body or {}).encode()
        headers = {"Content-Type": content_type}
        if key:
            headers["Idempotency-Key"] = key
        url = self._address(path)
        return self._try(
            lambda: self._json(self._send("POST", url, data, headers)), repeat=safe or key is not None
        )

    def delete(self, path: str) -> None:
        """Sent once: the second time it would not be found."""
        self._try(lambda: self._send("DELETE", self._address(path)).close(), repeat=False)

    def open(self, path: str, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """The answer to a GET, whose body is not read yet."""
        return self._try(lambda: self._send("GET", self._address(path), None, headers))

    def _try(self, work: Callable[[], T], *, repeat: bool = True) -> T:
        """`work`, again and again while that may help. Raises Refused and Unreachable."""
        begun = time.monotonic()
        wait = _FIRST_WAIT
        while True:
            try:
                done = work()
            except (Refused, Unreachable) as error:
                self._met = self._met or isinstance(error, Refused)
                if not (repeat and error.again):
                    raise
                # Where nobody ever answered, the address is likelier wrong than the connection lost.
                patience = self.patience if self._met else min(self.patience, _FIRST_PATIENCE)
                wait = max(wait, getattr(error, "retry_after", 0.0))
                if time.monotonic() + wait > begun + patience:
                    raise
                lost = _("The connection is lost; trying again")
                self.waiting(str(error) if isinstance(error, Refused) else lost)
                time.sleep(wait)
                wait = min(wait * 2, _LONGEST_WAIT)
            else:
                self._met = True
                self.waiting("")
                return done

    def _json(self, answer: http.client.HTTPResponse) -> Any:
        # One that says neither how long it is nor where it ends was cut within its head.
        whole = answer.length is not None or answer.chunked
        try:
            with answer:
                return json.loads(answer.read())
        except ValueError:
            if whole:
                raise self._stranger() from None
            raise self._unreachable(http.client.IncompleteRead(b"")) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _address(self, path: str, query: Mapping[str, Any] | None = None) -> str:
        if path.startswith(("http://", "https://")):
            # The server may know itself by another name: only what comes after that is taken from it.
            parts = urllib.parse.urlsplit(path)
            path = parts.path.removeprefix("/v1") + (f"?{parts.query}" if parts.query else "")
        given = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        encoded = urllib.parse.urlencode(given)
        return f"{self.server.url}/v1{path}{'?' if encoded else ''}{encoded}"

    def _send(
        self, method: str, url: str, data: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPResponse:
        own = {
            "Authorization": f"Bearer {self.server.key}",
            "Accept-Language": "zh-Hans" if language() == "zh" else "en",
            "User-Agent": f"chorus-voice/{__version__}",
        }
        given = dict(headers or {})
        request = urllib.request.Request(url, data, own | given, method=method)  # noqa: S310  clean_url checked it
        try:
            return self._opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            if error.code in _REDIRECTS and method == "GET":
                return self._elsewhere(error, given)
            with error:
                raise self._refused(error) from None
        except urllib.error.URLError as error:
            raise self._unreachable(error.reason if isinstance(error.reason, Exception) else error) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _elsewhere(
        self, redirect: urllib.error.HTTPError, headers: dict[str, str]
    ) -> http.client.HTTPResponse:
        """Where storage has a public address the sound is fetched there, by an address that needs no key."""
        with redirect:
            target = urllib.parse.urljoin(redirect.url or "", redirect.headers.get("Location", ""))
        if not target.startswith(("http://", "https://")):
            raise self._stranger()
        request = urllib.request.Request(target, headers=headers)  # noqa: S310  http or https
        try:
            return self._opener.open(request, timeout=TIMEOUT)
        except urllib.error.HTTPError as error:
            with error:
                words = _("The storage answers {status}.").format(status=error.code)
                raise Refused(error.code, "storage", words, again=error.code in _LATER) from None
        except (OSError, http.client.HTTPException) as error:
            raise self._unreachable(error) from None

    def _stranger(self) -> Unreachable:
        words = _("{url} answers, but not as a Chorus server does. Check CHORUS_URL.")
        return Unreachable(words.format(url=self.server.url))

    def _unreachable(self, cause: BaseException) -> Unreachable:
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or str(cause)
        elif isinstance(cause, TimeoutError):
            reason = _("no answer in {seconds} s").format(seconds=int(TIMEOUT))
        else:
            reason = getattr(cause, "strerror", None) or str(cause) or type(cause).__name__
        words = _("{url} cannot be reached: {reason}.").format(url=self.server.url, reason=reason)
        return Unreachable(words, again=not isinstance(cause, ssl.SSLError))

    def _refused(self, error: urllib.error.HTTPError) -> Refused | Unreachable:
        details: dict[str, Any] = {}
        try:
            details = json.loads(error.read())["error"]
            message, code = str(details["message"]), str(details["code"])
        except (ValueError, KeyError, TypeError, OSError, http.client.HTTPException):
            if error.code not in {*_LATER, HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE}:
                return self._stranger()
            message, code = _("The server is not ready."), "unavailable"
        after = error.headers.get("Retry-After", "")
        later = error.code in _LATER and code != "maintenance"
        return Refused(
            error.code,
            code,
            message,
            details=details,
            again=later and error.headers.get("x-should-retry") != "false",
            retry_after=float(after) if after.isdigit() else 0.0,
        )


def multipart(fields: Mapping[str, str], *, name: str, filename: str, data: bytes) -> tuple[bytes, str]:
    """A form with one file, and its content type (RFC 7578)."""
    boundary = secrets.token_hex(16)
    parts = []
    for field, value in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n'
        parts.append(head.encode() + value.encode() + b"\r\n")
    safe = filename.replace("\\", "_").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{safe}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    parts.append(head.encode() + data + b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"
