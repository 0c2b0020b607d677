"""A voice of one's own: upload, what is said about it, use it; in both languages."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.web.browser.conftest import SPEECH

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = {
    "en": {
        "add": "Add a voice",
        "name": "Name",
        "submit": "Add the voice",
        "consent": "This is my own voice",
        "missing": "Without the consent of the person",
        "clean": "A clean recording",
        "use": "Use in the studio",
        "delete": "Delete this voice",
        "none": "No voice of your own yet",
        "speak": "Speak",
        "notice": "Spoken by the preset",
        "silence": "We could not hear anyone speak",
    },
    "zh": {
        "add": "添加音色",
        "name": "名称",
        "submit": "添加音色",
        "consent": "这是我本人的声音",
        "missing": "没有说话人的授权",
        "clean": "录音很干净",
        "use": "在工作台使用",
        "delete": "删除此音色",
        "none": "还没有自己的音色",
        "speak": "生成语音",
        "notice": "由最接近",
        "silence": "没有听到有人说话",
    },
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_from_a_recording_to_speech(open_page, alice, hibari, worker, language):
    words = WORDS[language]
    page = open_page("/voices/", alice, language=language)
    page.get_by_role("link", name=words["add"]).first.click()
    page.locator("input[type=file]").set_input_files(SPEECH / "austen-0870.m4a")
    expect(page.locator("[data-drop-name]")).to_contain_text("austen-0870.m4a · 0:07")
    page.get_by_label(words["name"], exact=True).fill("Jane")
    page.locator("select[name=language]").select_option("en-US")
    page.get_by_role("button", name=words["submit"]).click()
    expect(page.get_by_role("alert").or_(page.locator(".field-error"))).to_contain_text(words["missing"])

    # A browser does not let a page fill in a file: after an error it is chosen again.
    page.locator("input[type=file]").set_input_files(SPEECH / "austen-0870.m4a")
    page.get_by_label(words["consent"]).check()
    page.get_by_role("button", name=words["submit"]).click()
    page.wait_for_url(lambda url: "/voices/0" in url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Jane")
    expect(page.locator(".notice-good")).to_contain_text(words["clean"])
    play = page.locator(".player-button").first
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")

    page.get_by_role("link", name=words["use"]).click()
    expect(page.locator("[data-picker-name]")).to_have_text("Jane")
    page.locator("textarea[name=text]").fill("It is a truth universally acknowledged.")
    page.get_by_role("button", name=words["speak"], exact=True).click()
    expect(page.locator("article.request")).to_contain_text(words["notice"])

    page.goto("/voices/")
    page.get_by_role("link", name="Jane", exact=True).click()
    page.get_by_role("button", name=words["delete"]).click()
    page.wait_for_url(lambda url: url.endswith("/voices/"))
    expect(page.locator("#voice-lists")).to_contain_text(words["none"])


@pytest.mark.parametrize("language", ["en", "zh"])
def test_silence_is_told(open_page, alice, hibari, language):
    words = WORDS[language]
    page = open_page("/voices/new/", alice, language=language)
    page.locator("input[type=file]").set_input_files(SPEECH / "silence-5s.wav")
    page.get_by_label(words["name"], exact=True).fill("Nobody")
    page.get_by_label(words["consent"]).check()
    page.get_by_role("button", name=words["submit"]).click()
    expect(page.locator(".field-error")).to_contain_text(words["silence"])


def test_a_sample_plays_and_stops(open_page, alice, monkeypatch, tmp_path):
    from synthesis import presets
    from tests import factories
    from tests.web.browser.conftest import tone

    monkeypatch.setattr(presets, "SAMPLES", tmp_path)
    known = next(preset for preset in presets.PRESETS if preset.engine == "hibari")
    (tmp_path / "hibari").mkdir()
    known.sample.write_bytes(tone(5))
    factories.preset("Heart", preset=known.slug)
    page = open_page("/voices/", alice)
    orb = page.get_by_role("button", name="Play a sample of Heart")
    orb.click()
    expect(orb).to_have_attribute("aria-pressed", "true")
    orb.click()
    expect(orb).to_have_attribute("aria-pressed", "false")
