"""Headers in the OpenAPI description: what every answer, or every answer of a kind, says beside its body."""

from __future__ import annotations

from typing import Any


def _header(description: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {"description": description, "schema": {"type": kind, **more}}


HEADERS: dict[str, dict[str, Any]] = {
    "x-request-id": _header("Under this id the log has the request: the caller's own, or one of ours."),
    "ETag": _header("Of this very content, for `If-None-Match`."),
    "Location": _header("The address of what was made.", format="uri"),
    "Preference-Applied": _header(
        "`wait=SECONDS` where the answer was waited for: as long as it may have taken, 60 where `Prefer` says more."
    ),
    "Idempotent-Replayed": _header("`true` where this is the answer that the `Idempotency-Key` got before."),
    "Content-Range": _header(
        "`bytes FIRST-LAST/SIZE` of a part; `bytes */SIZE` where there is no such part."
    ),
    "Retry-After": _header("Seconds after which it is worth trying again.", "integer", minimum=0),
    "x-should-retry": _header("`false` where trying again soon cannot help; OpenAI's clients read it."),
    "WWW-Authenticate": _header("How to sign in."),
    "RateLimit-Policy": _header(
        '`"burst";q=REQUESTS;w=SECONDS, "slots";q=REQUESTS;qu="concurrent-requests"`'
    ),
    "RateLimit": _header('`"burst";r=REMAINING;t=SECONDS`: requests that are left, and when one more is.'),
    "x-ratelimit-limit-requests": _header("Requests a minute.", "integer"),
    "x-ratelimit-remaining-requests": _header("Requests that are left in this minute.", "integer"),
    "x-ratelimit-reset-requests": _header("When one more is, such as `30s`."),
}
_RATES = tuple(name for name in HEADERS if name.lower().startswith(("ratelimit", "x-ratelimit")))
#: In answers to what asked for it by another header.
_ASKED_FOR = {"Preference-Applied": "Prefer", "Idempotent-Replayed": "Idempotency-Key"}
_IF_NONE_MATCH = {
    "name": "If-None-Match",
    "in": "header",
    "schema": {"type": "string"},
    "description": "An `ETag`: 304 without a body when nothing has changed.",
}


def describe(result: dict[str, Any], **_others: Any) -> dict[str, Any]:
    """drf-spectacular's postprocessing hook: add the headers, and 304 to what can be asked for again."""
    result["components"]["headers"] = HEADERS
    for methods in result["paths"].values():
        for method, operation in methods.items():
            _describe(method, operation)
    return result


def _describe(method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    limited = "429" in responses
    is_read = method == "get" and "application/json" in responses.get("200", {}).get("content", {})
    if is_read:
        responses.setdefault("304", {"description": "Nothing has changed."})
        parameters = operation.setdefault("parameters", [])
        if not any(one["name"] == _IF_NONE_MATCH["name"] for one in parameters):
            parameters.append(_IF_NONE_MATCH)
    given = {one["name"] for one in operation.get("parameters", [])}
    for status, response in responses.items():
        names = ["x-request-id"]
        if status == "201":
            names.append("Location")
            names += [name for name, asks in _ASKED_FOR.items() if asks in given]
        if is_read and status in {"200", "304"}:
            names.append("ETag")
        if status in {"206", "416"}:
            names.append("Content-Range")
        if status == "401":
            names.append("WWW-Authenticate")
        if status in {"429", "503"}:
            names.append("Retry-After")
        if status in {"409", "429", "500", "503"}:
            names.append("x-should-retry")
        if limited and (status.startswith("2") or status == "429"):
            names += _RATES
        response["headers"] = {
            name: {"$ref": f"#/components/headers/{name}"} for name in names
        } | response.get("headers", {})
