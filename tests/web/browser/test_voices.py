"""Voices from a file, what is said of them, and what a microphone may refuse; in both languages."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from synthesis import presets
from tests import factories
from tests.browsing import LANGUAGES, SPEECH, words
from tests.web.browser.conftest import tone

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_from_a_file_to_speech(open_page, alice, hibari, language):
    say = words(language)
    page = open_page("/voices/", alice, language=language)
    page.get_by_role("link", name=say("Add a voice")).first.click()
    page.locator("[data-source] label").nth(1).click()
    file = page.locator("input[type=file]")
    file.set_input_files(SPEECH / "silence-5s.wav")
    page.get_by_label(say("Name"), exact=True).fill("Jane")
    page.locator("select[name=language]").select_option("en-US")
    page.locator(".consent input[type=checkbox]").check()
    page.get_by_role("button", name=say("Add the voice")).click()
    expect(page.locator(".field-error").first).to_contain_text(
        {"en": "We could not hear anyone speak", "zh": "没有听到有人说话"}[language]
    )

    file.set_input_files(SPEECH / "austen-0870.m4a")
    expect(page.locator("[data-drop-name]")).to_contain_text("austen-0870.m4a · 0:07")
    page.get_by_role("button", name=say("Add the voice")).click()
    page.wait_for_url(lambda url: "/voices/0" in url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Jane")
    expect(page.locator(".notice-good").first).to_contain_text(
        say("A clean recording. The voice comes through clearly.")
    )
    play = page.locator(".player-button").first
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")

    page.get_by_role("link", name=say("Use in the studio")).click()
    page.locator("textarea[name=text]").fill("It is a truth universally acknowledged.")
    page.get_by_role("button", name=say("Speak"), exact=True).click()
    expect(page.locator("article.request")).to_contain_text(
        {"en": "Spoken by the preset", "zh": "由最接近"}[language]
    )

    page.goto("/voices/")
    search = page.get_by_label(say("Search voices"))
    search.fill("jane")
    expect(page.locator("#voice-lists .voice")).to_have_count(1)
    page.get_by_role("link", name="Jane", exact=True).click()
    page.get_by_role("link", name=say("Delete this voice")).click()
    page.get_by_role("button", name=say("Delete this voice")).click()
    page.wait_for_url(lambda url: url.endswith("/voices/"))
    expect(page.locator("#voice-lists")).to_contain_text(say("No voice of your own yet"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sample_plays_and_a_microphone_refuses(open_page, alice, monkeypatch, tmp_path, language):
    say = words(language)
    monkeypatch.setattr(presets, "SAMPLES", tmp_path)
    known = next(preset for preset in presets.PRESETS if preset.engine == "hibari")
    (tmp_path / "hibari").mkdir()
    known.sample.write_bytes(tone(5))
    factories.preset("Heart", preset=known.slug)
    page = open_page("/voices/", alice, language=language)
    orb = page.locator("#voice-lists [data-sample]").first
    orb.click()
    expect(orb).to_have_attribute("aria-pressed", "true")
    orb.click()
    expect(orb).to_have_attribute("aria-pressed", "false")

    # By keyboard, and called off while it counts.
    page.get_by_role("link", name=say("Add a voice")).first.click()
    page.wait_for_load_state("load")
    page.get_by_role("button", name=say("Record"), exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-scope-count]")).to_have_text("3")
    page.keyboard.press("Escape")
    expect(page.locator("[data-recorder]")).to_have_attribute("data-state", "idle")
    assert page.evaluate("document.querySelector('input[type=file]').files.length") == 0

    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { "
        "throw new DOMException('no', 'NotAllowedError'); }; }"
    )
    page.get_by_role("button", name=say("Record"), exact=True).click()
    expect(page.locator("[data-record-words]")).to_contain_text(
        {
            "en": "does not let this page hear the microphone",
            "zh": "浏览器不允许此页面使用麦克风",
        }[language]
    )
