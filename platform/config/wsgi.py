"""Pages and the API, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = get_wsgi_application()

from config.bodies import measured  # noqa: E402 (needs Django to be set up)

application = measured(_django)
