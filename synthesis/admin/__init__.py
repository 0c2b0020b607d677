"""What the panel shows of synthesis. Importing the modules registers them."""

from synthesis.admin import checks, overview, pools, queue, reports, requests, voices, workers

__all__ = ["checks", "overview", "pools", "queue", "reports", "requests", "voices", "workers"]
