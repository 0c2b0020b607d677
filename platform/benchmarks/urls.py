"""What `benchmarks.wsgi` serves."""

from __future__ import annotations

from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path

from config import urls

handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500


def select_1(request: HttpRequest) -> JsonResponse:
    """The least that a view with a database does."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        return JsonResponse({"one": cursor.fetchone()[0]})


urlpatterns = [path("bench/select-1", select_1), *urls.urlpatterns]
