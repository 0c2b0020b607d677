"""django-rq's own pages: the raw view of the doorbells in Redis, for who may operate workers."""

from __future__ import annotations

from django.urls import URLPattern, path
from django_rq import stats_views
from django_rq.urls import get_admin_urlpatterns

from accounts.panel.site import View, panel


def _guard(view: View) -> View:
    return panel().guarded(view, "synthesis.change_worker")


#: Its pages behind our guard, also those that would answer to a token of their own.
urlpatterns: list[URLPattern] = [
    path("stats.json", _guard(stats_views.stats_json), name="home_json"),
    path("metrics", _guard(stats_views.prometheus_metrics), name="metrics"),
    *get_admin_urlpatterns("", _guard),
]
