"""Telling people when a team has taken a share of its month's characters: once for a rule, a team and a month."""

from __future__ import annotations

import json
import logging
import secrets
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.mail import send_mail
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import F
from django.utils import timezone, translation
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from accounts import outgoing
from accounts.errors import InvalidInput, NotFound
from accounts.models import Alert, AlertRule, Membership, Role, Team, UsageCounter
from accounts.operators import Operator
from accounts.services import limits

logger = logging.getLogger(__name__)

PERMISSION = "accounts.change_alertrule"
#: Tried again after so many minutes each, for about a day; then it is left.
BACK_OFF_MINUTES = (1, 5, 15, 60, 180, 360, 720)


def save_rule(
    *,
    by: Operator,
    rule_id: UUID | None = None,
    team: Team | None,
    percent: int,
    tell_owners: bool = True,
    emails: list[str] | None = None,
    webhook_url: str = "",
    enabled: bool = True,
) -> AlertRule:
    """A rule, new or changed. InvalidInput when it would tell nobody, or for a wrong address."""
    by.require(PERMISSION)
    addresses = sorted({address.strip().lower() for address in emails or [] if address.strip()})
    for address in addresses:
        try:
            validate_email(address)
        except ValidationError:
            raise InvalidInput(
                _("“%(email)s” is not an e-mail address.") % {"email": address},
                code="email_invalid",
                param="emails",
            ) from None
    if not 1 <= percent <= 100:
        raise InvalidInput(
            _("A share is between 1 and 100 percent."), code="percent_out_of_range", param="percent"
        )
    if webhook_url and not webhook_url.startswith(("https://", "http://")):
        raise InvalidInput(
            _("An address begins with https:// or http:// and has no password in it."),
            code="address_refused",
            param="webhook_url",
        )
    if not (tell_owners or addresses or webhook_url):
        raise InvalidInput(_("Choose somebody to tell."), code="recipient_missing", param="emails")
    values: dict[str, Any] = {
        "team": team,
        "percent": percent,
        "tell_owners": tell_owners,
        "emails": addresses,
        "webhook_url": webhook_url,
        "enabled": enabled,
    }
    with transaction.atomic():
        if rule_id is None:
            rule = AlertRule.objects.create(
                **values, created_by=by.user, webhook_secret=secrets.token_hex(24) if webhook_url else ""
            )
        else:
            rule = _locked(rule_id)
            for name, value in values.items():
                setattr(rule, name, value)
            if webhook_url and not rule.webhook_secret:
                rule.webhook_secret = secrets.token_hex(24)
            rule.save()
        by.record(
            "alert.saved",
            target=rule,
            team_id=team.pk if team else None,
            **{name: value for name, value in values.items() if name != "team"},
        )
    return rule


def delete_rule(*, by: Operator, rule_id: UUID) -> None:
    """Remove a rule and what it raised."""
    by.require(PERMISSION)
    with transaction.atomic():
        rule = _locked(rule_id)
        by.record("alert.deleted", target=rule, rule=str(rule))
        rule.delete()


def _locked(rule_id: UUID) -> AlertRule:
    rule = AlertRule.objects.select_for_update(of=("self",)).filter(pk=rule_id).first()
    if rule is None:
        raise NotFound
    return rule


def look() -> int:
    """For the sweep: raise what is due; how many alerts. Never twice for a rule, a team and a month."""
    rules = list(AlertRule.objects.filter(enabled=True).order_by("percent"))
    if not rules:
        return 0
    lowest = rules[0].percent
    recent = (timezone.now() - timedelta(days=32)).date()
    # By what the limit was at the latest reservation: near enough to leave out those far below.
    counters = UsageCounter.objects.filter(
        user=None,
        api_key=None,
        period_start__gte=recent,
        allowance__isnull=False,
        allowance__lte=(F("used") + F("reserved")) * 100 / max(1, lowest - 1),
    ).select_related("team__plan", "team__quota")
    raised = 0
    for counter in counters.iterator(chunk_size=500):
        standing = limits.standing_of(counter.team)
        if standing is None or standing.period.key != counter.period_start or counter.team.suspended_at:
            continue
        taken = standing.used + standing.reserved
        for rule in rules:
            if rule.team_id in (None, counter.team_id) and taken * 100 >= standing.limit * rule.percent:
                _alert, made = Alert.objects.get_or_create(
                    rule=rule,
                    team=counter.team,
                    period_start=counter.period_start,
                    defaults={"taken": taken, "limit": standing.limit, "next_attempt_at": timezone.now()},
                )
                raised += made
    return raised


