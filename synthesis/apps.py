"""What is made."""

from django.apps import AppConfig


class SynthesisConfig(AppConfig):
    """Voices, requests, segments and outputs."""

    name = "synthesis"
