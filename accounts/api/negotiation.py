"""What a body may be, and what an answer is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from accounts import strict_json
from accounts.errors import InvalidInput, PayloadTooLarge

#: Bytes of a JSON body. 20,000 characters are at most 240,000 bytes of JSON escapes; the rest is room.
JSON_BYTES = 1024 * 1024
#: Of a form, beside its files.
FORM_BYTES = 64 * 1024


class AlwaysJson(BaseContentNegotiation):
    """Clients of speech APIs accept `audio/mpeg` or `application/octet-stream`, and still read JSON errors."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        """By content type; a body without one is taken as the first parser's."""
        kind = (request.content_type or "").partition(";")[0].strip().lower()
        if not kind:
            return next(iter(parsers))
        return next((parser for parser in parsers if parser.media_type in (kind, "*/*")), None)

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The first one, whatever `Accept` says."""
        first = next(iter(renderers))
        return first, str(first.media_type)


class JsonParser(BaseParser):
    """A JSON object of at most JSON_BYTES, in UTF-8, as `strict_json` reads it."""

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Raises PayloadTooLarge, and InvalidInput (`malformed_json`) with where it went wrong."""
        data = stream.read(JSON_BYTES + 1)
        if len(data) > JSON_BYTES:
            raise too_large(JSON_BYTES)
        try:
            value = strict_json.loads(data.decode("utf-8-sig"))
        except UnicodeDecodeError:
            raise _malformed(_("it is not UTF-8")) from None
        except ValueError as error:
            raise _malformed(str(error)) from None
        if not isinstance(value, dict):
            raise _malformed(_("it must be an object: {…}"))
        return value


def _malformed(reason: str) -> InvalidInput:
    return InvalidInput(
        _("The body is not valid JSON: %(reason)s.") % {"reason": reason.rstrip(".")}, code="malformed_json"
    )


def too_large(limit: int) -> PayloadTooLarge:
    """The error for a body of more than `limit` bytes."""
    return PayloadTooLarge(
        _("The body is too large: at most %(limit)s are taken here.") % {"limit": _size(limit)},
        bytes_limit=limit,
    )


def _size(count: int) -> str:
    return f"{count // (1024 * 1024)} MiB" if count >= 1024 * 1024 else f"{count // 1024} KiB"
