"""What a member of staff can do to an object (or to many at once): a form, what it would do, and a call of a service.

Nothing in the panel saves a model by itself. An operation's page asks, shows the effect where there is one to show,
and only then carries it out; a business error goes back onto the form.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts.effects import Effect, Text
from accounts.errors import ChorusError
from accounts.operators import Operator
from accounts.panel.site import operator, render_page
from accounts.web.forms import Styled
from accounts.web.shell import add_error

if TYPE_CHECKING:
    from accounts.panel.modeladmin import PanelAdmin

#: One page of an operation handles at most so many objects.
MOST = 1_000


class OperationForm(Styled, forms.Form):
    """Base of the forms of operations; `objects` are what it is about."""

    def __init__(self, *args: Any, objects: Sequence[Any], **kwargs: Any) -> None:
        self.objects = objects
        super().__init__(*args, **kwargs)


class ReasonForm(OperationForm):
    """Why; for the audit log."""

    reason = forms.CharField(
        max_length=200, required=False, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["reason"].label = _("Reason")
        self.fields["reason"].help_text = _("Kept in the audit log.")


@dataclass(frozen=True)
class Operation:
    """`run(operator, objects, values)` does it and returns what to say; it runs in one transaction."""

    name: str
    label: Text
    permission: str
    run: Callable[[Operator, Sequence[Any], dict[str, Any]], Text] = field(
        default=lambda by, objects, values: ""
    )
    #: Instead of `run`, where the answer is no page of the panel.
    answer: Callable[[HttpRequest, Sequence[Any], dict[str, Any]], HttpResponse] | None = None
    explain: Text = ""
    form: type[OperationForm] = ReasonForm
    #: What it would do; shown before it is done.
    preview: Callable[[Operator, Sequence[Any], dict[str, Any]], Sequence[Effect]] | None = None
    #: Whether it makes sense for an object.
    applies: Callable[[Any], bool] = field(default=lambda obj: True)
    bulk: bool = False
    danger: bool = False
    icon: str = "edit"
    #: It needs no object (making a new one).
    alone: bool = False


def run_page(
    request: HttpRequest,
    admin: PanelAdmin,
    operation: Operation,
    objects: Sequence[Any],
    *,
    action: str,
    back: str,
) -> HttpResponse:
    """The page of an operation on `objects`, and carrying it out; it posts to `action` and ends at `back`."""
    who = operator(request)
    who.require(operation.permission)
    # The list of an action posts here as well: only our own form says which step it is.
    step = request.POST.get("step") if request.method == "POST" else None
    form = operation.form(request.POST if step else None, objects=objects)
    effects: Sequence[Effect] | None = None
    if step and form.is_valid():
        try:
            if operation.preview and step == "ask":
                effects = operation.preview(who, objects, form.cleaned_data)
            elif operation.answer:
                return operation.answer(request, objects, form.cleaned_data)
            else:
                with transaction.atomic():
                    said = operation.run(who, objects, form.cleaned_data)
                messages.success(request, str(said))
                return redirect(back)
        except ChorusError as error:
            add_error(form, error)
    return render_page(
        request,
        "admin/operation.html",
        {
            "title": operation.label,
            "operation": operation,
            "objects": objects,
            "single": objects[0] if len(objects) == 1 else None,
            "form": form,
            "effects": effects,
            "next_step": "do" if effects is not None or not operation.preview else "ask",
            "action": action,
            "back": back,
            "opts": admin.opts,
        },
        status=422 if form.errors else 200,
    )
