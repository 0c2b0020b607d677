"""How errors leave the service: one shape for the API, one page for people.

The API's body is OpenAI's (`{"error": {"message", "type", "param", "code"}}`), which its clients read, with the
fields of an RFC 9457 problem beside it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.core.exceptions import PermissionDenied, TooManyFieldsSent, TooManyFilesSent
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext as _
from rest_framework import exceptions as drf
from rest_framework.response import Response

from accounts.errors import ChorusError, InvalidInput, NotAllowed, NotAuthenticated, NotFound, Unavailable

logger = logging.getLogger(__name__)

Answer = TypeVar("Answer", bound=HttpResponse)

_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "invalid_request_error",
    422: "invalid_request_error",
    429: "rate_limit_error",
}


def body(error: ChorusError) -> dict[str, Any]:
    """The API's body for `error`."""
    kind = _TYPES.get(error.status, "api_error" if error.status >= 500 else "invalid_request_error")
    if error.code == "quota_exceeded":
        kind = "insufficient_quota"
    return {
        "error": {
            "message": str(error),
            "type": kind,
            "param": error.param,
            "code": error.code,
            **error.details,
        },
        "type": f"/docs/errors#{error.code}",
        "title": error.code,
        "status": error.status,
        "detail": str(error),
    }


def headers(error: ChorusError) -> dict[str, str]:
    """Headers that belong to `error`: its own, `Retry-After` in seconds, whether OpenAI's clients should retry."""
    result = dict(error.headers)
    if error.retry_after is not None:
        result["Retry-After"] = str(error.retry_after)
    # A month's quota does not come back within their patience.
    if error.should_retry is False or error.code == "quota_exceeded":
        result["x-should-retry"] = "false"
    return result


def translate(error: BaseException) -> ChorusError | None:
    """The business error that `error` amounts to; None for a bug."""
    match error:
        case ChorusError():
            return error
        case Http404() | drf.NotFound():
            return NotFound()
        case PermissionDenied() | drf.PermissionDenied():
            return NotAllowed()
        case drf.AuthenticationFailed() | drf.NotAuthenticated():
            return NotAuthenticated()
        case drf.ValidationError():
            return _from_validation(error.detail)
        case drf.APIException():
            converted = ChorusError(str(error.detail), code=str(error.default_code))
            converted.status = error.status_code
            return converted
        case TooManyFieldsSent() | TooManyFilesSent():
            return InvalidInput(
                _("The form has more parts than are taken here. Send fewer at once."), code="too_many_parts"
            )
        case OperationalError() | InterfaceError():
            logger.error("The database does not answer", exc_info=error)
            return Unavailable(retry_after=5)
    return None


def _from_validation(detail: Any, path: str = "") -> InvalidInput:
    """The first field error; `param` is its path."""
    if isinstance(detail, dict):
        name, inner = next(iter(detail.items()))
        name = "" if name == "non_field_errors" else str(name)
        return _from_validation(inner, ".".join(part for part in (path, name) if part))
    if isinstance(detail, list):
        return _from_validation(detail[0] if detail else "", path)
    message = f"{path}: {detail}" if path else str(detail)
    code = getattr(detail, "code", "invalid")
    return InvalidInput(
        message, code="missing_field" if code == "required" else "invalid_value", param=path or None
    )


def response(error: ChorusError) -> JsonResponse:
    """`error` as an API answer outside of REST framework's views."""
    return _marked(JsonResponse(body(error), status=error.status, headers=headers(error)), error)


def _marked(answer: Answer, error: ChorusError) -> Answer:
    """The code, for `config.observe` to count."""
    answer.error_code = error.code  # type: ignore[attr-defined]
    return answer


def api_exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """REST framework's EXCEPTION_HANDLER."""
    known = translate(error)
    if known is None:
        return None
    answer = _marked(Response(body(known), status=known.status, headers=headers(known)), known)
    if known.status == 401:
        answer.headers["WWW-Authenticate"] = 'Bearer realm="chorus"'
    return answer


def is_api(request: HttpRequest) -> bool:
    """Whether the caller expects JSON rather than a page."""
    return request.path.startswith(("/v1/", "/v2/")) or request.path in {"/v1", "/v2"}


class ErrorPages:
    """Turn business errors out of page views into a page (or an htmx fragment), and API bugs into JSON."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponseBase | Awaitable[HttpResponseBase]:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """None lets Django make its 500."""
        known = translate(error)
        if known is None:
            if is_api(request):
                logger.exception("Unhandled error", exc_info=error)
                return server_error(request)
            return None
        if is_api(request):
            return response(known)
        return page(request, known)


def page(request: HttpRequest, error: ChorusError, *, reload: str = "") -> HttpResponse:
    """`error` as a whole page, or as the fragment that htmx shows in place; `reload` is a page to offer again."""
    template = "errors/fragment.html" if getattr(request, "htmx", False) else "errors/error.html"
    context = {"error": error, "reload": reload}
    answer = _marked(render(request, template, context, status=error.status), error)
    for name, value in headers(error).items():
        answer.headers[name] = value
    return answer


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler404."""
    return response(NotFound()) if is_api(request) else page(request, NotFound())


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler403."""
    return response(NotAllowed()) if is_api(request) else page(request, NotAllowed())


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW: mostly a page from before its reader signed in or out in another tab."""
    logger.warning("A form was refused: %s", reason)
    error = NotAllowed(
        _(
            "This page is out of date: you have signed in or out since it was loaded. Load it again; what you wrote in "
            "the studio is kept."
        ),
        code="page_out_of_date",
    )
    return response(error) if is_api(request) else page(request, error, reload=_came_from(request))


def _came_from(request: HttpRequest) -> str:
    """The path of the page that sent `request`, to load it again; the first page where that is not known."""
    address = request.headers.get("HX-Current-URL") or request.headers.get("Referer") or ""
    if not url_has_allowed_host_and_scheme(address, {request.get_host()}):
        return "/"
    parts = urlsplit(address)
    # Without the fragment: a link that differs in nothing else only scrolls.
    return urlunsplit(("", "", parts.path or "/", parts.query, ""))


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's handler400 (a suspicious or malformed request)."""
    error = InvalidInput(_("The request could not be understood."))
    return response(error) if is_api(request) else page(request, error)


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: says nothing of what went wrong but the id under which the log has it."""
    identifier = getattr(request, "request_id", "")
    error = ChorusError(
        _("Something went wrong on our side. Tell your operator this id: %(id)s") % {"id": identifier},
        code="internal_error",
    )
    error.status = 500
    return response(error) if is_api(request) else page(request, error)
