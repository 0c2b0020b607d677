"""Changing limits: of a plan, a team, a person in a team; now or from the next month; shown before, undone after.

Every change is a row of `QuotaChange`, which the audit log repeats. Nothing else writes limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import extensions
from accounts.effects import Effect
from accounts.errors import Conflict, InvalidInput, NotFound
from accounts.ids import new_id
from accounts.models import MemberQuota, Membership, Plan, QuotaChange, Team, TeamQuota, UsageCounter
from accounts.operators import Operator
from accounts.services import limits

Target = Plan | Team | Membership

#: Limits that only a plan has.
PLAN_FIELDS = (*limits.FIELDS, "weight", "retention_days")
#: Largest values: beyond them a typing error is likelier than a wish.
_MOST = {
    "characters_per_month": 10**12,
    "concurrent_requests": 10_000,
    "queued_requests": 1_000_000,
    "requests_per_minute": 1_000_000,
    "characters_per_request": 20_000,
    "stored_voices": 100_000,
    "retention_days": 3_650,
    "weight": 1_000,
}
#: At zero of these nothing is spoken.
_NEEDED = ("concurrent_requests", "queued_requests", "requests_per_minute", "characters_per_request")
_LEAST = {"weight": 0.01, "retention_days": 1}
_PERMISSIONS: dict[type, str] = {
    Plan: "accounts.change_plan",
    Team: "accounts.change_teamquota",
    Membership: "accounts.change_memberquota",
}
LABELS = {
    "characters_per_month": gettext_lazy("characters per month"),
    "concurrent_requests": gettext_lazy("requests spoken at once"),
    "queued_requests": gettext_lazy("requests waiting at once"),
    "requests_per_minute": gettext_lazy("requests per minute"),
    "characters_per_request": gettext_lazy("characters per request"),
    "stored_voices": gettext_lazy("stored voices"),
    "weight": gettext_lazy("fair-share weight"),
    "retention_days": gettext_lazy("days that outputs are kept"),
    "plan": gettext_lazy("plan"),
}


def change(
    *,
    by: Operator,
    targets: Sequence[Target],
    values: dict[str, Any],
    next_period: bool = False,
    reason: str = "",
) -> list[QuotaChange]:
    """Set `values` (a field → a number, or None for “as the level above says”) for each target.

    A team also takes `plan` (a Plan, or its id). With `next_period` it takes effect with the team's next month.
    Targets for which nothing would change are left out. Raises NotAllowed and InvalidInput.
    """
    batch = new_id()
    changes = []
    with transaction.atomic():
        for target in targets:
            by.require(_PERMISSIONS[type(target)])
            if (after := _differing(target, _checked(target, values))) or next_period:
                changes.append(
                    QuotaChange.objects.create(
                        batch=batch,
                        after=after if not next_period else _checked(target, values),
                        reason=reason.strip()[:200],
                        apply_at=_next_period(target) if next_period else timezone.now(),
                        created_by=by.user,
                        **_as_target(target),
                    )
                )
        for made in changes:
            if next_period:
                by.record(
                    "quota.change_planned",
                    target=target_of(made),
                    team_id=_team_id(made),
                    after=made.after,
                    apply_at=made.apply_at.isoformat(),
                    reason=made.reason,
                )
            else:
                _apply(by, made)
    return changes


def preview(*, targets: Sequence[Target], values: dict[str, Any]) -> list[Effect]:
    """What `change` with the same arguments would do; lines only for what differs."""
    effects = []
    for target in targets:
        after = _differing(target, _checked(target, values))
        effects += [_effect(target, field, value) for field, value in after.items()]
        if isinstance(target, Team) and "plan" in after:
            effects += _effects_of_plan(target, Plan.objects.get(pk=after["plan"]), after)
        if isinstance(target, Plan) and after:
            count = target.team_set.count()
            over = _over(target, after["characters_per_month"]) if "characters_per_month" in after else 0
            warning = _("%(teams)d of them have used more already: what was promised stays.") % {
                "teams": over
            }
            effects.append(
                Effect(
                    str(target),
                    _("teams with this plan"),
                    str(count),
                    str(count),
                    warning if over else "",
                )
            )
    return effects


def undo(*, by: Operator, change_id: UUID) -> QuotaChange:
    """Put back what was there before a change. Conflict when it is undone already, or was changed again since."""
    with transaction.atomic():
        found = QuotaChange.objects.select_for_update(of=("self",)).filter(pk=change_id).first()
        if found is None:
            raise NotFound
        by.require(_PERMISSIONS[type(target_of(found))])
        _check_undoable(found)
        made = QuotaChange.objects.create(
            batch=new_id(),
            after=found.before,
            reason=_("Undone: %(reason)s") % {"reason": found.reason} if found.reason else _("Undone"),
            apply_at=timezone.now(),
            created_by=by.user,
            undoes=found,
            **_as_target(target_of(found)),
        )
        _apply(by, made)
    return made


def preview_undo(found: QuotaChange) -> list[Effect]:
    """What `undo` would do; Conflict where it would be refused."""
    _check_undoable(found)
    return preview(targets=[target_of(found)], values=found.before or {})


def _check_undoable(found: QuotaChange) -> None:
    if found.applied_at is None or QuotaChange.objects.filter(undoes=found).exists():
        raise Conflict(
            _("There is nothing to undo: this change is not in force."), code="change_not_in_force"
        )
    if _current(target_of(found), found.after) != found.after:
        raise Conflict(
            _("These limits were changed again since. Undo the later change first, or set them anew."),
            code="changed_since",
        )


def withdraw(*, by: Operator, change_id: UUID) -> None:
    """Take back a planned change. Conflict once it is in force."""
    with transaction.atomic():
        found = QuotaChange.objects.select_for_update(of=("self",)).filter(pk=change_id).first()
        if found is None:
            raise NotFound
        by.require(_PERMISSIONS[type(target_of(found))])
        if not found.is_planned:
            raise Conflict(_("This change is no longer planned."), code="change_not_planned")
        found.withdrawn_at = timezone.now()
        found.save(update_fields=["withdrawn_at"])
        by.record(
            "quota.change_withdrawn", target=target_of(found), team_id=_team_id(found), after=found.after
        )


def apply_due() -> int:
    """For the sweep: put planned changes whose time has come into force; how many."""
    count = 0
    while True:
        with transaction.atomic():
            due = (
                QuotaChange.objects.select_for_update(of=("self",), skip_locked=True)
                .filter(applied_at=None, withdrawn_at=None, apply_at__lte=timezone.now())
                .order_by("apply_at", "id")
                .first()
            )
            if due is None:
                return count
            _apply(Operator.sweep(), due)
            count += 1


def create_plan(*, by: Operator, name: str, values: dict[str, Any]) -> Plan:
    """A new plan. Conflict when there is one with this name."""
    by.require("accounts.add_plan")
    name = _plan_name(name)
    with transaction.atomic():
        if Plan.objects.filter(name__iexact=name).exists():
            raise _plan_taken(name)
        checked = {key: value for key, value in _checked(Plan(), values).items() if value is not None}
        plan = Plan.objects.create(name=name, **checked)
        by.record("plan.created", target=plan, name=name, after=checked)
    return plan


def rename_plan(*, by: Operator, plan_id: UUID, name: str) -> Plan:
    """Give a plan another name."""
    by.require("accounts.change_plan")
    name = _plan_name(name)
    with transaction.atomic():
        plan = Plan.objects.select_for_update().get(pk=plan_id)
        if Plan.objects.filter(name__iexact=name).exclude(pk=plan_id).exists():
            raise _plan_taken(name)
        before, plan.name = plan.name, name
        plan.save(update_fields=["name"])
        by.record("plan.renamed", target=plan, before=before, after=name)
    return plan


def delete_plan(*, by: Operator, plan_id: UUID) -> None:
    """Remove a plan. Conflict while a team has it."""
    by.require("accounts.delete_plan")
    with transaction.atomic():
        plan = Plan.objects.select_for_update().get(pk=plan_id)
        teams = Team.objects.filter(plan=plan).count()
        if teams:
            raise Conflict(
                _("%(teams)d teams have this plan. Give them another one first.") % {"teams": teams},
                code="plan_in_use",
            )
        by.record("plan.deleted", target=plan, name=plan.name)
        plan.delete()


def _plan_name(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > 64 or not name.isprintable():
        raise InvalidInput(
            _("Give the plan a name of 1 to 64 characters."), code="name_invalid", param="name"
        )
    return name


def _plan_taken(name: str) -> Conflict:
    return Conflict(
        _("There is a plan called “%(name)s” already.") % {"name": name}, code="plan_name_taken", param="name"
    )


# --- A target's fields ------------------------------------------------------------------------------------------


def _checked(target: Target, values: dict[str, Any]) -> dict[str, Any]:
    """`values` as they are stored: whole numbers (a float for the weight), None, and a plan's id as text."""
    allowed = PLAN_FIELDS if isinstance(target, Plan) else limits.FIELDS
    checked: dict[str, Any] = {}
    for field, value in values.items():
        if field == "plan" and isinstance(target, Team):
            plan = value if isinstance(value, Plan) else Plan.objects.filter(pk=value).first()
            if plan is None:
                raise InvalidInput(_("There is no such plan."), code="plan_unknown", param="plan")
            checked["plan"] = str(plan.pk)
        elif field not in allowed:
            raise InvalidInput(
                _("“%(field)s” is not a limit here. There are: %(all)s.")
                % {"field": field, "all": ", ".join(allowed)},
                code="limit_unknown",
                param=field,
            )
        elif value is None and isinstance(target, Plan):
            raise InvalidInput(_("A plan needs each limit."), code="limit_missing", param=field)
        else:
            checked[field] = _number(field, value)
    return checked


