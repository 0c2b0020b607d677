"""Exports: complete in every format, harmless to spreadsheets, and no larger in memory than a page of rows."""

from __future__ import annotations

import csv
import io
import itertools
import json
import tracemalloc
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import openpyxl
import pytest
from django.db import connection

from accounts import exports
from accounts.errors import InvalidInput
from accounts.models import LedgerEntry
from synthesis.services import listing, reports, rollup
from tests import factories
from tests.admin import generate, staff

COLUMNS = ("name", "n", "when")
ROWS = [
    ("Zoë & <Co>", 5, datetime(2026, 1, 2, 3, 4, tzinfo=UTC)),
    ('=HYPERLINK("http://evil")', Decimal("1.50"), date(2026, 1, 2)),
    ("你好, “quoted”\nline", None, UUID(int=1)),
    ("control \x07", 1.25, ""),
]


def sent(format: str, rows=ROWS, columns=COLUMNS) -> bytes:
    answer = exports.respond(rows=rows, columns=columns, format=format, name="file")
    return b"".join(answer.streaming_content)  # type: ignore[arg-type]


def test_csv():
    text = sent("csv").decode("utf-8-sig")
    head, *rows = csv.reader(io.StringIO(text))
    assert tuple(head) == COLUMNS
    assert rows[0] == ["Zoë & <Co>", "5", "2026-01-02T03:04:00+00:00"]
    assert rows[1][0].startswith("'=")  # no formula
    assert rows[2][0] == ROWS[2][0]


def test_json():
    rows = json.loads(sent("json"))
    assert rows[0] == {"name": "Zoë & <Co>", "n": 5, "when": "2026-01-02T03:04:00+00:00"}
    assert rows[1]["n"] == 1.5
    assert json.loads(sent("json", rows=[])) == []


def test_xlsx_is_read_by_others():
    book = openpyxl.load_workbook(io.BytesIO(sent("xlsx")))
    head, *rows = book.active.iter_rows(values_only=True)
    assert head == COLUMNS
    assert rows[0] == ("Zoë & <Co>", 5, "2026-01-02T03:04:00+00:00")
    assert rows[1][:2] == ('=HYPERLINK("http://evil")', 1.5)
    assert book.active["A3"].data_type == "s"  # a string, and no formula
    assert rows[2][0] == ROWS[2][0]
    empty = openpyxl.load_workbook(io.BytesIO(sent("xlsx", rows=[])))
    assert list(empty.active.iter_rows(values_only=True)) == [COLUMNS]


def test_more_rows_than_a_worksheet_holds_go_on_the_next(monkeypatch):
    monkeypatch.setattr(exports, "SHEET_ROWS", 4)
    book = openpyxl.load_workbook(io.BytesIO(sent("xlsx", rows=[(n, n, n) for n in range(7)])))
    assert [sheet.max_row for sheet in book] == [4, 4, 2]
    assert book["Sheet3"]["A2"].value == 6


def test_an_unknown_format_is_refused():
    with pytest.raises(InvalidInput):
        exports.respond(rows=[], columns=["a"], format="pdf", name="x")


@pytest.mark.parametrize("format", list(exports.FORMATS))
def test_memory_does_not_grow_with_the_rows(format):
    def peak(rows: int) -> int:
        made = ((f"name {n}", n, "x" * 50) for n in range(rows))
        tracemalloc.start()
        _type, write = exports.FORMATS[format]
        for _piece in write(COLUMNS, made):
            pass
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    assert peak(40_000) < peak(2_000) + 300_000


def test_the_first_bytes_leave_before_the_last_row_is_read():
    read = itertools.count()

    def rows():
        for n in range(100_000):
            next(read)
            yield (f"name {n}" * 5, n, "x")

    for format in exports.FORMATS:
        answer = exports.respond(rows=rows(), columns=COLUMNS, format=format, name="x")
        next(iter(answer.streaming_content))  # type: ignore[call-overload]
    assert next(read) < 100_000


