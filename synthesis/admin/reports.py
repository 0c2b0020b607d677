"""The usage page: figures, chart, table, forecast, and every export."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import exports
from accounts.errors import ChorusError, InvalidInput
from accounts.models import Team
from accounts.panel import charts
from accounts.panel.site import Entry, Page, operator, panel, render_page
from accounts.services import teams
from accounts.web.forms import Styled, day_input
from accounts.web.shell import add_error
from synthesis.models import Dimension
from synthesis.services import forecast, listing, reports

#: Lines on the page; the exports have all of them.
SHOWN = 200


class QueryForm(Styled, forms.Form):
    """What the report is about."""

    first = forms.DateField(label=gettext_lazy("From"), widget=day_input())
    last = forms.DateField(label=gettext_lazy("To"), widget=day_input())
    by = forms.ChoiceField(label=gettext_lazy("Grouped by"), choices=list(reports.GROUPS.items()))
    team = forms.CharField(
        label=gettext_lazy("Team"),
        required=False,
        widget=forms.TextInput(attrs={"list": "report-teams", "autocomplete": "off"}),
    )
    subject = forms.CharField(required=False, widget=forms.HiddenInput)

    def clean_team(self) -> Team | None:
        """By name or id."""
        given = str(self.cleaned_data["team"]).strip()
        if not given:
            return None
        try:
            found = teams.named(given)
        except InvalidInput as error:
            raise forms.ValidationError(str(error)) from None
        if found is None:
            raise forms.ValidationError(_("There is no team called so."))
        return found

    def clean_subject(self) -> tuple[str, UUID] | None:
        """`user:<id>`, `key:<id>` or `voice:<id>`."""
        given = str(self.cleaned_data["subject"])
        kind, _colon, identifier = given.partition(":")
        if not given:
            return None
        try:
            return Dimension(kind).value, UUID(identifier)
        except ValueError:
            raise forms.ValidationError(_("There is no such person, key or voice.")) from None

    def query(self) -> reports.Query:
        """As the service takes it."""
        values = self.cleaned_data
        team = values["team"].pk if values["team"] else None
        return reports.Query(values["first"], values["last"], values["by"], team, values["subject"])


def _presets(today: date) -> list[tuple[Any, date, date]]:
    month = today.replace(day=1)
    before = (month - timedelta(days=1)).replace(day=1)
    return [
        (_("This month"), month, today),
        (_("Last month"), before, month - timedelta(days=1)),
        (_("30 days"), today - timedelta(days=29), today),
        (_("This year"), today.replace(month=1, day=1), today),
        (_("12 months"), today - timedelta(days=364), today),
    ]


def _form(request: HttpRequest, today: date) -> QueryForm:
    given = {name: request.GET.get(name, "") for name in QueryForm.base_fields}
    defaults = {"first": today.replace(day=1).isoformat(), "last": today.isoformat(), "by": "day"}
    return QueryForm({name: given[name] or defaults.get(name, "") for name in given})


def usage(request: HttpRequest) -> HttpResponse:
    """The page."""
    today = timezone.now().date()
    form = _form(request, today)
    context: dict[str, Any] = {
        "title": _("Usage"),
        "form": form,
        "teams": Team.objects.order_by("name").values_list("name", flat=True)[:500],
        "may_list": operator(request).can("accounts.view_ledgerentry"),
    }
    if form.is_valid():
        try:
            context |= _answer(form, today)
        except ChorusError as error:
            add_error(form, error)
    presets = _presets(today)
    ranges = [(first.isoformat(), last.isoformat()) for _label, first, last in presets]
    chosen = (form["first"].value(), form["last"].value())
    context["presets"] = [
        {
            "label": label,
            "address": _address(form, first=first, last=last),
            # Two of them are the same range now and then: the first one is marked.
            "current": chosen in ranges and ranges.index(chosen) == index,
        }
        for index, ((label, _first, _last), (first, last)) in enumerate(zip(presets, ranges, strict=True))
    ]
    context["exports"] = [(name.upper(), _address(form, export=name)) for name in exports.FORMATS]
    return render_page(request, "admin/usage.html", context, status=422 if form.errors else 200)


def _address(form: QueryForm, **changes: str) -> str:
    values = {name: form[name].value() or "" for name in QueryForm.base_fields} | changes
    page = reverse("admin:usage_export" if "export" in changes else "admin:usage")
    return f"{page}?{urlencode({name: value for name, value in values.items() if value})}"


def _answer(form: QueryForm, today: date) -> dict[str, Any]:
    query = form.query()
    report = reports.report(query, limit=SHOWN if query.by not in ("day", "month") else None)
    team = form.cleaned_data["team"]
    by_day = report if query.by in ("day", "month") else _by_time(query)
    for row in report.rows:
        row.address = _drill(form, query, row)  # type: ignore[attr-defined]
    return {
        "report": report,
        "chart": _chart(by_day),
        "is_by_time": query.by in ("day", "month"),
        "group": reports.GROUPS[query.by],
        "beyond": max(0, report.count - len(report.rows)),
        "subject_name": _subject_name(query),
        "forecast": forecast.this_month(team=team) if query.subject is None else None,
    }


def _by_time(query: reports.Query) -> reports.Report:
    long = (query.last - query.first).days > 92
    return reports.report(reports.Query(query.first, query.last, "month" if long else "day", query.team))


def _drill(form: QueryForm, query: reports.Query, row: reports.Row) -> str:
    """A closer look at one line."""
    if query.by == "team" and row.team_id:
        return _address(form, team=str(row.team_id), by="user")
    if query.by in ("user", "key", "voice") and row.subject_id:
        changes = {"by": "day", "subject": f"{query.by}:{row.subject_id}"}
        return _address(form, **changes, **({"team": str(row.team_id)} if row.team_id else {}))
    return ""


def _subject_name(query: reports.Query) -> str:
    if query.subject is None:
        return ""
    row = reports.Row(subject_id=query.subject[1])
    reports.name([row])
    return row.name or str(query.subject[1])


def _chart(report: reports.Report) -> charts.Chart | None:
    monthly = report.query.by == "month"
    values = {row.start: row for row in report.rows}
    points = []
    for start in _starts(report.query, monthly):
        row = values.get(start)
        characters, requests = (row.characters, row.requests) if row else (0, 0)
        day = date_format(start, "F Y" if monthly else "DATE_FORMAT")
        label = _("%(day)s: %(characters)s characters, %(requests)s requests") % {
            "day": day,
            "characters": f"{characters:,}",
            "requests": f"{requests:,}",
        }
        points.append(charts.Point(f"{start:%Y-%m}" if monthly else f"{start:%m-%d}", characters, label))
    return charts.bars(_("Characters"), points)


def _starts(query: reports.Query, monthly: bool) -> Iterator[date]:
    day = query.first.replace(day=1) if monthly else query.first
    while day <= query.last:
        yield day
        day += timedelta(days=calendar.monthrange(day.year, day.month)[1] if monthly else 1)


def usage_export(request: HttpRequest) -> HttpResponseBase:
    """The lines of the report, all of them."""
    form = _form(request, timezone.now().date())
    if not form.is_valid():
        return usage(request)
    query = form.query()
    query.check()
    name = f"chorus-usage-{query.by}-{query.first}-{query.last}"
    return exports.respond(
        rows=reports.export_rows(query),
        columns=reports.COLUMNS,
        format=request.GET.get("export") or "csv",
        name=name,
    )


def list_export(request: HttpRequest, what: str) -> HttpResponseBase:
    """Each entry of the ledger, or each request, of the range."""
    form = _form(request, timezone.now().date())
    if not form.is_valid():
        return usage(request)
    query = form.query()
    query.check()
    read, columns = {
        "ledger": (listing.ledger, listing.LEDGER_COLUMNS),
        "requests": (listing.requests, listing.REQUEST_COLUMNS),
    }[what]
    name = f"chorus-{what}-{query.first}-{query.last}"
    rows = read(query.first, query.last, query.team)
    return exports.respond(rows=rows, columns=columns, format=request.GET.get("export") or "csv", name=name)


panel().add_page(
    Page("usage/", "usage", usage, reports.PERMISSION),
    Entry("usage", "admin:usage", gettext_lazy("Usage"), "chart", reports.PERMISSION, 10),
)
panel().add_page(Page("usage/export/", "usage_export", usage_export, reports.PERMISSION))
panel().add_page(
    Page(
        "usage/ledger/export/",
        "ledger_export",
        lambda request: list_export(request, "ledger"),
        "accounts.view_ledgerentry",
    )
)
panel().add_page(
    Page(
        "usage/requests/export/",
        "requests_export",
        lambda request: list_export(request, "requests"),
        "synthesis.view_synthesisrequest",
    )
)