def _number(field: str, value: Any) -> int | float | None:
    if value is None:
        return None
    number = float(value) if field == "weight" else int(value)
    low, high = _LEAST.get(field, 0), _MOST[field]
    if not low <= number <= high:
        raise InvalidInput(
            _("“%(label)s” must be between %(low)s and %(high)s.")
            % {"label": LABELS[field], "low": low, "high": f"{high:,}"},
            code="limit_out_of_range",
            param=field,
        )
    return number


def _current(target: Target, fields: Sequence[str] | dict[str, Any]) -> dict[str, Any]:
    """What the target itself says now, for `fields`."""
    owner: Any = target
    if isinstance(target, Team):
        owner = TeamQuota.objects.filter(team=target).first()
        plan = Team.objects.values_list("plan_id", flat=True).get(pk=target.pk)
    elif isinstance(target, Membership):
        owner = MemberQuota.objects.filter(membership=target).first()
    else:
        owner = Plan.objects.filter(pk=target.pk).first() or target
    return {field: str(plan) if field == "plan" else getattr(owner, field, None) for field in fields}


def _differing(target: Target, checked: dict[str, Any]) -> dict[str, Any]:
    now = _current(target, checked)
    return {field: value for field, value in checked.items() if now[field] != value}


def _apply(by: Operator, made: QuotaChange) -> None:
    """Write the limits, what was there before, and the audit entry. The target is locked first."""
    target = target_of(made)
    type(target)._default_manager.select_for_update(of=("self",), no_key=True).get(pk=target.pk)
    made.before = _current(target, made.after)
    made.applied_at = timezone.now()
    made.save(update_fields=["before", "applied_at"])
    own = {field: value for field, value in made.after.items() if field != "plan"}
    if isinstance(target, Plan):
        Plan.objects.filter(pk=target.pk).update(**own)
    elif isinstance(target, Team):
        if own:
            TeamQuota.objects.update_or_create(team=target, defaults=own)
        if "plan" in made.after:
            Team.objects.filter(pk=target.pk).update(plan_id=made.after["plan"])
    elif own:
        MemberQuota.objects.update_or_create(membership=target, defaults=own)
    by.record(
        "quota.changed",
        target=target,
        team_id=_team_id(made),
        before=_readable(made.before),
        after=_readable(made.after),
        reason=made.reason,
        change=str(made.pk),
    )


