"""What is made."""

from django.apps import AppConfig


class SynthesisConfig(AppConfig):
    """Voices, requests, segments and outputs."""

    name = "synthesis"

    def ready(self) -> None:
        """Tell `accounts` what it cannot ask by itself."""
        from synthesis import contributions

        contributions.register()
