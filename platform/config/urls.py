"""Every address of the service."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from config import docs, health, metrics, reference

# Here and not when the application is loaded: workers, the sweep and commands serve no pages and start sooner. Before
# any of our pages is imported: ours take away what Django's own applications have registered.
admin.autodiscover()

urlpatterns = [
    path("healthz", health.alive, name="healthz"),
    path("readyz", health.ready, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/rq/", include(("synthesis.admin.raw_queue", "django_rq"))),
    path("admin/", admin.site.urls),
    path("docs/", docs.page, name="docs"),
    path("docs/api", reference.page, name="docs_api"),
    path("docs/<slug:slug>", docs.page, name="docs_page"),
    path("v1/schema", reference.SchemaView.as_view(), name="api_schema"),
    path("v1/", include("accounts.api.urls")),
    path("v1/", include("synthesis.api.urls")),
    path("v2/", include("synthesis.api.urls_v2")),
    path("", include("accounts.web.urls")),
    path("", include("synthesis.web.urls")),
]

handler400 = "config.errors.bad_request"
handler403 = "config.errors.forbidden"
handler404 = "config.errors.not_found"
handler500 = "config.errors.server_error"
