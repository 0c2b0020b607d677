"""What the panel shows of synthesis. Importing the modules registers them."""

from synthesis.admin import checks, overview, reports, requests, voices, workers

__all__ = ["checks", "overview", "reports", "requests", "voices", "workers"]
