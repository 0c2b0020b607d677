"""What an operator changes without a deployment."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import ChorusError
from accounts.models import Plan
from accounts.panel.operations import RemembersStart
from accounts.panel.site import Entry, Page, operator, panel, render_page
from accounts.services import operator_settings
from accounts.web.forms import Styled
from accounts.web.shell import add_error

VIEW = "accounts.view_operatorsetting"


class SettingsForm(RemembersStart, Styled, forms.Form):
    """A field for each setting, by its kind. Only what was touched is written."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for key, setting in operator_settings.SETTINGS.items():
            self.fields[key] = _field(setting)
        self.tracked = tuple(self.fields)


def _field(setting: operator_settings.Setting) -> forms.Field:
    value = operator_settings.get(setting.key)
    common: dict[str, Any] = {"label": setting.label, "help_text": setting.help, "required": False}
    styled = {"class": "input"}
    match setting.kind:
        case "switch":
            return forms.BooleanField(initial=value, **common)
        case "choice":
            return forms.ChoiceField(
                choices=setting.choices, initial=value, widget=forms.Select(attrs=styled), **common
            )
        case "plan":
            plans = [(str(plan.pk), plan.name) for plan in Plan.objects.order_by("name")]
            return forms.ChoiceField(
                choices=[("", _("The smallest")), *plans],
                initial=value,
                widget=forms.Select(attrs=styled),
                **common,
            )
        case "words":
            return forms.CharField(initial=", ".join(value), widget=forms.TextInput(attrs=styled), **common)
    long = setting.most > 200
    widget = forms.Textarea(attrs=styled | {"rows": 3}) if long else forms.TextInput(attrs=styled)
    return forms.CharField(initial=value, max_length=setting.most, widget=widget, **common)


def settings_page(request: HttpRequest) -> HttpResponse:
    """Show and change."""
    operator_settings.forget()
    if request.method == "POST":
        operator(request).require(operator_settings.PERMISSION)
    form = SettingsForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            with transaction.atomic():
                for key, value in form.touched(form.cleaned_data).items():
                    operator_settings.change(by=operator(request), key=key, value=value)
        except ChorusError as error:
            operator_settings.forget()
            add_error(form, error)
        else:
            messages.success(request, _("Saved."))
            return redirect("admin:settings")
    return render_page(
        request,
        "admin/settings.html",
        {
            "title": _("Settings"),
            "form": form,
            "may_change": operator(request).can(operator_settings.PERMISSION),
        },
        status=422 if form.errors else 200,
    )


panel().add_page(
    Page("settings/", "settings", settings_page, VIEW),
    Entry("system", "admin:settings", gettext_lazy("Settings"), "gear", VIEW, 20),
)
