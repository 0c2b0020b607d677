"""What the panel shows of synthesis. Importing the modules registers them."""

from synthesis.admin import checks, misuse, overview, pools, queue, reports, requests, voices, workers

__all__ = ["checks", "misuse", "overview", "pools", "queue", "reports", "requests", "voices", "workers"]
