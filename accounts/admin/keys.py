"""API keys: seen and revoked, never their secrets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.admin.cells import anchor, badge, moment
from accounts.effects import Text
from accounts.models import ApiKey
from accounts.operators import Operator
from accounts.panel.modeladmin import PanelAdmin, is_set
from accounts.panel.operations import Operation
from accounts.panel.site import Entry, panel
from accounts.services import people


def _revoke(by: Operator, objects: Sequence[ApiKey], values: dict[str, Any]) -> Text:
    for key in objects:
        people.revoke_key(by=by, key_id=key.pk, reason=values["reason"])
    return _("Revoked. Programs that use it are refused from now on.")


@admin.register(ApiKey)
class ApiKeyAdmin(PanelAdmin):
    """Who calls the API, with what rights."""

    intro = gettext_lazy("The secret of a key is stored nowhere: it can be revoked here and not read.")
    list_display = [
        "name",
        "hint",
        "of_team",
        "of_user",
        "state",
        moment("last_used_at", gettext_lazy("last used")),
        moment("expires_at", gettext_lazy("expires")),
        moment("created_at", gettext_lazy("made")),
    ]
    list_filter = [
        is_set("revoked_at", gettext_lazy("state"), gettext_lazy("revoked"), gettext_lazy("in use"))
    ]
    list_select_related = ["team", "user"]
    search_fields = ["name", "prefix", "team__name", "user__email"]
    id_columns = ["id", "team_id", "user_id"]
    ordering = ["-created_at"]
    facts = [
        "name",
        "hint",
        "of_team",
        "of_user",
        "state",
        "scope_list",
        "address_list",
        "characters_per_month",
        "requests_per_minute",
        "concurrent_requests",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    ]
    operations = [
        Operation(
            "revoke",
            gettext_lazy("Revoke"),
            "accounts.change_apikey",
            _revoke,
            applies=lambda key: key.revoked_at is None,
            explain=gettext_lazy("The key stops at once and for good."),
            bulk=True,
            danger=True,
            icon="close",
        )
    ]

    @admin.display(description=gettext_lazy("key"))
    def hint(self, key: ApiKey) -> str:
        """Its public part."""
        return key.hint

    @admin.display(description=gettext_lazy("team"), ordering="team__name")
    def of_team(self, key: ApiKey) -> SafeString:
        """A way to the team."""
        return anchor(key.team)

    @admin.display(description=gettext_lazy("person"), ordering="user__email")
    def of_user(self, key: ApiKey) -> SafeString:
        """A way to the person."""
        return anchor(key.user, key.user.email)

    @admin.display(description=gettext_lazy("state"))
    def state(self, key: ApiKey) -> SafeString:
        """In use, expired or revoked."""
        if key.revoked_at:
            return badge(_("revoked"))
        return badge(_("in use"), "good") if key.is_usable else badge(_("expired"), "warn")

    @admin.display(description=gettext_lazy("scopes"))
    def scope_list(self, key: ApiKey) -> str:
        """In words."""
        return ", ".join(key.scopes)

    @admin.display(description=gettext_lazy("allowed addresses"))
    def address_list(self, key: ApiKey) -> str:
        """All when there are none."""
        return ", ".join(key.allowed_ips) or _("any")


panel().add_entry(
    Entry(
        "customers",
        "admin:accounts_apikey_changelist",
        gettext_lazy("API keys"),
        "key",
        "accounts.view_apikey",
        25,
    )
)
