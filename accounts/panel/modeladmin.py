"""Lists and object pages of the panel: read-only, searchable, with operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import (
    display_for_field,
    display_for_value,
    label_for_field,
    lookup_field,
    unquote,
)
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.db import connection, models
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import Promise, cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.errors import InvalidInput
from accounts.models import Team, User
from accounts.panel.operations import MOST, Operation, run_page
from accounts.panel.site import operator, render_page

Text = str | Promise


#: What columns and facts are called whose fields have no words of their own.
WORDS: dict[str, Text] = {
    "id": "ID",
    "api_key": gettext_lazy("API key"),
    "api_key_id": gettext_lazy("API key"),
    "attempt": gettext_lazy("attempts"),
    "audio_seconds": gettext_lazy("audio seconds"),
    "cloning": gettext_lazy("cloning"),
    "created_by": gettext_lazy("made by"),
    "decided_by": gettext_lazy("decided by"),
    "engine": gettext_lazy("engine"),
    "engine_seconds": gettext_lazy("engine seconds"),
    "error_code": gettext_lazy("error"),
    "error_message": gettext_lazy("what the person is told"),
    "failures": gettext_lazy("failed attempts"),
    "grant_id": gettext_lazy("grant"),
    "lease_until": gettext_lazy("given up at"),
    "not_before": gettext_lazy("not before"),
    "pid": "PID",
    "request_id": gettext_lazy("request"),
    "source": gettext_lazy("sent by"),
    "user": gettext_lazy("person"),
    "voice": gettext_lazy("voice"),
    "webhook_secret": gettext_lazy("secret of the webhook"),
    "worker": gettext_lazy("worker"),
}


def label_of(name: Any, model: type[models.Model], model_admin: Any) -> str:
    """What a column, fact or filter is called."""
    if isinstance(name, str) and name in WORDS and not hasattr(model_admin, name):
        return str(WORDS[name])
    return str(label_for_field(name, model, model_admin))


def short_time(value: datetime | None, *, seconds: bool = False) -> str:
    """A point in time in the reader's zone, the same in every language; a dash for none."""
    if value is None:
        return "—"
    return f"{timezone.localtime(value):%Y-%m-%d %H:%M{':%S' if seconds else ''}}"


class SetFilter(admin.SimpleListFilter):
    """Whether a field that holds a time (or nothing) is set; made by `is_set`."""

    field = ""
    yes: Text = ""
    no: Text = ""

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Two words."""
        return [("1", self.yes), ("0", self.no)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Those with, or those without."""
        if self.value() not in {"0", "1"}:
            return queryset
        return queryset.filter(**{f"{self.field}__isnull": self.value() == "0"})


def is_set(field: str, title: Text, yes: Text, no: Text) -> type[SetFilter]:
    """A filter by whether `field` is set, in words."""
    values = {"field": field, "parameter_name": field, "title": title, "yes": yes, "no": no}
    return type(f"Is{field.title()}", (SetFilter,), values)


class BoundedPaginator(Paginator):
    """Counts up to a bound: counting ten million rows for a page number would take seconds.

    A whole table's number of rows comes from the statistics that Postgres keeps.
    """

    BOUND = 10_000

    @cached_property
    def count(self) -> int:
        """The number of rows; an estimate for a large unfiltered table, at most BOUND for a large filtered one."""
        rows: QuerySet[Any] = self.object_list  # type: ignore[assignment]
        counted = rows.order_by()[: self.BOUND].count()
        if counted < self.BOUND or rows.query.where:
            return counted
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT reltuples::bigint FROM pg_class WHERE oid = %s::regclass", [rows.model._meta.db_table]
            )
            return max(self.BOUND, cursor.fetchone()[0])


@dataclass(frozen=True)
class Table:
    """A related list on an object's page. Cells are text or (text, url)."""

    title: Text
    columns: Sequence[Text]
    rows: Sequence[Sequence[Any]]
    empty: Text = ""
    more: str = ""

    @property
    def labelled(self) -> list[list[tuple[Text, Any]]]:
        """Each row's cells with their column: on a phone a row is a small card."""
        return [list(zip(self.columns, row, strict=True)) for row in self.rows]


