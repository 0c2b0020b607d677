"""`/v1/models`: what can be named as `model` in `/v1/audio/speech`."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import permissions
from accounts.actors import Actor
from accounts.api.authentication import uses_elevenlabs
from accounts.api.base import ApiView
from accounts.api.schema import errors
from accounts.errors import InvalidInput, NotFound
from accounts.services import limits
from synthesis.engines import capabilities

#: Names that clients of OpenAI's API have built in; all of them mean the engine of this installation.
ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts", "gpt-4o-mini-tts-2025-12-15")
#: Chorus keeps no date of a model: the day that OpenAI's list began, so that clients that sort get something.
_CREATED = 1_700_000_000


class ModelNotFound(NotFound):
    """There is no such model."""

    code = "model_not_found"
    message = gettext_lazy("There is no such model. GET /v1/models lists them.")


class ModelSerializer(serializers.Serializer):
    """A model, as OpenAI's clients read it."""

    id = serializers.CharField()
    object = serializers.ChoiceField(["model"])
    created = serializers.IntegerField()
    owned_by = serializers.CharField()


class ModelListSerializer(serializers.Serializer):
    """All models."""

    object = serializers.ChoiceField(["list"])
    data = ModelSerializer(many=True)  # type: ignore[assignment]  # OpenAI's name, also REST framework's


class ElevenLabsLanguageSerializer(serializers.Serializer):
    """A language of a model."""

    language_id = serializers.CharField()
    name = serializers.CharField()


class ElevenLabsModelSerializer(serializers.Serializer):
    """A model, as ElevenLabs' clients read it."""

    model_id = serializers.CharField()
    name = serializers.CharField()
    can_do_text_to_speech = serializers.BooleanField()
    can_do_voice_conversion = serializers.BooleanField()
    can_be_finetuned = serializers.BooleanField()
    can_use_style = serializers.BooleanField()
    can_use_speaker_boost = serializers.BooleanField()
    token_cost_factor = serializers.FloatField()
    maximum_text_length_per_request = serializers.IntegerField()
    languages = ElevenLabsLanguageSerializer(many=True)


def _elevenlabs_model(actor: Actor) -> dict[str, Any]:
    engine = capabilities(settings.CHORUS_ENGINE)
    return {
        "model_id": engine.name,
        "name": engine.label,
        "can_do_text_to_speech": True,
        "can_do_voice_conversion": engine.conversion,
        "can_be_finetuned": False,
        "can_use_style": False,
        "can_use_speaker_boost": False,
        "token_cost_factor": 1.0,
        "maximum_text_length_per_request": limits.tightest(actor).characters_per_request,
        "languages": [{"language_id": tag, "name": tag} for tag in engine.languages],
    }


def names() -> tuple[str, ...]:
    """The engine of this installation, and its aliases."""
    return (settings.CHORUS_ENGINE, *ALIASES)


def check_model(name: str) -> None:
    """InvalidInput (`model_not_found`) unless `name` can be named."""
    if name not in names():
        raise InvalidInput(
            _("There is no model “%(name)s”. There are: %(all)s.")
            % {"name": name, "all": ", ".join(names())},
            code="model_not_found",
            param="model",
        )


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _CREATED, "owned_by": "chorus"}


class ModelsView(ApiView):
    """All models."""

    required_scopes = {"GET": permissions.VOICES_READ}
    query_names = None

    @extend_schema(
        summary="List models",
        tags=["OpenAI"],
        responses={
            200: PolymorphicProxySerializer(
                "Models",
                [ModelListSerializer, ElevenLabsModelSerializer(many=True)],
                resource_type_field_name=None,
                many=False,
            ),
            **errors(),
        },
    )
    def get(self, request: Request) -> Response:
        """The engine of this installation, and names of OpenAI's that mean it too; with `xi-api-key` as ElevenLabs'."""
        if uses_elevenlabs(request):
            return Response([_elevenlabs_model(self.actor)])
        return Response({"object": "list", "data": [_model(name) for name in names()]})


class ModelView(ApiView):
    """One model."""

    required_scopes = {"GET": permissions.VOICES_READ}
    query_names = None

    @extend_schema(summary="Show a model", tags=["OpenAI"], responses={200: ModelSerializer, **errors(404)})
    def get(self, request: Request, model: str) -> Response:
        """One that can be named."""
        if model not in names():
            raise ModelNotFound
        return Response(_model(model))
