"""The streams process, which looks at rows only when it is told to: what comes all the same was announced."""

from config.asgi import application
from synthesis import watching
from synthesis.api import progress

__all__ = ["application"]

watching.POLL_SECONDS = 3600.0
progress._PLACE_SECONDS = 3600.0
