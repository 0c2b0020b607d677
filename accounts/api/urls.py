"""Addresses below /v1/ that concern the account."""

from django.urls import path

from accounts.api import audit, keys, quota

urlpatterns = [
    path("keys", keys.KeysView.as_view(), name="api_keys"),
    path("keys/<str:key_id>", keys.KeyView.as_view(), name="api_key"),
    path("audit", audit.AuditView.as_view(), name="api_audit"),
    path("quota", quota.QuotaView.as_view(), name="api_quota"),
]
