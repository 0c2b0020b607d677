"""The history: found again by words, state and person, marked, titled, taken away as one file, deleted."""

from __future__ import annotations

import zipfile

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.browsing import LANGUAGES, check, words
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_found_kept_and_taken_away(open_page, alice, hibari, language):
    say = words(language)
    bob = factories.colleague(alice, "Bob")
    spoken(alice)
    spoken(
        alice, text="The baker was up early, long before anybody else. His oven was warm by then, as it is."
    )
    factories.submit(bob, "One that waits.")
    page = open_page("/history/", alice, language=language)
    cards = page.locator("article.request")
    expect(cards).to_have_count(3)
    search = page.get_by_label(say("Search in texts and titles"))
    search.fill("no such words")
    expect(page.locator("#results .empty")).to_contain_text(say("Nothing found"))
    check(page)
    search.fill("baker")
    expect(cards).to_have_count(1)
    page.wait_for_url(lambda url: "q=baker" in url)
    search.fill("")
    expect(cards).to_have_count(3)
    page.get_by_role("radio", name=say("Under way")).check(force=True)
    expect(cards).to_have_count(1)
    page.get_by_role("radio", name=say("Ready")).check(force=True)
    expect(cards).to_have_count(2)
    page.locator(".more-filters summary").click()
    page.get_by_label(say("Person")).select_option(label="Bob")
    expect(cards).to_have_count(0)
    page.get_by_label(say("Person")).select_option(label="Alice")
    expect(cards).to_have_count(2)

    star = cards.first.locator(".star")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    page.locator("[name=favourites]").check()
    expect(cards).to_have_count(1)
    page.locator("[name=favourites]").uncheck()
    expect(cards).to_have_count(2)

    page.locator("[data-tick-all]").check()
    expect(page.locator("[data-bulk-words]")).to_have_text(say("NUMBER selected").replace("NUMBER", "2"))
    with page.expect_download() as download:
        page.get_by_role("button", name=say("Download as ZIP")).click()
    assert len(zipfile.ZipFile(download.value.path()).namelist()) == 2
    cards.first.locator(".request-text a").click()
    page.get_by_label(say("Title")).fill("About the baker")
    page.get_by_role("button", name=say("Save")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("About the baker")
    expect(page.get_by_text(say("Kept until"))).to_be_visible()
    page.goto("/history/?q=About+the")
    page.locator("[data-tick]").check()
    page.locator("[data-bulk]").get_by_role("button", name=say("Delete")).click()
    page.wait_for_url(lambda url: url.endswith("/history/"))
    expect(cards).to_have_count(2)
