"""All settings; what differs between installations comes from the environment (`config.env`)."""

from __future__ import annotations

import sys
from pathlib import Path

from csp.constants import NONE, SELF
from django.utils.translation import gettext_lazy as _

from config import env

BASE_DIR = Path(__file__).resolve().parent.parent.parent

# --- What must be set -------------------------------------------------------------------------------------------
SECRET_KEY = env.text("CHORUS_SECRET_KEY")
API_KEY_PEPPERS = env.peppers("CHORUS_PEPPERS")

CHORUS_VERSION = "0.1.0"

# --- The service ------------------------------------------------------------------------------------------------
CHORUS_ENGINE = env.text("CHORUS_ENGINE", "kokoro")
CHORUS_BASE_URL = env.origin("CHORUS_BASE_URL", "http://127.0.0.1:8000")
CHORUS_MODELS_DIR = Path(env.text("CHORUS_MODELS_DIR", str(Path(sys.prefix) / "share" / "chorus")))
#: The words of users appear in logs only when an operator asks for it.
CHORUS_LOG_TEXT = env.boolean("CHORUS_LOG_TEXT")
#: A worker renews its hold on a request every third of this; one that dies with its machine delays it by as much.
CHORUS_LEASE_SECONDS = env.integer("CHORUS_LEASE_SECONDS", 20)
CHORUS_SWEEP_SECONDS = env.integer("CHORUS_SWEEP_SECONDS", 2)
#: The pool of this process's workers: they serve only the teams that are assigned to it.
CHORUS_POOL = env.text("CHORUS_POOL", "")
CHORUS_WORKER_MAX_REQUESTS = env.integer("CHORUS_WORKER_MAX_REQUESTS", 0)
CHORUS_WORKER_MAX_RSS_MB = env.integer("CHORUS_WORKER_MAX_RSS_MB", 0)
CHORUS_MAX_UPLOAD_MB = env.integer("CHORUS_MAX_UPLOAD_MB", 50)
#: Addresses and networks of our own proxies: only from them is `X-Forwarded-For` believed.
CHORUS_TRUSTED_PROXIES = env.networks("CHORUS_TRUSTED_PROXIES")
#: What Prometheus sends as `Authorization: Bearer …`; without one, addresses decide who may read `/metrics`: loopback
#: and these networks.
CHORUS_METRICS_TOKEN = env.text("CHORUS_METRICS_TOKEN", "")
CHORUS_METRICS_NETWORKS = env.networks("CHORUS_METRICS_NETWORKS")
#: Where the processes of one machine keep their counters; the name is prometheus_client's, which reads it itself.
PROMETHEUS_MULTIPROC_DIR = env.text("PROMETHEUS_MULTIPROC_DIR", "")
if PROMETHEUS_MULTIPROC_DIR:
    # Before anything imports prometheus_client, which django_rq does.
    Path(PROMETHEUS_MULTIPROC_DIR).mkdir(parents=True, exist_ok=True)
#: Where traces go by OTLP over HTTP (http://collector:4318), and how many of a hundred.
CHORUS_OTLP_ENDPOINT = env.server("CHORUS_OTLP_ENDPOINT")
CHORUS_TRACE_PERCENT = env.integer("CHORUS_TRACE_PERCENT", 100)
#: Whether this process answers by ASGI (set by `config.asgi`), where a request may wait without a thread.
CHORUS_ASGI = False

#: Whether alerts may be posted to addresses inside the operator's own network.
CHORUS_INTERNAL_WEBHOOKS = env.boolean("CHORUS_INTERNAL_WEBHOOKS")

