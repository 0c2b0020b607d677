"""Addresses below /v1/ that concern the account."""

from django.urls import path

from accounts.api import quota

urlpatterns = [
    path("quota", quota.QuotaView.as_view(), name="api_quota"),
]
