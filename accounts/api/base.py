"""What every view of the API shares: the actor, bounded bodies, limits in headers."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, ClassVar
from uuid import UUID

from django.http import HttpResponse, HttpResponseNotModified
from django.utils.cache import patch_vary_headers
from django.utils.http import parse_etags
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer
from rest_framework.views import APIView

from accounts.actors import Actor
from accounts.api.authentication import uses_elevenlabs
from accounts.api.fields import check_known, check_once
from accounts.api.negotiation import JSON_BYTES, too_large
from accounts.errors import ChorusError, InvalidInput, LimitReached, NotFound
from accounts.services import limits, rates


class LengthRequired(ChorusError):
    """A body whose size is not said in advance."""

    status = 411
    code = "length_required"
    message = gettext_lazy("Send the body with a Content-Length, not in chunks.")


class ApiView(APIView):
    """A view by key. `required_scopes` names the scope of each method; `body_bytes` bounds the body."""

    required_scopes: ClassVar[dict[str, str | None]] = {}
    body_bytes: int = JSON_BYTES
    #: What each method takes in the address; others are refused (a misspelt `dry_run` would be charged). None where
    #: clients of another API may send some of their own.
    query_names: ClassVar[dict[str, tuple[str, ...]] | None] = {}
    #: Addresses that ElevenLabs' clients use as well, with parameters of theirs.
    shared_with_elevenlabs: ClassVar[bool] = False
    #: Whether an `Idempotency-Key` is refused: where each call makes something whose secret is kept nowhere, or sends
    #: something. Other routes take it, or may be called twice without harm.
    refuses_idempotency_key: ClassVar[bool] = False
    http_method_names = ["get", "head", "post", "patch", "delete"]
    _window: rates.Window | None = None

    @property
    def actor(self) -> Actor:
        """Who is calling; there is one, or the request would have been refused."""
        return self.request.auth  # type: ignore[return-value]

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Refuse a body that is too large before any of it is read."""
        self._check_length(request)
        super().initial(request, *args, **kwargs)
        self._check_query(request)
        if self.refuses_idempotency_key and request.method == "POST" and "Idempotency-Key" in request.headers:
            raise InvalidInput(
                _(
                    "This route cannot take an Idempotency-Key: each call counts. Send it without one, and only once."
                ),
                code="idempotency_not_supported",
                param="Idempotency-Key",
            )

    def _check_length(self, request: Request) -> None:
        length = request.META.get("CONTENT_LENGTH") or "0"
        if length.isascii() and length.isdigit() and int(length) > self.body_bytes:
            raise too_large(self.body_bytes)
        if "chunked" in request.headers.get("Transfer-Encoding", "").lower() and length == "0":
            raise LengthRequired

    def _check_query(self, request: Request) -> None:
        if self.query_names is None or (self.shared_with_elevenlabs and uses_elevenlabs(request)):
            return
        method = "GET" if request.method == "HEAD" else str(request.method)
        if method not in self.required_scopes:  # 405, whatever else is wrong
            return
        check_known(request.query_params, self.query_names.get(method, ()))
        check_once(request.query_params)

    def hit(self) -> None:
        """Count this request against the requests per minute; LimitReached when there were too many."""
        self._window = rates.hit(self.actor)

    def idempotency_key(self) -> str | None:
        """The header's value; InvalidInput when it is empty or not printable ASCII."""
        key = self.request.headers.get("Idempotency-Key")
        if key is not None and not (key.strip() and key.isascii() and key.isprintable()):
            raise InvalidInput(
                _("An Idempotency-Key has printable ASCII characters only, and at least one."),
                code="idempotency_key_invalid",
                param="Idempotency-Key",
            )
        return key

    def read(self, kind: type[Serializer[Any]], data: Any = None) -> dict[str, Any]:
        """The body (or `data`) as `kind` understands it; ValidationError names the first wrong field."""
        query = (self.query_names or {}).get(str(self.request.method), ())
        serializer = kind(data=self.request.data if data is None else data, context={"query": query})
        serializer.is_valid(raise_exception=True)
        values: dict[str, Any] = serializer.validated_data
        return values

    def query(self, kind: type[Serializer[Any]]) -> dict[str, Any]:
        """The same for the query string; empty values count as absent."""
        return self.read(kind, {name: value for name, value in self.request.query_params.items() if value})

    def handle_exception(self, exc: Exception) -> Response:
        """As REST framework does; a refusal by rate also fills the rate headers."""
        if isinstance(exc, LimitReached) and "requests_limit" in exc.details:
            self._window = rates.Window(exc.details["requests_limit"], 0, exc.retry_after or 1)
        return super().handle_exception(exc)

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Say what is left of the rate."""
        response = super().finalize_response(request, response, *args, **kwargs)
        if self._window is not None:
            for name, value in _rate_headers(self.actor, self._window).items():
                response.headers[name] = value
        if (
            request.method in {"GET", "HEAD"}
            and response.status_code == 200
            and isinstance(response, Response)
        ):
            # Kept, but never shown without asking whether it is still so.
            response.headers.setdefault("Cache-Control", "private, no-cache")
            patch_vary_headers(response, ["Authorization", "xi-api-key", "Accept-Language"])
            response.add_post_render_callback(partial(_unless_known, request))
        response.headers.setdefault("Cache-Control", "no-store")
        return response


def _unless_known(request: Request, response: HttpResponse) -> HttpResponse | None:
    """Mark an answer by its content; 304 without it when the caller says that they have the same."""
    # Weak, since proxies compress: the same content, perhaps in other bytes.
    tag = f'W/"{hashlib.sha256(response.content).hexdigest()[:32]}"'
    response.headers["ETag"] = tag
    known = [entry.removeprefix("W/") for entry in parse_etags(request.headers.get("If-None-Match", ""))]
    if tag.removeprefix("W/") not in known and "*" not in known:
        return None
    kept = {name: response.headers[name] for name in ("ETag", "Cache-Control", "Vary")}
    return HttpResponseNotModified(headers=kept)


def _rate_headers(actor: Actor, window: rates.Window) -> dict[str, str]:
    """The IETF draft's headers, and those of OpenAI's clients."""
    slots = limits.tightest(actor).concurrent_requests
    return {
        "RateLimit-Policy": (
            f'"burst";q={window.limit};w={rates.WINDOW_SECONDS}, "slots";q={slots};qu="concurrent-requests"'
        ),
        "RateLimit": f'"burst";r={window.remaining};t={window.reset}',
        "x-ratelimit-limit-requests": str(window.limit),
        "x-ratelimit-remaining-requests": str(window.remaining),
        "x-ratelimit-reset-requests": f"{window.reset}s",
    }


def parse_id(value: str, error: type[NotFound] = NotFound) -> UUID:
    """An id out of an address; `error` when it is none, as for an object that does not exist."""
    try:
        return UUID(value)
    except ValueError:
        raise error from None
