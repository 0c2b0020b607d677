"""ElevenLabs' shape of errors."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiResponse, PolymorphicProxySerializer
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response

from accounts.api.base import ApiView
from accounts.api.schema import errors


class ElevenLabsDetailSerializer(serializers.Serializer):
    """`status` is the code."""

    status = serializers.CharField()
    message = serializers.CharField()
    param = serializers.CharField(allow_null=True)


class ElevenLabsErrorSerializer(serializers.Serializer):
    """An error as their clients read it."""

    detail = ElevenLabsDetailSerializer()


class ElevenLabsInvalidSerializer(serializers.Serializer):
    """One field at fault."""

    loc = serializers.ListField(
        child=serializers.CharField(), help_text="`body` or `query`, and the names that lead to the field."
    )
    msg = serializers.CharField()
    type = serializers.CharField()


class ElevenLabsUnprocessableSerializer(serializers.Serializer):
    """A body or an address that has not the shape that is asked for; or, with an object as `detail`, one that
    contradicts itself.
    """

    detail = ElevenLabsInvalidSerializer(many=True)


def elevenlabs_errors(*statuses: int) -> dict[int, OpenApiResponse]:
    """Documented errors of a route, in their shape."""
    described = {
        status: OpenApiResponse(ElevenLabsErrorSerializer, description=response.description)
        for status, response in errors(*statuses).items()
    }
    if 422 in described:
        either = PolymorphicProxySerializer(
            "ElevenLabsEither",
            [ElevenLabsErrorSerializer, ElevenLabsUnprocessableSerializer],
            resource_type_field_name=None,
            many=False,
        )
        described[422] = OpenApiResponse(
            either, description="A field is missing or of the wrong type; or it cannot be spoken."
        )
    return described


class ElevenLabsView(ApiView):
    """Answers errors as their clients read them."""

    query_names = None
    #: Where the fields stand that are being read, as their errors say it.
    _place = "body"

    def read(self, kind: type[serializers.Serializer[Any]], data: Any = None) -> dict[str, Any]:
        """The body, or `data`, which is out of the address on all of their routes."""
        self._place = "body" if data is None else "query"
        return super().read(kind, data)

    def handle_exception(self, exc: Exception) -> Response:
        """422 with a list for fields of the wrong shape, else an object with `status` and `message`."""
        answer = super().handle_exception(exc)
        problem: dict[str, Any] = answer.data["error"]
        if isinstance(exc, ValidationError):
            location = [self._place, *filter(None, (problem["param"] or "").split("."))]
            missing = problem["code"] == "missing_field"
            kind = "value_error.missing" if missing else "value_error"
            answer.status_code = 422
            answer.data = {"detail": [{"loc": location, "msg": problem["message"], "type": kind}]}
        else:
            detail = {"status": problem["code"], "message": problem["message"], "param": problem["param"]}
            answer.data = {"detail": detail}
        return answer
