"""What the OpenAPI description says of every route: how to sign in, and what errors look like."""

from __future__ import annotations

from typing import Any

from django.utils.text import slugify
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework import serializers

from accounts.api.fields import KnownFields


class Described(AutoSchema):
    """Names operations by what they do, for generated clients."""

    def get_operation_id(self) -> str:
        """ "list_voices" of “List voices”."""
        summary = self.get_summary()
        return slugify(summary).replace("-", "_") if summary else str(super().get_operation_id())

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """Bodies in which nothing unknown may stand say so."""
        described = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if direction == "request" and isinstance(serializer, KnownFields):
            described["additionalProperties"] = False
        return described


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """Either header."""

    target_class = "accounts.api.authentication.ApiKeyAuthentication"
    name = ["bearer", "xi-api-key"]

    def get_security_requirement(self, auto_schema: Any) -> list[dict[str, list[Any]]]:
        """One of the two is enough."""
        return [{name: []} for name in self.name]

    def get_security_definition(self, auto_schema: Any) -> list[dict[str, Any]]:
        """In the order of `name`."""
        return [
            {"type": "http", "scheme": "bearer", "description": "`Authorization: Bearer chorus_…`"},
            {"type": "apiKey", "in": "header", "name": "xi-api-key"},
        ]


class ErrorDetailSerializer(serializers.Serializer):
    """As OpenAI's clients read it; some codes add fields of their own."""

    message = serializers.CharField(help_text="What is wrong and what to do about it, for a person.")
    type = serializers.CharField(help_text="The family of the error.")
    param = serializers.CharField(allow_null=True, help_text="The field at fault.")
    code = serializers.CharField(help_text="Stable; for programs.")


class ErrorSerializer(serializers.Serializer):
    """Every error: OpenAI's shape, and beside it the fields of an RFC 9457 problem."""

    error = ErrorDetailSerializer()
    type = serializers.CharField(help_text="Address of the code's explanation.")
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()


_MEANINGS = {
    400: "Something that was sent is wrong: `param` names it.",
    401: "No valid key: `invalid_api_key`, `api_key_revoked`, `api_key_expired`, `api_key_orphaned`.",
    403: "The key may not do this: `insufficient_scope`, `permission_denied`, `team_suspended`, "
    "`user_suspended`, `address_not_allowed`.",
    404: "It does not exist, or belongs to another team.",
    405: "The address does not take this method; `Allow` lists those it takes.",
    409: "The object is in a state that does not allow this.",
    410: "It was there once: `output_expired`.",
    411: "`length_required`: a body without a length (a form may come without).",
    413: "`payload_too_large`",
    414: "`address_too_long`: more than 8,000 characters with the query.",
    415: "The body has another content type than this route takes.",
    416: "`range_not_satisfiable`: the range lies outside of the file.",
    422: "It contradicts what was sent before, or cannot be spoken.",
    429: "`rate_limit_exceeded` (back off), `concurrent_limit_exceeded` (wait for a slot), `quota_exceeded` (the "
    "month's characters are used up). `Retry-After` says when to come back.",
    500: "Our fault; the message holds the id under which the log has it.",
    504: "`timeout`: not done within a quarter of an hour. The request goes on; `synthesis_id` names it.",
    503: "A part of the service does not answer; try again in a few seconds.",
}


def errors(*statuses: int) -> dict[int, OpenApiResponse]:
    """Documented errors: `statuses`, and those of every route with a key (400: an unknown parameter)."""
    return {
        status: OpenApiResponse(ErrorSerializer, description=_MEANINGS[status])
        for status in sorted({*statuses, 400, 401, 403, 414, 503})
    }


#: Of a route that takes an object by key and nothing else.
ERRORS = errors()
#: Of a route with a body.
BODY = (400, 411, 413, 415)

#: The names of the next two, for `query_names`.
PAGE = ("limit", "cursor")
LIMIT = OpenApiParameter("limit", int, description="Results of a page, 1 to 100.")
CURSOR = OpenApiParameter("cursor", str, description="From `next` or `previous`; those are whole addresses.")
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="Any string of at most 255 characters, kept for two days: the same key and body do the work once and "
    "get the same answer again; the same key with another body is refused (422), and one whose first request is still "
    "being worked on may be (409).",
)


def page_of(item: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The description of one page of `item`."""
    name = item.__name__.removesuffix("Serializer")
    return type(
        f"{name}PageSerializer",
        (serializers.Serializer,),
        {
            "__doc__": f"One page of {name.lower()} objects, the newest first.",
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": item(many=True),
        },
    )
