"""What a member of staff can do to an object (or to many at once): a form, what it would do, and a call of a service.

Nothing in the panel saves a model by itself. An operation's page asks, shows the effect where there is one to show,
and only then carries it out; a business error goes back onto the form.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from accounts.effects import Effect, Text
from accounts.errors import ChorusError
from accounts.operators import Operator
from accounts.panel.site import operator, render_page
from accounts.redis import client
from accounts.web.forms import Styled
from accounts.web.shell import add_error

if TYPE_CHECKING:
    from accounts.panel.modeladmin import PanelAdmin

#: One page of an operation handles at most so many objects.
MOST = 1_000

#: For how long a page that was sent is known (seconds): a browser may keep a form open for a day.
_REMEMBERED = 86_400


class RemembersStart:
    """A form that knows what its fields said when the page was opened, so that only what was touched is written.

    Without it a page that lay open puts back what somebody else has changed since.
    """

    #: Fields that are compared.
    tracked: Sequence[str] = ()

    @property
    def was(self) -> str:
        """For a hidden input: the values at the start, as JSON."""
        form: Any = self
        if form.is_bound and "was" in form.data:
            return str(form.data["was"])
        return json.dumps({name: form.fields[name].initial for name in self.tracked})

    def touched(self, values: dict[str, Any]) -> dict[str, Any]:
        """The tracked of `values` that differ from the start; all of them where the start is not known."""
        known: Any = None
        with contextlib.suppress(ValueError):
            known = json.loads(self.was) if "was" in getattr(self, "data", {}) else None
        if not isinstance(known, dict):
            return {name: values[name] for name in self.tracked}
        return {
            name: values[name]
            for name in self.tracked
            if name not in known
            or values[name] != ("" if known[name] is None and values[name] == "" else known[name])
        }


class OperationForm(RemembersStart, Styled, forms.Form):
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
    #: Whether it is done only while the preview still says what was shown; not where the numbers move by themselves.
    as_shown: bool = True
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
    if step is None and operation.preview and not form.fields:
        step, form = "ask", operation.form({}, objects=objects)  # there is nothing to ask: show it at once
    effects: Sequence[Effect] | None = None
    if step and form.is_valid():
        once = _Once(request, operation)
        try:
            if operation.preview and (step == "ask" or (operation.as_shown and "seen" in request.POST)):
                effects = operation.preview(who, objects, form.cleaned_data)
            if step == "ask":
                pass
            elif operation.answer:
                return operation.answer(request, objects, form.cleaned_data)
            elif not once.claim():
                messages.warning(request, _("This was sent twice and is done once."))
                return redirect(back)
            elif effects is not None and request.POST["seen"] != _seal(effects):
                once.release()
                messages.warning(
                    request,
                    _("Somebody else changed this in the meantime. Look again at what it would do."),
                )
            else:
                with once, transaction.atomic():
                    said = operation.run(who, objects, form.cleaned_data)
                messages.success(request, str(said))
                return redirect(back)
        except ChorusError as error:
            effects = None
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
            "seen": _seal(effects or ()),
            "once": uuid.uuid4().hex,
            "next_step": "do" if effects or not operation.preview else "ask",
            "action": action,
            "back": back,
            "opts": admin.opts,
        },
        status=422 if form.errors else 200,
    )


def _seal(effects: Sequence[Effect]) -> str:
    """What was shown, in a few characters. Warnings are left out: they tell of use, which goes on."""
    lines = [[str(one.subject), str(one.what), str(one.before), str(one.after)] for one in effects]
    return salted_hmac("chorus.panel.effects", json.dumps(lines)).hexdigest()[:24]


class _Once:
    """A page that was sent does its work once: a double click or the back button does not give a grant twice.

    Kept in Redis; without it, or for a page without a mark of its own, everything is done as often as it is sent.
    """

    def __init__(self, request: HttpRequest, operation: Operation) -> None:
        mark = request.POST.get("once", "")[:32]
        self._key = f"panel:once:{request.user.pk}:{operation.name}:{mark}" if mark.isalnum() else ""

    def claim(self) -> bool:
        """Whether it is ours to do."""
        if not self._key:
            return True
        try:
            return bool(client().set(self._key, 1, nx=True, ex=_REMEMBERED))
        except RedisError:
            return True

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if error is not None:
            self.release()

    def release(self) -> None:
        """Nothing was done: it may be sent again."""
        if self._key:
            with contextlib.suppress(RedisError):
                client().delete(self._key)