DEBUG = env.boolean("CHORUS_DEBUG")
ALLOWED_HOSTS = env.words("CHORUS_ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_FAILURE_VIEW = "config.errors.csrf_failure"
CSRF_TRUSTED_ORIGINS = env.words("CHORUS_TRUSTED_ORIGINS", CHORUS_BASE_URL)

# --- Django -----------------------------------------------------------------------------------------------------
INSTALLED_APPS = [
    "accounts.panel.apps.PanelConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "corsheaders",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "csp",
    "django_htmx",
    "django_otp",
    "django_otp.plugins.otp_static",
    "django_otp.plugins.otp_totp",
    "django_rq",
    "rest_framework",
    "drf_spectacular",
    "accounts",
    "synthesis",
    "gpu_worker",
    "config.apps.InstallationConfig",
]

MIDDLEWARE = [
    "config.middleware.RequestId",
    "config.observe.Observe",
    "config.internal.AnyHost",
    # Before whatever may answer by itself: a page elsewhere must be able to read errors as well.
    "corsheaders.middleware.CorsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "accounts.middleware.ActingAs",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "config.errors.ErrorPages",
]

ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# A pool in processes whose threads come and go (uvicorn), one connection a thread that stays (gunicorn, workers).
DB_POOL = env.integer("CHORUS_DB_POOL", 0)
DATABASES = {"default": env.database("DATABASE_URL")}
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
DATABASES["default"]["CONN_MAX_AGE"] = 0 if DB_POOL else None
if DB_POOL:
    DATABASES["default"]["OPTIONS"] |= {"pool": {"min_size": 1, "max_size": DB_POOL, "timeout": 10}}  # type: ignore[operator]

REDIS_URL = env.redis("REDIS_URL")
# Its pages are served under /admin/rq/ for staff with a second factor; its own entry would bypass the permission.
RQ_SHOW_ADMIN_LINK = False
RQ_QUEUES = {
    "gpu": {"URL": REDIS_URL, "DEFAULT_TIMEOUT": 3600, "SERIALIZER": "rq.serializers.JSONSerializer"}
}

S3_ENDPOINT_URL = env.server("S3_ENDPOINT_URL")
S3_PUBLIC_URL = env.server("S3_PUBLIC_URL")
S3_ACCESS_KEY_ID = env.text("S3_ACCESS_KEY_ID", "")
S3_SECRET_ACCESS_KEY = env.text("S3_SECRET_ACCESS_KEY", "")
S3_BUCKET = env.text("S3_BUCKET", "chorus")
S3_REGION = env.text("S3_REGION", "us-east-1")

AUTH_USER_MODEL = "accounts.User"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
LOGIN_URL = "sign_in"
LOGIN_REDIRECT_URL = "studio"
LOGOUT_REDIRECT_URL = "sign_in"
PASSWORD_RESET_TIMEOUT = 3600

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("zh-hans", _("Simplified Chinese"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
#: Functions that tell of more to translate than what is marked in the code.
CHORUS_MORE_WORDS = ["config.reference.words"]
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "templates" / "static"]
#: Whether `collectstatic` has made what browsers get (`config.static`).
CHORUS_STATIC_MANIFEST = env.boolean("CHORUS_STATIC_MANIFEST")
STATIC_ROOT = Path(env.text("CHORUS_STATIC_ROOT", str(BASE_DIR / "staticfiles")))
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.InMemoryStorage"},
    "staticfiles": {
        "BACKEND": (
            "config.static.Storage"
            if CHORUS_STATIC_MANIFEST
            else "django.contrib.staticfiles.storage.StaticFilesStorage"
        )
    },
}
WHITENOISE_USE_FINDERS = not CHORUS_STATIC_MANIFEST

# --- Mail: the console unless an SMTP server is named ------------------------------------------------------------
EMAIL_HOST = env.text("CHORUS_EMAIL_HOST", "")
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend" if EMAIL_HOST else "config.mail.ToTheLog"
EMAIL_PORT = env.port("CHORUS_EMAIL_PORT", 587)
EMAIL_HOST_USER = env.text("CHORUS_EMAIL_USER", "")
EMAIL_HOST_PASSWORD = env.text("CHORUS_EMAIL_PASSWORD", "")
_EMAIL_TLS = env.boolean("CHORUS_EMAIL_TLS", default=True)
# By STARTTLS, except on the port where TLS begins with the connection (RFC 8314).
EMAIL_USE_SSL = _EMAIL_TLS and EMAIL_PORT == 465
EMAIL_USE_TLS = _EMAIL_TLS and not EMAIL_USE_SSL
DEFAULT_FROM_EMAIL = env.text("CHORUS_EMAIL_FROM", "chorus@localhost")

# --- Security ---------------------------------------------------------------------------------------------------
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
USE_X_FORWARDED_HOST = False
HTTPS = CHORUS_BASE_URL.startswith("https://")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = HTTPS
# Cookies ignore ports: two installations on one host must not sign each other's users out.
_COOKIE_SUFFIX = env.text("CHORUS_INSTANCE", "")
SESSION_COOKIE_NAME = f"chorus_session{_COOKIE_SUFFIX}"
CSRF_COOKIE_NAME = f"chorus_csrf{_COOKIE_SUFFIX}"
SESSION_COOKIE_AGE = 14 * 24 * 3600
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "media-src": [SELF, "blob:", *([S3_PUBLIC_URL] if S3_PUBLIC_URL else [])],
        "connect-src": [SELF],
        "object-src": [NONE],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
    }
}
DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
FILE_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024

