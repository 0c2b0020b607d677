"""Everything that waits (event streams, held requests, audio streams), for uvicorn."""

import os

from django.conf import settings
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

settings.CHORUS_ASGI = True
# WhiteNoise is synchronous: with it in the chain each waiting request would hold a thread. The web processes serve
# the static files.
settings.MIDDLEWARE = [name for name in settings.MIDDLEWARE if not name.startswith("whitenoise.")]

_django = get_asgi_application()

from config.bodies import bounded  # noqa: E402 (needs Django to be set up)

application = bounded(_django)
