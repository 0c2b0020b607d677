"""The main way through the pages of the whole service, as somebody who has just started it: sign in, speak, hear."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests import browsing
from tests.live.stack import Stack


@pytest.fixture
def browser() -> Iterator[Browser]:
    """Ended with its test: others here start event loops of their own."""
    yield from browsing.chromium()


def test_sign_in_speak_and_hear(hibari: Stack, browser: Browser) -> None:
    """Through Caddy, with the event stream and a real worker; what is heard is as long as speech would be."""
    pages = browsing.Pages(browser, hibari.url, streamed=True)
    page = pages.open("/")
    page.get_by_label("E-mail address").fill(hibari.ready["email"])
    page.locator("input[name=password]").fill(hibari.ready["password"])
    page.get_by_role("button", name="Sign in").click()
    page.goto("/account/")
    page.locator("[name=notify_done]").check()
    page.locator("form", has=page.locator("[name=notify_done]")).get_by_role("button").click()
    expect(page.locator("#toasts")).to_contain_text("Saved.")
    with page.expect_response("**/events/") as stream:
        page.goto("/")
    assert stream.value.headers["content-type"].startswith("text/event-stream")
    page.evaluate(browsing.ELSEWHERE)
    page.locator("textarea[name=text]").fill("The harbour was quiet that morning. Only the gulls were awake.")
    page.get_by_role("button", name="Speak", exact=True).click()
    card = page.locator("article.request").first
    expect(card).to_contain_text("Ready", timeout=60_000)
    length = float(card.locator("[data-player]").get_attribute("data-duration") or 0)
    assert 2 < length < 12
    page.wait_for_function("() => window.notices.length")
    assert page.evaluate("window.notices")[0].endswith(": Ready to listen")
    card.locator(".downloads summary").click()
    with page.expect_download() as download:
        card.get_by_role("link", name="MP3").click()
    assert download.value.path().stat().st_size > 10_000
    pages.close()