# --- Pages of other origins that call the API: none unless they are named ------------------------------------------
CHORUS_CORS_ORIGINS = env.words("CHORUS_CORS_ORIGINS")
CORS_ALLOW_ALL_ORIGINS = CHORUS_CORS_ORIGINS == ["*"]
CORS_ALLOWED_ORIGINS = [] if CORS_ALLOW_ALL_ORIGINS else CHORUS_CORS_ORIGINS
# Only what is called by key. Nothing at all, `Vary: origin` included, while nobody is named.
CORS_URLS_REGEX = r"^/v[12]/" if CHORUS_CORS_ORIGINS else r"(?!)"
# Keys are sent in headers; cookies are no business of other origins.
CORS_ALLOW_CREDENTIALS = False
CORS_ALLOW_METHODS = ["GET", "HEAD", "POST", "PATCH", "DELETE"]
CORS_ALLOW_HEADERS = [
    *("authorization", "xi-api-key", "content-type", "accept", "accept-language", "x-request-id"),
    *("idempotency-key", "prefer", "if-none-match", "range", "if-range", "last-event-id", "cache-control"),
    # What OpenAI's JavaScript client sends of itself.
    *("openai-organization", "openai-project", "x-stainless-arch", "x-stainless-helper-method"),
    *("x-stainless-lang", "x-stainless-os", "x-stainless-package-version", "x-stainless-poll-helper"),
    *("x-stainless-retry-count", "x-stainless-runtime", "x-stainless-runtime-version", "x-stainless-timeout"),
]
CORS_EXPOSE_HEADERS = [
    *("x-request-id", "location", "etag", "retry-after", "x-should-retry", "content-disposition"),
    *("ratelimit", "ratelimit-policy", "x-ratelimit-limit-requests", "x-ratelimit-remaining-requests"),
    *("x-ratelimit-reset-requests", "idempotent-replayed", "preference-applied"),
    *("content-range", "accept-ranges", "content-length", "www-authenticate"),
]
CORS_PREFLIGHT_MAX_AGE = 3600

# --- REST framework ---------------------------------------------------------------------------------------------
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.api.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["accounts.api.permissions.HasScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["accounts.api.negotiation.JsonParser"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "accounts.api.negotiation.AlwaysJson",
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "config.errors.api_exception_handler",
    "DEFAULT_SCHEMA_CLASS": "accounts.api.schema.Described",
    "UNAUTHENTICATED_USER": None,
    "COMPACT_JSON": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Chorus",
    "VERSION": "1",
    "DESCRIPTION": "A voice service for teams: clone a voice, submit text, fetch speech.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SCHEMA_PATH_PREFIX": "/v1",
    # A field with a default may be left out of a body and is always in an answer: two shapes.
    "COMPONENT_SPLIT_REQUEST": True,
    # Choices stay with their fields: as components of their own they get names that change with every new route.
    "POSTPROCESSING_HOOKS": ["accounts.api.headers.describe", "config.examples.show"],
}

# --- Logs: one JSON object a line -------------------------------------------------------------------------------
LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "config.logs.JsonFormatter"}},
    "filters": {
        "not_unavailable": {
            "()": "django.utils.log.CallbackFilter",
            # That something is away just now is said by whoever missed it.
            "callback": lambda record: getattr(record, "status_code", 0) != 503,
        },
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["console"], "level": env.choice("CHORUS_LOG_LEVEL", "INFO", LOG_LEVELS)},
    "loggers": {
        "django.server": {"handlers": ["console"], "propagate": False},
        "botocore": {"level": "WARNING"},
        "django.request": {"level": "ERROR", "filters": ["not_unavailable"]},
        # Whoever scans the network asks for other hosts all day; the answer is 400 and is logged as such.
        "django.security.DisallowedHost": {"level": "CRITICAL"},
        "rq": {"level": "WARNING"},
    },
}
