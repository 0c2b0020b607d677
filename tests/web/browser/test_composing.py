"""Writing for speech: palette, drafts, dice, saved settings, parts and their takes, every format, shortcuts."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from synthesis import storage
from synthesis.models import Output
from tests import factories
from tests.browsing import LANGUAGES, check, ring, words
from tests.web.browser.conftest import tone
from tests.web.test_steering import spoken
from tests.web.test_takes import finish

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "dark"), ("zh", 360, "light")])
def test_palette(open_page, alice, settings, language, width, theme):
    say = words(language)
    settings.CHORUS_ENGINE = "cosyvoice3"
    factories.preset("Mei", engine="cosyvoice3", preset="mei", language="zh")
    page = open_page("/", alice, language=language, width=width, theme=theme)
    area = page.locator("textarea[name=text]")
    area.fill("银行")
    open_palette = page.get_by_role("button", name=say("Insert and direct"), exact=True)
    palette = page.get_by_role("dialog", name=say("Insert and direct"))

    area.evaluate("area => { area.focus(); area.setSelectionRange(1, 2); }")
    open_palette.click()
    page.get_by_role("button", name="háng", exact=True).click()
    expect(area).to_have_value("银[h][áng]")

    area.evaluate("area => area.setSelectionRange(0, 0)")
    open_palette.click()
    check(page, without="target-size")
    palette.locator("[data-insert='[breath]']").click()
    expect(area).to_have_value("[breath]银[h][áng]")

    area.evaluate("area => area.setSelectionRange(8, 9)")
    open_palette.click()
    palette.locator("[data-wrap=strong]").click()
    expect(area).to_have_value("[breath]<strong>银</strong>[h][áng]")

    open_palette.click()
    sichuan = {"en": "Sichuan dialect", "zh": "四川话"}[language]
    page.get_by_role("button", name=sichuan, exact=True).click()
    expect(page.locator("[name=instruction]")).to_have_value(sichuan)
    area.focus()
    page.keyboard.press("Control+z")
    expect(area).to_have_value("[breath]银[h][áng]")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_voice_a_draft_and_settings_that_are_kept(open_page, alice, hibari, language):
    say = words(language)
    factories.preset("Aki", gender="male")
    page = open_page("/", alice, language=language)
    area = page.locator("textarea[name=text]")
    shown = page.locator("[data-picker-name]")
    # The voice that is shown is the one that speaks, also when a draft brings it back.
    other = "Aki" if shown.text_content() != "Aki" else "Hibari"
    page.locator("[data-picker-button]").click()
    page.get_by_label(say("Search voices")).fill(other.lower())
    choice = page.locator("[data-choice]:visible", has_text=other)
    # axe does not know of the top layer: it takes the tabs under the sheet for neighbours of what is on it.
    check(page, without="target-size")
    choice.locator("label").click()
    expect(page.locator("#voice-picker")).to_be_hidden()
    expect(shown).to_have_text(other)
    area.fill("It was a bright cold day in April.")
    page.locator("[name=format][value=wav]").check(force=True)
    page.get_by_role("button", name=say("Throw the dice for a new seed")).click()
    seed = page.locator("[name=seed]").input_value()
    assert seed.isdigit()
    expect(page.locator("#outline")).to_contain_text("0:0")
    page.goto("/voices/")
    page.goto("/")
    expect(area).to_have_value("It was a bright cold day in April.")
    assert page.locator("[name=voice]:checked").get_attribute("data-name") == other
    expect(shown).to_have_text(other)
    expect(page.locator("[name=seed]")).to_have_value(seed)
    expect(page.locator("[name=format][value=wav]")).to_be_checked()

    saved = page.locator("summary", has_text=say("Saved settings"))
    saved.click()
    page.locator("#preset-name").fill("Newsreader")
    page.locator("#settings-presets").get_by_role("button", name=say("Save"), exact=True).click()
    expect(page.locator("[data-preset]", has_text="Newsreader")).to_be_visible()
    check(page, without="target-size")
    page.locator("[name=format][value=mp3]").check(force=True)
    saved.click()
    page.locator("[data-preset]", has_text="Newsreader").click()
    page.wait_for_url(lambda url: "preset=" in url)
    expect(page.locator("[name=format][value=wav]")).to_be_checked()
    expect(area).to_have_value("It was a bright cold day in April.")
    page.get_by_role("button", name=say("Speak"), exact=True).click()
    expect(page.locator("article.request")).to_contain_text(other)


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "light"), ("zh", 360, "dark")])
def test_every_format_and_a_part_said_again(open_page, alice, hibari, worker, language, width, theme):
    say = words(language)
    made = spoken(alice)
    page = open_page("/", alice, language=language, width=width, theme=theme)
    page.locator("article.request").scroll_into_view_if_needed()
    expect(page.locator("canvas.wave")).to_be_visible()
    page.locator("summary", has_text=say("Download")).click()
    for name in ("MP3", "WAV", "FLAC", "OPUS", "AAC", "PCM", "SRT", "VTT"):
        expect(page.locator(".downloads .menu-item", has_text=name)).to_be_visible()
    check(page, without="target-size")
    with page.expect_download() as download:
        page.locator(".downloads .menu-item", has_text="SRT").click()
    assert "-->" in download.value.path().read_text()
    page.keyboard.press("Escape")

    page.locator(".parts summary").click()
    parts = page.locator(".part")
    expect(parts).to_have_count(made.segments_total)
    parts.nth(0).get_by_role("button", name=say("Say again")).click()
    expect(parts.nth(0).locator(".take")).to_have_count(2)
    take = made.segments.get(index=0).takes.get()
    finish(take)
    sound = tone(3)
    storage.put(storage.output_key(take, "mp3"), sound, "audio/mpeg")
    Output.objects.filter(request=take).update(bytes=len(sound), key=storage.output_key(take, "mp3"))
    ring(page)
    choose = parts.nth(0).get_by_role("button", name=say("Use it"))
    expect(choose).to_be_visible()
    check(page, without="target-size")
    before = page.locator(".player-time").first.inner_text()
    # Side by side: letters change over, Enter takes the one that was heard last.
    parts.nth(0).locator("[popovertarget]").first.click()
    sheet = page.locator("[data-compare]")
    expect(sheet.locator("[data-compare-take]")).to_have_count(2)
    check(page, without="target-size")
    page.keyboard.press("a")
    expect(sheet.locator("[data-compare-play]").nth(0)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("b")
    expect(sheet.locator("[data-compare-play]").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(sheet.locator("[data-compare-play]").nth(0)).to_have_attribute("aria-pressed", "false")
    page.keyboard.press("Enter")
    expect(parts.nth(0).locator(".take").nth(1)).to_contain_text(say("Heard"))
    expect(page.locator(".player-time")).not_to_have_text(before)


def test_what_is_written_before_the_scripts_arrive_stays(open_page, alice, hibari):
    """On a slow line the page can be written on long before its scripts know of an older draft."""
    page = open_page("/", alice)
    area = page.locator("textarea[name=text]")
    area.fill("An older draft.")
    page.goto("/history/")
    held = []
    page.route("**/*.js", lambda route: held.append(route))
    page.goto("/", wait_until="commit")
    area.fill("What I write now.")
    while not page.evaluate("document.readyState === 'complete'"):
        while held:
            held.pop().continue_()
        page.wait_for_timeout(50)
    page.unroute("**/*.js")
    expect(area).to_have_value("What I write now.")
    page.goto("/")
    expect(area).to_have_value("What I write now.")
