"""The main way through the pages of the whole service, as somebody who has just started it: sign in, speak, hear."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import expect, sync_playwright

from launcher.checks import BROWSERS
from tests.live.stack import Stack


def test_sign_in_speak_and_hear(hibari: Stack) -> None:
    """Through Caddy, with the event stream and a real worker; what is heard is as long as speech would be."""
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip("there is no chromium (as root: apt-get install chromium)")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        page = browser.new_page(base_url=hibari.url, locale="en-US")
        complaints: list[str] = []
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        page.goto("/")
        page.get_by_label("E-mail address").fill(hibari.ready["email"])
        page.locator("input[name=password]").fill(hibari.ready["password"])
        page.get_by_role("button", name="Sign in").click()
        with page.expect_response("**/events/") as stream:
            page.reload()
        assert stream.value.headers["content-type"].startswith("text/event-stream")
        page.locator("textarea[name=text]").fill(
            "The harbour was quiet that morning. Only the gulls were awake."
        )
        page.get_by_role("button", name="Speak", exact=True).click()
        card = page.locator("article.request").first
        expect(card).to_contain_text("Ready", timeout=60_000)
        length = float(card.locator("[data-player]").get_attribute("data-duration") or 0)
        assert 2 < length < 12
        card.locator(".downloads summary").click()
        with page.expect_download() as download:
            card.get_by_role("link", name="MP3").click()
        assert download.value.path().stat().st_size > 10_000
        assert complaints == []
        browser.close()
