"""How it is made."""

from django.apps import AppConfig


class GpuWorkerConfig(AppConfig):
    """Engines, resident workers and their supervisor."""

    name = "gpu_worker"
