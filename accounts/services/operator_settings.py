"""What an operator changes without a deployment: each with a type, a default and a check, each change audited.

Values are read from memory; another process's change is seen within FRESH seconds.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import InvalidInput, Unavailable
from accounts.models import OperatorSetting, Plan
from accounts.operators import Operator

PERMISSION = "accounts.change_operatorsetting"
FRESH = 5.0

Text = str | Promise
_DOMAIN = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+")


@dataclass(frozen=True)
class Setting:
    """`kind` is switch, text, choice, words (a list) or plan (an id, or empty)."""

    key: str
    kind: str
    default: Any
    label: Text
    help: Text = ""
    choices: tuple[tuple[str, Text], ...] = ()
    most: int = 200
    check: Callable[[Any], None] | None = None


def _check_domains(domains: list[str]) -> None:
    for domain in domains:
        if not _DOMAIN.fullmatch(_ascii(domain)):
            raise InvalidInput(
                _("“%(domain)s” is not a domain. An example: example.org.") % {"domain": domain},
                code="domain_invalid",
            )


def _ascii(domain: str) -> str:
    """As name servers have it: 例子.中国 is xn--fsqu00a.xn--fiqs8s, and an address may come either way."""
    try:
        return domain.lower().encode("idna").decode()
    except UnicodeError:
        return domain.lower()


def _check_currency(currency: str) -> None:
    if currency and not re.fullmatch(r"[A-Z]{3}", currency):
        raise InvalidInput(_("A currency has three capital letters, as EUR."), code="currency_invalid")


SETTINGS: dict[str, Setting] = {
    setting.key: setting
    for setting in (
        Setting(
            "sign_up",
            "choice",
            "invitation",
            gettext_lazy("Sign-up"),
            gettext_lazy(
                "Who may make an account: only who was invited, or everybody, with a team of their own."
            ),
            (("invitation", gettext_lazy("By invitation")), ("open", gettext_lazy("Open to everybody"))),
        ),
        Setting(
            "allowed_email_domains",
            "words",
            [],
            gettext_lazy("Allowed e-mail domains"),
            gettext_lazy(
                "New accounts need an address in one of them. Empty: any. Accounts that exist stay."
            ),
            check=_check_domains,
        ),
        Setting(
            "default_plan",
            "plan",
            "",
            gettext_lazy("Plan of new teams"),
            gettext_lazy("For teams that people make themselves at sign-up."),
        ),
        Setting(
            "announcement",
            "text",
            "",
            gettext_lazy("Announcement"),
            gettext_lazy("Shown on top of every page. Empty: none."),
            most=500,
        ),
        Setting(
            "announcement_kind",
            "choice",
            "info",
            gettext_lazy("Kind of announcement"),
            choices=(
                ("info", gettext_lazy("Information")),
                ("warn", gettext_lazy("Warning")),
                ("bad", gettext_lazy("Trouble")),
            ),
        ),
        Setting(
            "maintenance",
            "switch",
            False,
            gettext_lazy("Maintenance"),
            gettext_lazy("Nothing new is taken; what waits is finished. Pages and downloads go on working."),
        ),
        Setting(
            "maintenance_message",
            "text",
            "",
            gettext_lazy("What is said during maintenance"),
            gettext_lazy("For example, until when it lasts. Empty: a general sentence."),
            most=500,
        ),
        Setting(
            "currency",
            "text",
            "EUR",
            gettext_lazy("Currency of the price table"),
            gettext_lazy("Three letters (ISO 4217)."),
            most=3,
            check=_check_currency,
        ),
    )
}

_lock = threading.Lock()
_known: dict[str, Any] = {}
_read_at = 0.0


def get(key: str) -> Any:
    """The value of a setting, at most FRESH seconds old."""
    global _known, _read_at
    setting = SETTINGS[key]
    if time.monotonic() - _read_at > FRESH:
        values = dict(OperatorSetting.objects.values_list("key", "value"))
        with _lock:
            _known, _read_at = values, time.monotonic()
    return _known.get(key, setting.default)


def forget() -> None:
    """Read anew at the next `get`."""
    global _read_at
    _read_at = 0.0


def change(*, by: Operator, key: str, value: Any) -> Any:
    """Set a setting; the value as it is stored. InvalidInput for what does not fit its type."""
    by.require(PERMISSION)
    setting = SETTINGS.get(key)
    if setting is None:
        raise InvalidInput(
            _("“%(key)s” is not a setting. There are: %(all)s.") % {"key": key, "all": ", ".join(SETTINGS)},
            code="setting_unknown",
            param="key",
        )
    try:
        checked = _checked(setting, value)
    except InvalidInput as error:
        raise InvalidInput(str(error), code=error.code, param=key) from None
    with transaction.atomic():
        row = OperatorSetting.objects.select_for_update().filter(key=key).first()
        before = row.value if row else setting.default
        if before != checked:
            OperatorSetting.objects.update_or_create(
                key=key, defaults={"value": checked, "updated_at": timezone.now(), "updated_by": by.user}
            )
            by.record("setting.changed", key=key, before=before, after=checked)
        transaction.on_commit(forget)
    forget()
    return checked


def _checked(setting: Setting, value: Any) -> Any:
    if setting.kind == "switch":
        if isinstance(value, str):
            value = {"true": True, "on": True, "1": True, "false": False, "off": False, "0": False}.get(
                value.lower()
            )
        if not isinstance(value, bool):
            raise InvalidInput(_("Say on or off."), code="setting_invalid")
        return value
    if setting.kind == "words":
        words = value if isinstance(value, list) else re.split(r"[\s,;]+", str(value))
        value = sorted({str(word).strip().lower().lstrip("@") for word in words if str(word).strip()})
    else:
        value = " ".join(str(value).split()) if setting.kind != "text" else str(value).strip()
        if len(value) > setting.most:
            raise InvalidInput(
                _("At most %(most)d characters.") % {"most": setting.most}, code="setting_too_long"
            )
    if setting.kind == "choice" and value not in dict(setting.choices):
        raise InvalidInput(
            _("Choose one of: %(all)s.") % {"all": ", ".join(dict(setting.choices))}, code="setting_invalid"
        )
    if setting.kind == "plan" and value and not _plan(value):
        raise InvalidInput(_("There is no such plan."), code="plan_unknown")
    if setting.check:
        setting.check(value)
    return value


def _plan(identifier: str) -> Plan | None:
    try:
        return Plan.objects.filter(pk=UUID(identifier)).first()
    except ValueError:
        return None


# --- What the settings mean -------------------------------------------------------------------------------------


def require_running() -> None:
    """Unavailable (503, `maintenance`) while nothing new is taken."""
    if get("maintenance"):
        message = get("maintenance_message") or _(
            "The service is being worked on: nothing new is taken right now, what waits is finished. Try again later."
        )
        raise Unavailable(message, code="maintenance", retry_after=300)


def check_email(email: str) -> None:
    """InvalidInput unless an account may be made for this address."""
    allowed = get("allowed_email_domains")
    if allowed and _ascii(email.rpartition("@")[2]) not in {_ascii(domain) for domain in allowed}:
        raise InvalidInput(
            _("Accounts here need an address at %(domains)s.") % {"domains": ", ".join(allowed)},
            code="email_domain_not_allowed",
            param="email",
        )


def default_plan() -> Plan:
    """The plan of a team that somebody makes themselves; one with Django's defaults when there is none at all."""
    chosen = get("default_plan")
    plan = _plan(chosen) if chosen else None
    if plan is None:
        plan = Plan.objects.order_by("characters_per_month", "name").first()
    return plan or Plan.objects.create(name="Standard")
