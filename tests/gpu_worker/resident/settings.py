"""Just enough of Django for a worker's child: no database, no Valkey."""

SECRET_KEY = "for the worker's tests"
INSTALLED_APPS: list[str] = []
DATABASES: dict[str, object] = {}
USE_TZ = True
