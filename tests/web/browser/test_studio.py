"""From a text to its sound, the queue told honestly, and a notice at the end; in both languages."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from synthesis.models import SynthesisRequest
from synthesis.services import dispatch
from tests.browsing import ELSEWHERE, LANGUAGES, check, ring, words
from tests.web.browser.conftest import Worker, tone

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_text_to_sound(open_page, alice, hibari, language):
    say = words(language)
    page = open_page("/", alice, language=language)
    expect(page.locator(".notice-warn")).to_contain_text(
        {"en": "No worker is speaking right now", "zh": "目前没有可用的工作进程"}[language]
    )
    area = page.locator("textarea[name=text]")
    cards = page.locator("article.request")
    expect(area).to_be_focused()
    page.keyboard.press("Control+Enter")
    expect(page.locator(".composer .field-error").first).to_contain_text(
        say("The text is empty. Write what you would like to hear.")
    )
    expect(area).to_have_attribute("aria-invalid", "true")
    area.fill("a" * 20_003)
    expect(page.locator("[data-count-over]")).to_have_text(
        say("OVER characters too many for one request. Split the text in two.").replace("OVER", "3")
    )

    area.fill("")
    area.focus()
    page.keyboard.type("Good morning, harbour! 🌅")
    expect(page.locator("[data-count-now]")).to_have_text("24")
    page.keyboard.press("Control+Enter")
    expect(cards).to_have_count(1)
    expect(page.locator(".composer .field-error:visible")).to_have_count(0)
    waits = say("%(place)s · waiting for a worker to come back", place=say("Next in line"))
    expect(cards.first).to_contain_text(waits)
    expect(page.locator("#quota-rail strong")).to_have_text("99.9万" if language == "zh" else "999K")
    for number in (2, 3):
        area.fill(f"Announcement number {number}.")
        page.get_by_role("button", name=say("Speak"), exact=True).click()
        expect(cards).to_have_count(number)
    newest = cards.first
    ahead = say("%(n)d ahead", "%(n)d ahead", n=2)
    whose = say("yours", "all yours", n=2)
    expect(newest).to_contain_text(say("%(place)s, %(whose)s", place=ahead, whose=whose))
    newest.get_by_role("button", name=say("Cancel")).click()
    expect(newest).to_contain_text(say("Cancelled. Nothing was charged."))
    assert SynthesisRequest.objects.filter(status="queued").count() == 2

    # Somebody goes away and comes back: the worker does too.
    worker = Worker()
    page.goto("/voices/")
    page.goto("/")
    expect(page.locator(".notice-warn")).to_have_count(0)
    first = cards.nth(2)
    request = worker.claim()
    ring(page)
    expect(first).to_contain_text(say("Speaking"))
    check(page)
    worker.finish(request)
    ring(page)
    expect(first).to_contain_text(say("Ready"))
    expect(page.locator("#announcer")).to_contain_text("Good morning")
    dispatch.fail(
        worker.claim(),
        code="x",
        message="This text cannot be pronounced; try it in other words.",
        retryable=False,
    )
    ring(page)
    reason = say("This text cannot be pronounced; try it in other words.")
    expect(cards.nth(1)).to_contain_text(say("%(reason)s Nothing was charged.", reason=reason))

    play = first.locator(".player-button")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    expect(first.locator(".player-time")).to_have_text(re.compile(r"0:0[12] / 0:02"))
    first.locator(".downloads summary").click()
    with page.expect_download() as download:
        first.get_by_role("link", name="MP3").click()
    assert download.value.suggested_filename == "Good morning, harbour! 🌅.mp3"
    area.fill("")
    first.get_by_role("link", name=say("Use again")).click()
    expect(area).to_have_value("Good morning, harbour! 🌅")

    page.context.clear_cookies(name="chorus_session")
    page.get_by_role("button", name=say("Speak"), exact=True).click()
    page.wait_for_url(lambda url: "/sign-in/" in url)


@pytest.mark.parametrize("language", LANGUAGES)
def test_heard_while_it_is_made_and_told_elsewhere(open_page, alice, hibari, worker, language):
    say = words(language)
    alice.user.notify_done = True
    alice.user.save()
    page = open_page("/", alice, language=language)
    sound = tone(2)
    page.route(
        "**/events/requests/*/stream/", lambda route: route.fulfill(content_type="audio/mpeg", body=sound)
    )
    page.evaluate(ELSEWHERE)
    page.locator("textarea[name=text]").fill("Somebody listens while this is spoken.")
    page.get_by_role("button", name=say("Speak"), exact=True).click()
    dock = page.locator("#dock")
    expect(dock).to_contain_text(say("Playing while it is made"))
    expect(dock).to_contain_text("Somebody listens")
    request = worker.claim()
    assert request.streamed
    worker.finish(request)
    # The doorbell rings for a page that nobody looks at as well.
    page.locator("article.request").dispatch_event("chorus:refresh")
    # The card is another one by now; the sound goes on to its end.
    expect(page.locator("article.request[data-status=succeeded]")).to_be_visible()
    page.wait_for_function("() => window.notices.length")
    (notice,) = page.evaluate("window.notices")
    assert notice.endswith(f": {say('Ready to listen')}")
    expect(dock).to_be_hidden()
