"""Everything that waits (event streams, held requests, audio streams), for uvicorn."""

import gc
import os
import signal
import threading
from functools import cache
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

settings.CHORUS_ASGI = True
# WhiteNoise is synchronous: with it in the chain each waiting request would hold a thread. The web processes serve
# the static files.
settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.startswith("whitenoise.")]

_django = get_asgi_application()

from config import urls  # noqa: E402, F401 (needs Django to be set up)
from config.bodies import Receive, Send, bounded  # noqa: E402
from synthesis import watching  # noqa: E402

_bounded = bounded(_django)
# What was loaded stays for good: Python would wait, before it looks for what is left of requests, until that is a
# quarter of all there is.
gc.freeze()


async def application(scope: Any, receive: Receive, send: Send) -> None:
    """Django, with bounded bodies; whoever waits is answered before the process ends."""
    _answer_who_waits()
    await _bounded(scope, receive, send)


@cache
def _answer_who_waits() -> None:
    """When we are told to end, before uvicorn's own handler, which gives answers only seconds. Not earlier than at the
    first request: uvicorn sets its handler after it has imported this."""
    before = signal.getsignal(signal.SIGTERM)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        return

    def told(number: int, frame: FrameType | None) -> None:
        watching.end()
        before(number, frame)

    signal.signal(signal.SIGTERM, told)