@pytest.mark.django_db
def test_the_ledger_of_a_range_is_complete():
    first, last = generate.year(1_000, teams=2, ledger=True)
    low, high = first + timedelta(days=30), first + timedelta(days=59)
    listed = list(listing.ledger(low, high))
    start = datetime.combine(low, datetime.min.time(), UTC)
    expected = LedgerEntry.objects.filter(created_at__gte=start, created_at__lt=start + timedelta(days=30))
    assert len(listed) == expected.count() > 100
    assert [row[0] for row in listed] == sorted(row[0] for row in listed)
    team = listed[0][5]
    assert len(list(listing.ledger(low, high, team))) == expected.filter(team_id=team).count()
    assert len(list(listing.requests(first, last))) == 1_000


@pytest.mark.django_db
def test_a_report_stays_in_the_database_until_it_is_read():
    first, last = generate.year(400, teams=30, people=3)
    rollup.roll_up()
    rows = reports.stream(reports.Query(first, last, "user"), chunk=10)
    assert next(rows).characters
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors")
        assert cursor.fetchone()[0] == 1
    assert len(list(rows)) == 89
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_cursors")
        assert cursor.fetchone()[0] == 0


@pytest.mark.django_db
def test_memory_of_the_ledgers_export_does_not_grow_with_its_length(monkeypatch):
    monkeypatch.setattr(listing, "_PAGE", 200)
    first, last = generate.year(4_000, teams=2, ledger=True)

    def peak(until) -> int:
        tracemalloc.start()
        for _piece in exports.csv_pieces(listing.LEDGER_COLUMNS, listing.ledger(first, until)):
            pass
        _now, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(first)  # what is loaded once
    assert peak(last) < peak(first + timedelta(days=30)) + 300_000


@pytest.mark.django_db
def test_pages_do_not_lose_rows(monkeypatch):
    monkeypatch.setattr(listing, "_PAGE", 7)
    first, last = generate.year(100, teams=1)
    rows = list(listing.requests(first, last))
    assert len({row[-1] for row in rows}) == 100


@pytest.mark.django_db
@pytest.mark.parametrize("format", list(exports.FORMATS))
def test_from_the_panel(format):
    first, last = generate.year(300, teams=2, ledger=True)
    rollup.roll_up()
    client = staff.client_of(staff.person("Money", roles=["billing"]))
    for address, what in (
        ("usage/export", "user"),
        ("usage/ledger/export", "day"),
        ("usage/requests/export", "day"),
    ):
        answer = client.get(
            f"/admin/{address}/", {"first": first, "last": last, "by": what, "export": format}
        )
        assert answer.status_code == 200
        assert "attachment" in answer.headers["Content-Disposition"]
        content = b"".join(answer.streaming_content)
        assert len(content) > 500
        if address == "usage/export" and format == "json":
            exported = sum(row["characters"] for row in json.loads(content))
            assert exported == reports.report(reports.Query(first, last, "user")).total.characters
    assert client.get("/admin/usage/export/", {"export": "pdf"}).status_code == 400


@pytest.mark.django_db
def test_without_the_right_there_is_nothing_to_download():
    client = staff.client_of(staff.person("Helper", roles=["support"]))
    for address in ("usage", "usage/export", "usage/ledger/export"):
        assert client.get(f"/admin/{address}/", {"export": "csv"}).status_code == 403


@pytest.mark.django_db
def test_the_page_of_usage():
    first, last = generate.year(400, teams=3)
    rollup.roll_up()
    client = staff.client_of(staff.person("Money", roles=["billing"]))
    for by in reports.GROUPS:
        page = client.get("/admin/usage/", {"first": first, "last": last, "by": by})
        assert page.status_code == 200, by
        assert "<rect" in page.content.decode(), by
    assert client.get("/admin/usage/", {"first": last, "last": first}).status_code == 422
    assert client.get("/admin/usage/", {"team": "No such"}).status_code == 422
    assert client.get("/admin/usage/", {"first": "x"}).status_code == 422
    one = client.get("/admin/usage/", {"first": first, "last": last, "by": "user", "team": "team 0001"})
    assert one.status_code == 200
    drill = next(row.address for row in one.context["report"].rows)
    assert client.get(drill).status_code == 200
    alice = factories.owner("Alice")
    assert client.get("/admin/usage/", {"team": str(alice.actor.team.pk)}).context["report"].count == 0
