"""A real browser in the panel."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest
from django.conf import settings
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from accounts.models import User
from launcher.checks import BROWSERS
from tests.admin import staff
from tests.web.browser.conftest import ARGUMENTS, PATIENCE


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, for this folder only (as in tests/web/browser)."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip("there is no chromium (as root: apt-get install chromium)")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        running = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def panel(browser, live_server) -> Iterator[Callable[..., Page]]:
    """`panel("/admin/", user, width=360, theme="dark", language="zh")`; fails a test whose pages complain."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def opened(
        path: str,
        user: User | None = None,
        *,
        width: int = 1280,
        theme: str = "light",
        language: str = "en",
    ) -> Page:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 900},
            locale="zh-CN" if language == "zh" else "en-US",
            color_scheme=theme,
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        if user is not None:
            session = staff.client_of(user).cookies[settings.SESSION_COOKIE_NAME].value
            context.add_cookies(
                [{"name": settings.SESSION_COOKIE_NAME, "value": session, "url": live_server.url}]
            )
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _note(complaints: list[str], message) -> None:
    # A 4xx of ours is noted by the browser and by htmx as well; the tests look at what the page says about it.
    expected = ("Failed to load resource", "Response Status Error Code 4")
    if message.type in {"error", "warning"} and not message.text.startswith(expected):
        complaints.append(f"{message.text} ({message.location.get('url', '')})")
