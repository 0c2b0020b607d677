"""Cursors: pages that stay right while rows are added."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from django.utils.dateparse import parse_datetime
from django.utils.translation import gettext as _
from rest_framework.exceptions import NotFound
from rest_framework.pagination import Cursor, CursorPagination
from rest_framework.request import Request

from accounts.errors import InvalidInput


class NewestFirst(CursorPagination):
    """By id, which is made of the time; `limit` 1 to 100, `next` and `previous` as addresses."""

    ordering = "-id"
    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 100

    def get_page_size(self, request: Request) -> int:
        """InvalidInput for a limit that is no whole number from 1 to 100."""
        given = request.query_params.get("limit", "")
        if not given:
            return self.page_size
        if not (given.isascii() and given.isdigit() and 1 <= int(given[:9]) <= self.max_page_size):
            raise InvalidInput(
                _("The limit is a whole number from 1 to %(max)d.") % {"max": self.max_page_size},
                code="limit_invalid",
                param="limit",
            )
        return int(given)

    def decode_cursor(self, request: Request) -> Cursor | None:
        """InvalidInput for a cursor that was not ours."""
        try:
            cursor = super().decode_cursor(request)
            if cursor is not None and cursor.position is not None:
                self.check_position(str(cursor.position))
        except (NotFound, ValueError):
            raise InvalidInput(
                _("This cursor is not one of ours. Start again without a cursor."),
                code="cursor_invalid",
                param="cursor",
            ) from None
        return cursor

    def check_position(self, position: str) -> None:
        """ValueError for what is no position."""
        UUID(position)


class LatestFirst(NewestFirst):
    """By the time of creation, where the index is on that."""

    ordering = "-created_at"

    def check_position(self, position: str) -> None:
        """ValueError for what is no time."""
        if parse_datetime(position) is None:
            raise ValueError


class InOrder(NewestFirst):
    """By a number of their own."""

    ordering = "number"

    def check_position(self, position: str) -> None:
        """ValueError for what is no number."""
        if not 0 <= int(position) < 2**31:
            raise ValueError


def page(
    request: Request,
    rows: Any,
    show: Any,
    *,
    size: int = 20,
    by_time: bool = False,
    order: type[NewestFirst] = NewestFirst,
) -> dict[str, Any]:
    """One page of the query `rows`: `{next, previous, results}`, each row as `show(row)` has it."""
    paginator = LatestFirst() if by_time else order()
    paginator.page_size = size
    results = [show(row) for row in cast(list[Any], paginator.paginate_queryset(rows, request))]
    return {"next": paginator.get_next_link(), "previous": paginator.get_previous_link(), "results": results}


def openai_page(request: Request, rows: Any, show: Any) -> dict[str, Any]:
    """OpenAI's kind of page: `limit` (20), and `after`, the id of the last object that the caller has seen."""
    paginator = NewestFirst()
    size = paginator.get_page_size(request)
    after = request.query_params.get("after", "")
    if after:
        try:
            rows = rows.filter(id__lt=UUID(after))
        except ValueError:
            raise InvalidInput(
                _("“after” is the id of the last object of the page before."),
                code="cursor_invalid",
                param="after",
            ) from None
    found = list(rows[: size + 1])
    results = [show(row) for row in found[:size]]
    return {
        "object": "list",
        "data": results,
        "first_id": results[0]["id"] if results else None,
        "last_id": results[-1]["id"] if results else None,
        "has_more": len(found) > size,
    }
