"""A newcomer's first five minutes: join by a link, record a voice, hear it speak, find the key, call the API."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from accounts.services import teams
from synthesis.models import Voice
from tests.browsing import LANGUAGES, check, ring, words
from tests.factories import PASSWORD

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_an_invitation_to_the_first_program(open_page, alice, hibari, worker, language):
    say = words(language)
    _made, link = teams.invite(
        actor=alice.actor, email="dora@example.org", role="member", accept_url="/invitations/{token}/"
    )
    page = open_page(link, language=language, width=1280 if language == "en" else 360)
    page.get_by_label(say("Your name")).fill("Dora")
    page.get_by_label(say("Password")).fill("short")
    page.get_by_role("button", name=say("Create account and join")).click()
    expect(page.locator(".field-error").first).to_be_visible()
    page.get_by_label(say("Password")).fill(PASSWORD)
    page.get_by_role("button", name=say("Create account and join")).click()
    expect(page.locator("#toasts")).to_contain_text(say("Welcome to %(team)s.", team="Harbour Audio"))
    steps = page.locator("#first-steps .step")
    expect(steps).to_have_count(3)
    check(page)

    # Each step is a link to where it is done.
    steps.nth(0).get_by_role("link").click()
    record_a_voice(page, say, hurried=language == "zh")
    expect(page.get_by_role("heading", level=1)).to_have_text("Jane")
    made = Voice.objects.get(name="Jane").current_version
    assert 4 < made.original_seconds < 12
    assert "flaws" in made.quality

    page.get_by_role("link", name=say("Use in the studio")).click()
    expect(page.locator("[data-picker-name]")).to_have_text("Jane")
    expect(page.locator("#first-steps .is-done")).to_have_count(1)
    page.locator("textarea[name=text]").fill("It is a truth universally acknowledged.")
    page.get_by_role("button", name=say("Speak"), exact=True).click()
    card = page.locator("article.request").first
    expect(card).to_have_attribute("data-status", "queued")
    worker.finish(worker.claim(), seconds=3)
    ring(page)
    expect(card).to_contain_text(say("Ready"))
    play = card.locator(".player-button")
    play.click()
    page.wait_for_function("() => document.querySelector('article.request audio').currentTime > 0.2")

    page.goto("/")
    expect(page.locator("#first-steps .is-done")).to_have_count(2)
    page.locator("#first-steps").get_by_role("link").click()
    page.get_by_label(say("Name of the new key")).fill("First program")
    page.get_by_role("button", name=say("Create a key")).click()
    secret = page.locator("#new-secret").inner_text()
    expect(page.locator("#new-secret-curl")).to_contain_text(secret)
    voices = page.request.get("/v1/voices", headers={"authorization": f"Bearer {secret}"}).json()["results"]
    assert "Jane" in {voice["name"] for voice in voices}
    page.goto("/")
    expect(page.locator("#studio-form")).to_be_visible()
    expect(page.locator("#first-steps")).to_have_count(0)


def record_a_voice(page, say, *, hurried: bool) -> None:
    """On the page that adds a voice: read, stop, listen, forget the consent, give it; nothing is lost on the way."""
    if hurried:
        page.evaluate(
            "() => { const later = window.setTimeout;"
            " window.setTimeout = (work, ms, ...rest) => later(work, ms === 1000 ? 50 : ms, ...rest); }"
        )
    page.get_by_label(say("Name"), exact=True).fill("Jane")
    page.locator("select[name=language]").select_option("en-US")
    reading = page.locator("[data-reading-text]")
    first = reading.inner_text()
    page.get_by_role("button", name=say("Another sentence")).click()
    expect(reading).not_to_have_text(first)
    page.get_by_role("button", name=say("Record"), exact=True).click()
    if not hurried:
        expect(page.locator("[data-scope-count]")).to_have_text("3")
    expect(page.locator("[data-recorder]")).to_have_attribute("data-state", "recording")
    check(page)
    expect(page.locator("[data-record-now]")).to_have_text("0:06")
    page.get_by_role("button", name=say("Stop"), exact=True).click()
    clean = say("A clean recording. The voice comes through clearly.")
    expect(page.locator("[data-verdict]")).to_contain_text(clean)
    expect(page.locator("[name=transcript]")).to_have_value(reading.inner_text())
    play = page.locator("[data-taken-player] .player-button")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    check(page)
    page.get_by_role("button", name=say("Add the voice")).click()
    expect(page.locator(".consent .field-error")).to_be_visible()
    expect(page.locator("[data-verdict]")).to_contain_text(clean)
    page.locator(".consent input[type=checkbox]").check()
    page.get_by_role("button", name=say("Add the voice")).click()
    page.wait_for_url(lambda url: "/voices/0" in url)
