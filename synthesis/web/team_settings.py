"""Settings of a team, handing it over, leaving it."""

from __future__ import annotations

import zoneinfo
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_http_methods, require_POST

from accounts import permissions
from accounts.errors import ChorusError, NotFound
from accounts.models import Membership
from accounts.services import team_settings as service
from accounts.services import teams
from accounts.web.forms import Styled, offer
from accounts.web.shell import SESSION_TEAM, PageRequest, add_error, show, team_page
from synthesis.models import Voice
from synthesis.web.cards import voice_name


class SettingsForm(Styled, forms.Form):
    """Name, clock, retention, voice."""

    name = forms.CharField(label=gettext_lazy("Name"), max_length=100)
    time_zone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        help_text=gettext_lazy("Months begin, and times are told, by this clock."),
    )
    retention_days = forms.IntegerField(
        label=gettext_lazy("Days that recordings are kept"), required=False, min_value=1
    )
    default_voice = forms.ChoiceField(
        label=gettext_lazy("Voice that the studio begins with"),
        required=False,
        help_text=gettext_lazy("For who has not spoken yet; everybody else finds their last voice again."),
    )

    def __init__(self, *args: Any, request: PageRequest, **kwargs: Any) -> None:
        team = request.actor.team
        kwargs["initial"] = {
            "name": team.name,
            "time_zone": team.time_zone,
            "retention_days": team.retention_days,
            "default_voice": str(team.default_voice or ""),
        }
        super().__init__(*args, **kwargs)
        offer(self, "time_zone", [(name, name) for name in sorted(zoneinfo.available_timezones())])
        most = team.plan.retention_days
        self.fields["retention_days"].help_text = _(
            "Your plan keeps them for %(days)d days. Empty: as the plan says. Holds for what is made from now on."
        ) % {"days": most}
        self.fields["retention_days"].widget.attrs |= {"max": most, "placeholder": str(most)}
        voices = sorted(
            ((str(one.id), voice_name(one)) for one in Voice.objects.usable(request.actor)),
            key=lambda voice: voice[1].lower(),
        )
        offer(self, "default_voice", [("", _("None in particular")), *voices])


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
def settings(request: PageRequest) -> HttpResponse:
    """What the team decides about itself."""
    may_change = request.actor.can(permissions.TEAM_WRITE)
    form = SettingsForm(request.POST if request.method == "POST" else None, request=request)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        chosen = values["default_voice"]
        try:
            service.update(
                actor=request.actor,
                name=values["name"],
                time_zone=values["time_zone"],
                retention_days=values["retention_days"],
                default_voice=UUID(chosen) if chosen else None,
            )
        except ChorusError as error:
            if error.param not in form.fields:
                raise
            add_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("team_settings")
    others = Membership.objects.filter(team=request.actor.team).exclude(id=request.actor.membership.id)
    context = {
        "tab": "settings",
        "form": form,
        "may_change": may_change,
        "others": others.select_related("user").order_by("created_at"),
    }
    return show(request, "team/settings.html", context, section="team", status=422 if form.errors else 200)


@require_POST
@team_page
def hand_over(request: PageRequest) -> HttpResponse:
    """Make somebody else the owner."""
    try:
        wanted = UUID(request.POST.get("member", ""))
    except ValueError:
        raise NotFound from None
    service.hand_over(actor=request.actor, membership_id=wanted)
    messages.success(request, _("The team has a new owner; you are an admin now."))
    return redirect("team_settings")


@require_POST
@team_page
def leave(request: PageRequest) -> HttpResponse:
    """Leave the team."""
    teams.remove(actor=request.actor, membership_id=request.actor.membership.id)
    request.session.pop(SESSION_TEAM, None)
    messages.success(request, _("You have left the team “%(team)s”.") % {"team": request.actor.team.name})
    return redirect("studio")
