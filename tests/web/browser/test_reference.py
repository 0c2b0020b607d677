"""The reference of the API in both languages and themes, wide and narrow: a route opens, by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.browser.test_pages import LOOKS, check

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("language", "width", "theme"), LOOKS)
def test_the_reference(open_page, language, width, theme):
    page = open_page("/docs/api", language=language, width=width, theme=theme)
    expect(page.locator("h1")).to_have_text("全部路由" if language == "zh" else "Every route")
    route = page.locator("#submit_a_text")
    route.locator("> summary").click()
    expect(route.locator("pre")).to_contain_text("curl $CHORUS_URL/v1/syntheses")
    other = page.locator("#list_voices > summary")
    other.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#list_voices")).to_have_attribute("open", "")
    route.locator(".api-answers summary").first.click()
    check(page)