def _readable(values: dict[str, Any]) -> dict[str, Any]:
    """For the audit log: a plan by its name."""
    if "plan" not in values:
        return values
    return {
        **values,
        "plan": Plan.objects.filter(pk=values["plan"]).values_list("name", flat=True).first() or "",
    }


def target_of(made: QuotaChange) -> Target:
    """What a change is about."""
    target = made.plan or made.team or made.membership
    if target is None:  # the database holds that one of them is set
        raise NotFound
    return target


def _as_target(target: Target) -> dict[str, Any]:
    return {{Plan: "plan", Team: "team", Membership: "membership"}[type(target)]: target}


def _team_id(made: QuotaChange) -> UUID | None:
    return made.membership.team_id if made.membership else made.team_id


def _next_period(target: Target) -> datetime:
    """The start of the next month of the team; of UTC's for a plan, whose teams are everywhere."""
    if isinstance(target, Plan):
        return limits.period(Team(time_zone="UTC")).end
    return limits.period(target if isinstance(target, Team) else target.team).end


# --- What it would do -------------------------------------------------------------------------------------------


def _effect(target: Target, field: str, value: Any) -> Effect:
    now = _current(target, [field])[field]
    warning = ""
    if isinstance(target, Team | Membership) and field in limits.FIELDS:
        warning = _warning(target, field, value)
    elif value == 0 and field in _NEEDED:
        warning = _("Nothing can be spoken any more.")
    return Effect(
        str(target), LABELS[field], _in_words(target, field, now), _in_words(target, field, value), warning
    )


