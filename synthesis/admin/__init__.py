"""What the panel shows of synthesis. Importing the modules registers them."""

from synthesis.admin import overview, requests, voices, workers

__all__ = ["overview", "requests", "voices", "workers"]
