"""API keys. The secret is shown once; only an HMAC digest and the id of its pepper are stored."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.ids import new_id
from accounts.models.fields import NetworkField


class ApiKey(models.Model):
    """A key acts for one person in one team, within its scopes."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    team = models.ForeignKey(
        "accounts.Team", on_delete=models.CASCADE, related_name="api_keys", verbose_name=_("team")
    )
    user = models.ForeignKey(
        "accounts.User", on_delete=models.CASCADE, related_name="api_keys", verbose_name=_("user")
    )
    name = models.CharField(_("name"), max_length=100)
    prefix = models.CharField(_("prefix"), max_length=16, unique=True, editable=False)
    digest = models.BinaryField(editable=False)
    pepper_id = models.CharField(max_length=16, editable=False)
    scopes = ArrayField(models.CharField(max_length=32), verbose_name=_("scopes"))
    allowed_ips = ArrayField(NetworkField(), verbose_name=_("allowed addresses"), default=list, blank=True)
    characters_per_month = models.PositiveBigIntegerField(_("characters per month"), null=True, blank=True)
    requests_per_minute = models.PositiveIntegerField(_("requests per minute"), null=True, blank=True)
    concurrent_requests = models.PositiveIntegerField(_("requests spoken at once"), null=True, blank=True)
    created_at = models.DateTimeField(_("created"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used"), null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(_("revoked"), null=True, blank=True)

    class Meta:
        verbose_name = _("API key")
        verbose_name_plural = _("API keys")
        indexes = [models.Index(fields=["team", "-created_at"])]

    def __str__(self) -> str:
        return f"{self.name} ({self.hint})"

    @property
    def hint(self) -> str:
        """What a list shows instead of the secret."""
        return f"chorus_{self.prefix}_…"

    @property
    def is_usable(self) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > timezone.now())