def send() -> int:
    """For the sweep: tell what was raised; how many alerts were told whole."""
    told = 0
    due = Alert.objects.filter(next_attempt_at__lte=timezone.now()).order_by("next_attempt_at")
    for alert_id in due.values_list("pk", flat=True)[:100]:
        # Taken before it is sent, so that a sweep that dies or hangs in between does not send it for ever.
        alert = _take(alert_id)
        if alert is not None:
            told += _send(alert)
    return told


def _take(alert_id: UUID) -> Alert | None:
    with transaction.atomic():
        alert = (
            Alert.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("rule", "team")
            .filter(pk=alert_id, next_attempt_at__lte=timezone.now())
            .first()
        )
        if alert is not None:
            pause = BACK_OFF_MINUTES[min(alert.attempts, len(BACK_OFF_MINUTES) - 1)]
            alert.attempts += 1
            alert.next_attempt_at = timezone.now() + timedelta(minutes=pause)
            alert.save(update_fields=["attempts", "next_attempt_at"])
        return alert


def _send(alert: Alert) -> bool:
    rule = alert.rule
    if (rule.tell_owners or rule.emails) and alert.email_state != "sent":
        alert.email_state = _by_email(alert)
    if rule.webhook_url and alert.webhook_state != "sent":
        alert.webhook_state = _by_webhook(alert)
    done = all(state in {"", "sent"} for state in (alert.email_state, alert.webhook_state))
    if done or alert.attempts > len(BACK_OFF_MINUTES):
        alert.next_attempt_at = None
    alert.save(update_fields=["email_state", "webhook_state", "next_attempt_at"])
    return done


def _by_email(alert: Alert) -> str:
    recipients: dict[str, str] = dict.fromkeys(alert.rule.emails, settings.LANGUAGE_CODE)
    if alert.rule.tell_owners and not _surpassed(alert):
        managers = Membership.objects.filter(
            team=alert.team, role__in=[Role.OWNER, Role.ADMIN], user__is_active=True
        )
        recipients |= {
            one.user.email: one.user.language or settings.LANGUAGE_CODE
            for one in managers.select_related("user")
        }
    try:
        for address, language in recipients.items():
            with translation.override(language):
                subject, text = _words(alert)
                send_mail(subject, text, None, [address])
    except OSError as error:
        logger.warning("An alert could not be sent by e-mail", extra={"alert": str(alert.pk)})
        return f"{type(error).__name__}: {error}"[:200]
    return "sent"


def _surpassed(alert: Alert) -> bool:
    """Whether the same people hear of a higher share already: who uses everything at once gets one e-mail, not two."""
    return Alert.objects.filter(
        team=alert.team,
        period_start=alert.period_start,
        rule__tell_owners=True,
        rule__percent__gt=alert.rule.percent,
    ).exists()


def _words(alert: Alert) -> tuple[str, str]:
    share = alert.taken * 100 // alert.limit if alert.limit else 100
    values = {
        "team": alert.team.name,
        "share": share,
        "taken": f"{alert.taken:,}",
        "limit": f"{alert.limit:,}",
        "day": date_format(limits.period(alert.team).end, "DATE_FORMAT"),
        "url": settings.CHORUS_BASE_URL + "/team/usage/",
    }
    subject = _("%(team)s has used %(share)d %% of this month's characters") % values
    if alert.taken >= alert.limit:
        text = _(
            "%(team)s has used all of this month's characters: %(taken)s of %(limit)s. New requests are refused until "
            "the quota renews on %(day)s, or whoever runs the service raises it.\n\n%(url)s\n"
        )
    else:
        text = _(
            "%(team)s has used %(taken)s of this month's %(limit)s characters. The quota renews on %(day)s.\n\n"
            "%(url)s\n"
        )
    return subject, text % values


def _by_webhook(alert: Alert) -> str:
    body = json.dumps(
        {
            "type": "quota.threshold",
            "id": str(alert.pk),
            "team": {"id": str(alert.team_id), "name": alert.team.name},
            "percent": alert.rule.percent,
            "characters_taken": alert.taken,
            "characters_limit": alert.limit,
            "period_start": alert.period_start.isoformat(),
            "created_at": alert.created_at.isoformat(),
        },
        ensure_ascii=False,
    ).encode()
    headers = {"Chorus-Signature": outgoing.signature(alert.rule.webhook_secret, body)}
    try:
        status = outgoing.post(
            alert.rule.webhook_url, body, headers=headers, internal=settings.CHORUS_INTERNAL_WEBHOOKS
        )
    except (outgoing.Refused, outgoing.Unreachable) as error:
        return str(error)[:200]
    return "sent" if 200 <= status < 300 else f"HTTP {status}"
