"""A real browser in the panel."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Page

from accounts.models import User
from tests import browsing
from tests.admin import staff

browser = pytest.fixture(scope="package")(browsing.chromium)


@pytest.fixture
def panel(browser, live_server) -> Iterator[Callable[..., Page]]:
    """`panel("/admin/", user, width=360, theme="dark", language="zh")`; fails a test whose pages complain."""
    pages = browsing.Pages(browser, live_server.url)

    def opened(path: str, user: User | None = None, **look) -> Page:
        return pages.open(path, staff.client_of(user) if user else None, **look)

    yield opened
    pages.close()
