"""Addresses below /v2/: what ElevenLabs' clients ask for there."""

from django.urls import path

from synthesis.api import elevenlabs_library

urlpatterns = [path("voices", elevenlabs_library.ElevenLabsVoicesView.as_view(), name="api_voices_v2")]
