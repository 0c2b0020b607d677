"""The service's pages and API, and beside them `/bench/select-1`: the same server, middleware and database."""

from __future__ import annotations

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.ROOT_URLCONF = "benchmarks.urls"
application = get_wsgi_application()
