"""A voice recorded with the (played) microphone: read, listen, judged, kept over an error, made."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from synthesis.models import Voice
from tests.web.browser.test_pages import check

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = {
    "en": {
        "record": "Record",
        "stop": "Stop",
        "again": "Record again",
        "another": "Another sentence",
        "name": "Name",
        "submit": "Add the voice",
        "consent": "This is my own voice",
        "missing": "Without the consent of the person",
        "clean": "A clean recording",
        "refused": "does not let this page hear the microphone",
    },
    "zh": {
        "record": "开始录音",
        "stop": "停止",
        "again": "重新录音",
        "another": "换一段",
        "name": "名称",
        "submit": "添加音色",
        "consent": "这是我本人的声音",
        "missing": "没有说话人的授权",
        "clean": "录音很干净",
        "refused": "浏览器不允许此页面使用麦克风",
    },
}


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "light"), ("zh", 360, "dark")])
def test_from_the_microphone_to_a_voice(open_page, alice, hibari, language, width, theme):
    words = WORDS[language]
    page = open_page("/voices/new/", alice, language=language, width=width, theme=theme)
    page.get_by_label(words["name"], exact=True).fill("Jane")
    page.locator("select[name=language]").select_option("en-US")
    reading = page.locator("[data-reading-text]")
    first = reading.inner_text()
    page.get_by_role("button", name=words["another"]).click()
    expect(reading).not_to_have_text(first)
    page.get_by_role("button", name=words["record"], exact=True).click()
    expect(page.locator("[data-scope-count]")).to_have_text("3")
    expect(page.locator("[data-recorder]")).to_have_attribute("data-state", "recording")
    expect(page.locator("[data-record-now]")).to_have_text("0:06")
    check(page)
    page.get_by_role("button", name=words["stop"], exact=True).click()

    expect(page.locator("[data-verdict]")).to_contain_text(words["clean"])
    expect(page.locator("[name=transcript]")).to_have_value(reading.inner_text())
    play = page.locator("[data-taken-player] .player-button")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    check(page)

    # The consent is missing: the form comes back, and the recording is still there.
    page.get_by_role("button", name=words["submit"]).click()
    expect(page.locator(".field-error")).to_contain_text(words["missing"])
    expect(page.locator("[data-verdict]")).to_contain_text(words["clean"])
    page.get_by_label(words["consent"]).check()
    page.get_by_role("button", name=words["submit"]).click()
    page.wait_for_url(lambda url: "/voices/0" in url)
    expect(page.get_by_role("heading", level=1)).to_have_text("Jane")
    made = Voice.objects.get(name="Jane").current_version
    assert 4 < made.original_seconds < 12
    assert "flaws" in made.quality


def test_by_keyboard_and_cancelled(open_page, alice, hibari):
    page = open_page("/voices/new/", alice)
    page.get_by_role("button", name="Record", exact=True).focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-scope-count]")).to_have_text("3")
    page.keyboard.press("Escape")
    expect(page.locator("[data-recorder]")).to_have_attribute("data-state", "idle")
    assert page.evaluate("document.querySelector('input[type=file]').files.length") == 0


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_refusal_says_what_to_do(open_page, alice, hibari, language):
    page = open_page("/voices/new/", alice, language=language)
    page.evaluate(
        "() => { navigator.mediaDevices.getUserMedia = async () => { "
        "throw new DOMException('no', 'NotAllowedError'); }; }"
    )
    page.get_by_role("button", name=WORDS[language]["record"], exact=True).click()
    expect(page.locator("[data-record-words]")).to_contain_text(WORDS[language]["refused"])