class PanelAdmin(admin.ModelAdmin):
    """A table of the service. Writing happens through `operations` only."""

    #: Fields or methods of the object's page.
    facts: Sequence[str] = ()
    operations: Sequence[Operation] = ()
    #: Columns that hold ids: a UUID in the search box is looked up in them.
    id_columns: Sequence[str] = ("id",)
    #: Columns with a team's or a person's id: words in the search box find the rows of teams and people with them.
    team_column = ""
    user_column = ""

    paginator = BoundedPaginator
    show_full_result_count = False
    list_per_page = 50
    list_max_show_all = 0
    show_facets = admin.ShowFacets.NEVER
    view_on_site = False

    # --- Who may what ------------------------------------------------------------------------------------------

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is added by a bare form."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Nothing is deleted by a bare form."""
        return False

    def operations_for(self, request: HttpRequest, obj: Any) -> list[Operation]:
        """Those that this member of staff may do to `obj` now."""
        who = operator(request)
        return [
            operation
            for operation in self.operations
            if not operation.alone and who.can(operation.permission) and operation.applies(obj)
        ]

    # --- The list ----------------------------------------------------------------------------------------------

    @property
    def media(self) -> forms.Media:
        """Only what ticks rows; no jQuery."""
        return forms.Media(js=["admin/js/core.js", "admin/js/actions.js"])

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """One action for each operation that works on many."""
        who = operator(request)
        return {
            operation.name: (_make_action(operation), operation.name, operation.label)
            for operation in self.operations
            if operation.bulk and who.can(operation.permission)
        }

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        """The first column leads to the object."""
        return [list_display[0]]

    def get_search_fields(self, request: HttpRequest) -> Any:
        """Any list with something to look up has a search box."""
        return self.search_fields or (self.id_columns if self.id_columns else ())

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """By id when it is one, else by words, also those of the team's or the person's name."""
        term = search_term.strip()
        if not term:
            return queryset, False
        try:
            identifier = UUID(term)
        except ValueError:
            pass
        else:
            where = Q()
            for column in self.id_columns:
                where |= Q(**{column: identifier})
            return queryset.filter(where), False
        found = self._beginning(term)
        if not found and not self.search_fields and not self.team_column and not self.user_column:
            return queryset.none(), False
        for column in self.search_fields:
            found |= Q(**{f"{column}__icontains": term})
        if self.team_column:
            found |= Q(
                **{
                    f"{self.team_column}__in": list(
                        Team.objects.filter(name__icontains=term).values_list("id", flat=True)[:100]
                    )
                }
            )
        if self.user_column:
            people = User.objects.filter(Q(email__icontains=term) | Q(name__icontains=term))
            found |= Q(**{f"{self.user_column}__in": list(people.values_list("id", flat=True)[:100])})
        return queryset.filter(found), False

    def _beginning(self, term: str) -> Q:
        """Rows whose id begins like this: pages show “01a22e01-2565…”."""
        found = Q()
        digits = term.rstrip("…").replace("-", "")
        if re.fullmatch("[0-9a-f]{8,31}", digits):
            low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
            for column in self.id_columns:
                found |= Q(**{f"{column}__range": (low, high)})
        return found

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        """Django's list, its rows prepared together."""
        changelist = super().get_changelist_instance(request)
        changelist.result_list = list(changelist.result_list)
        self.prepare(changelist.result_list)
        for spec in changelist.filter_specs:
            if (path := getattr(spec, "field_path", "")) in WORDS:
                spec.title = str(WORDS[path])
        return changelist

    def prepare(self, rows: list[Any]) -> None:
        """Look up for all rows of a page at once what each of them shows."""

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Django's list, with the operations that need no object as buttons."""
        who = operator(request)
        alone = [one for one in self.operations if one.alone and who.can(one.permission)]
        title = self.opts.verbose_name_plural
        return super().changelist_view(
            request, {"title": title, "alone": alone, "intro": self.intro, **(extra_context or {})}
        )

    #: A sentence below the title of the list.
    intro: Text = ""

    # --- The page of an object ---------------------------------------------------------------------------------

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Facts, related tables, operations."""
        obj = self._find(request, object_id)
        return render_page(
            request,
            "admin/object.html",
            {
                "title": str(obj),
                "obj": obj,
                "opts": self.opts,
                "facts": list(self._facts(obj)),
                "tables": self.tables(request, obj),
                "extra": self.context(request, obj),
                "extra_template": self.extra_template,
                "operations": self.operations_for(request, obj),
                "badges": self.badges(obj),
                "list_url": self.url("changelist"),
                **(extra_context or {}),
            },
        )

    #: A template that is shown between the facts and the tables, with `extra`.
    extra_template = ""

    def context(self, request: HttpRequest, obj: Any) -> dict[str, Any]:
        """What `extra_template` needs."""
        return {}

    def tables(self, request: HttpRequest, obj: Any) -> list[Table]:
        """Related lists of an object's page."""
        return []

    def badges(self, obj: Any) -> list[tuple[Text, str]]:
        """(word, kind) beside the title; kinds: good, warn, bad, accent or empty."""
        return []

    def _find(self, request: HttpRequest, object_id: str) -> Any:
        if not self.has_view_permission(request):
            operator(request).require(f"{self.opts.app_label}.view_{self.opts.model_name}")
        obj = self.get_object(request, unquote(object_id))
        if obj is None:
            raise Http404
        return obj

    def _facts(self, obj: Any) -> Iterable[tuple[Any, Any]]:
        for name in self.facts:
            field, attribute, value = lookup_field(name, obj, self)
            if isinstance(value, datetime):
                shown = short_time(value, seconds=True)
            elif field is None or isinstance(field, models.ForeignKey):
                shown = display_for_value(value, "—", boolean=bool(getattr(attribute, "boolean", False)))
            else:
                shown = display_for_field(value, field, "—")
            yield label_of(name, self.model, self), shown

    def url(self, name: str, *args: Any) -> str:
        """The address of one of this admin's views."""
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{name}", args=args)

    # --- Operations --------------------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        """The list, the object and its operations; no form that saves by itself."""
        info = (self.opts.app_label, self.opts.model_name)
        wrap = self.admin_site.admin_view
        return [
            path("", wrap(self.changelist_view), name="{}_{}_changelist".format(*info)),
            path("do/<slug:name>/", wrap(self.many_view), name="{}_{}_many".format(*info)),
            path("<path:object_id>/do/<slug:name>/", wrap(self.one_view), name="{}_{}_do".format(*info)),
            path("<path:object_id>/", wrap(self.change_view), name="{}_{}_change".format(*info)),
        ]

    def one_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponse:
        """An operation on one object."""
        obj = self._find(request, object_id)
        operation = self._operation(name)
        if operation.alone:
            raise Http404
        here, back = self.url("do", object_id, name), self.url("change", object_id)
        if not operation.applies(obj):
            operator(request).require(operation.permission)
            messages.warning(
                request,
                _("“%(what)s” is not possible any more: it was done already, or something else came first.")
                % {"what": operation.label},
            )
            return redirect(back)
        return run_page(request, self, operation, [obj], action=here, back=back)

    def many_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """An operation on several objects, or on none."""
        if not self.has_view_permission(request):
            operator(request).require(f"{self.opts.app_label}.view_{self.opts.model_name}")
        operation = self._operation(name)
        here, back = self.url("many", name), self.url("changelist")
        if operation.alone:
            return run_page(request, self, operation, [], action=here, back=back)
        if not operation.bulk:
            raise Http404
        ids = self._ids(request.POST.getlist("object")[:MOST])
        objects = [obj for obj in self.get_queryset(request).filter(pk__in=ids) if operation.applies(obj)]
        if not objects:
            operator(request).require(operation.permission)
            messages.warning(request, _("None of the chosen rows can be treated like this."))
            return redirect(back)
        return run_page(request, self, operation, objects, action=here, back=back)

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *more: Any, **named: Any
    ) -> HttpResponse | None:
        """Django's, for chosen rows that can exist: an id that is none would be an error of the database."""
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)
        if len(self._ids(chosen)) != len(chosen):
            raise InvalidInput(_("That is no row of this list."), code="row_unknown")
        return super().response_action(request, queryset, *more, **named)

    def _ids(self, given: Sequence[str]) -> list[str]:
        key = self.opts.pk
        found = []
        for one in given:
            try:
                key.to_python(one)
            except ValidationError:
                continue
            found.append(one)
        return found

    def _operation(self, name: str) -> Operation:
        for operation in self.operations:
            if operation.name == name:
                return operation
        raise Http404


def _make_action(operation: Operation) -> Callable[..., Any]:
    def action(model_admin: PanelAdmin, request: HttpRequest, queryset: QuerySet[Any]) -> HttpResponse | None:
        objects = [obj for obj in queryset[:MOST] if operation.applies(obj)]
        if not objects:
            model_admin.message_user(
                request, _("None of the chosen rows can be treated like this."), "warning"
            )
            return None
        here, back = model_admin.url("many", operation.name), model_admin.url("changelist")
        return run_page(request, model_admin, operation, objects, action=here, back=back)

    action.__name__ = operation.name
    return action
