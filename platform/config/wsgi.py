"""Pages and the API, for gunicorn."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

_django = get_wsgi_application()

# Views and all, before gunicorn forks: its workers share them, and their first requests need not wait for them.
from config import urls  # noqa: E402, F401 (needs Django to be set up)
from config.bodies import measured  # noqa: E402

application = measured(_django)