def _in_words(target: Target, field: str, value: Any) -> str:
    """A limit, and the number behind it where it is left to the level above."""
    if value is not None or field not in limits.FIELDS or isinstance(target, Plan):
        return shown(field, value)
    above = target.plan if isinstance(target, Team) else limits.of_team(target.team)
    return _("%(limit)s, as the level above says") % {"limit": f"{getattr(above, field):,}"}


def _effects_of_plan(team: Team, plan: Plan, after: dict[str, Any]) -> list[Effect]:
    """What another plan means for the limits that the team does not set itself."""
    own = _current(team, limits.FIELDS)
    effects = []
    for field in limits.FIELDS:
        decided = after.get(field, own[field]) if field in after else own[field]
        before, then = getattr(team.plan, field), getattr(plan, field)
        if decided is None and before != then:
            effects.append(
                Effect(
                    str(team),
                    LABELS[field],
                    shown(field, before),
                    shown(field, then),
                    _warning(team, field, then),
                )
            )
    return effects


def _over(plan: Plan, characters: int) -> int:
    """Teams that go by this plan's characters and have used so many this month."""
    mine = Team.objects.filter(plan=plan, quota__characters_per_month=None)
    zones = mine.order_by().values_list("time_zone", flat=True).distinct()
    return UsageCounter.objects.filter(
        team__in=mine,
        user=None,
        api_key=None,
        period_start__in={limits.period(Team(time_zone=zone)).key for zone in zones},
        used__gte=characters - F("reserved") + F("granted"),
    ).count()


def _warning(target: Team | Membership, field: str, value: Any) -> str:
    """What hurts when `field` becomes `value`; empty when nothing does."""
    team = target if isinstance(target, Team) else target.team
    user_id = None if isinstance(target, Team) else target.user_id
    if value is None:
        value = getattr(team.plan, field) if isinstance(target, Team) else None
    if value is None:
        return ""
    if field == "characters_per_month":
        now = limits.period(team)
        counter = UsageCounter.objects.filter(
            team=team, user=user_id, api_key=None, period_start=now.key
        ).first()
        taken = counter.used + counter.reserved - counter.granted if counter else 0
        if taken >= value:
            return _("Used up already: what was promised stays, new requests are refused until %(day)s.") % {
                "day": now.end.date().isoformat()
            }
        return ""
    if value == 0 and field in _NEEDED:
        return _("Nothing can be spoken any more.")
    above = getattr(limits.of_team(team), field) if isinstance(target, Membership) else None
    if above is not None and value > above:
        return _("The team may have %(limit)s: that is what counts.") % {"limit": f"{above:,}"}
    taken = extensions.in_use(team.pk, user_id).get(field, 0)
    if taken > value:
        return _("%(taken)d are in use: they stay, new ones are refused until there is room.") % {
            "taken": taken
        }
    return ""


def shown(field: str, value: Any) -> str:
    """A limit in words."""
    if value is None:
        return _("as the level above says")
    if field == "plan":
        return str(Plan.objects.filter(pk=value).values_list("name", flat=True).first() or "")
    return f"{value:,}"
