"""Webhooks of a team: make, test, switch off and on, delete, and what became of each delivery."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from accounts import permissions
from accounts.errors import ChorusError
from accounts.services import rates
from accounts.web.forms import Styled
from accounts.web.shell import PageRequest, add_error, show, team_page
from synthesis.models import Delivery
from synthesis.services import deliveries
from synthesis.services import webhooks as service

PAGE = 30
_LABELS = {
    "synthesis.succeeded": gettext_lazy("A request is ready"),
    "synthesis.failed": gettext_lazy("A request failed"),
    "synthesis.canceled": gettext_lazy("A request was cancelled"),
    "batch.completed": gettext_lazy("A batch has ended"),
}


class WebhookForm(Styled, forms.Form):
    """Where to post, and when."""

    url = forms.URLField(
        label=gettext_lazy("Address"),
        max_length=2000,
        assume_scheme="https",
        widget=forms.URLInput(
            attrs={"autocomplete": "off", "placeholder": "https://example.com/hooks/chorus"}
        ),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Tell it when"),
        choices=[(event, _LABELS.get(event, event)) for event in deliveries.EVENTS],
        initial=list(deliveries.EVENTS),
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": gettext_lazy("Choose at least one.")},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@team_page
@never_cache
def webhooks(request: PageRequest) -> HttpResponse:
    """The list, and a new one, whose secret this one answer shows."""
    request.actor.require(permissions.WEBHOOKS_WRITE)
    form = WebhookForm(request.POST if request.method == "POST" else None)
    made = None
    if form.is_valid():
        try:
            made = service.create(actor=request.actor, **form.cleaned_data)
        except ChorusError as error:
            add_error(form, error)
        else:
            form = WebhookForm()
    context = {"tab": "webhooks", "form": form, "made": made, "webhooks": service.visible(request.actor)}
    return show(request, "team/webhooks.html", context, section="team", status=422 if form.errors else 200)


@require_safe
@team_page
def log(request: PageRequest, webhook_id: UUID) -> HttpResponse:
    """One webhook and its deliveries."""
    webhook = service.find(request.actor, webhook_id)
    page = Paginator(webhook.deliveries.order_by("-id"), PAGE).get_page(request.GET.get("page"))
    context = {"tab": "webhooks", "webhook": webhook, "page": page, "deliveries": page.object_list}
    return show(request, "team/webhook.html", context, section="team")


@require_POST
@team_page
def test(request: PageRequest, webhook_id: UUID) -> HttpResponse:
    """Post a ping and say what came back."""
    rates.hit(request.actor)
    _say(request, service.test(actor=request.actor, webhook_id=webhook_id))
    return redirect("webhook", webhook_id)


@require_POST
@team_page
def redeliver(request: PageRequest, webhook_id: UUID, delivery_id: UUID) -> HttpResponse:
    """Deliver an event once more."""
    rates.hit(request.actor)
    service.redeliver(actor=request.actor, webhook_id=webhook_id, delivery_id=delivery_id)
    messages.success(request, _("It is delivered once more in a moment."))
    return redirect("webhook", webhook_id)


@require_POST
@team_page
def switch(request: PageRequest, webhook_id: UUID) -> HttpResponse:
    """Off, or on again."""
    wanted = request.POST.get("enabled") == "1"
    service.update(actor=request.actor, webhook_id=webhook_id, enabled=wanted)
    return redirect("webhook", webhook_id)


@require_POST
@team_page
def delete(request: PageRequest, webhook_id: UUID) -> HttpResponse:
    """Remove it."""
    service.delete(actor=request.actor, webhook_id=webhook_id)
    messages.success(request, _("The webhook is deleted."))
    return redirect("webhooks")


def _say(request: PageRequest, delivery: Delivery) -> None:
    values: dict[str, Any] = {"status": delivery.response_status, "error": delivery.error}
    if delivery.state == Delivery.State.DELIVERED:
        messages.success(request, _("It arrived: the answer was %(status)s.") % values)
    elif delivery.response_status:
        messages.error(request, _("It was refused: the answer was %(status)s.") % values)
    else:
        messages.error(request, _("It did not arrive: %(error)s") % values)
