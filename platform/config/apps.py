"""What concerns the whole installation: backups, traces."""

from django.apps import AppConfig


class InstallationConfig(AppConfig):
    """Commands of the installation, and traces where they are switched on."""

    name = "config"

    def ready(self) -> None:
        """Switch traces on when an endpoint for them is set."""
        from config import tracing

        tracing.set_up()
