"""Writing for speech: palette, drafts, dice, saved settings, shortcuts, hearing it while it is made."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests import factories
from tests.web.browser.conftest import tone
from tests.web.browser.test_pages import check
from tests.web.test_steering import spoken

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = {
    "en": {
        "palette": "Insert and direct",
        "sichuan": "Sichuan dialect",
        "breath": "a breath",
        "strong": "with emphasis",
        "speak": "Speak",
        "dice": "Throw the dice for a new seed",
        "saved": "Saved settings",
        "save": "Save",
        "playing": "Playing while it is made",
        "shortcuts": "Keyboard shortcuts",
        "download": "Download",
    },
    "zh": {
        "palette": "插入与指导",
        "sichuan": "四川话",
        "breath": "呼吸声",
        "strong": "加重语气",
        "speak": "生成语音",
        "dice": "掷骰子换一个种子",
        "saved": "常用设置",
        "save": "保存",
        "playing": "正在边生成边播放",
        "shortcuts": "键盘快捷键",
        "download": "下载",
    },
}


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "dark"), ("zh", 360, "light")])
def test_palette(open_page, alice, settings, language, width, theme):
    settings.CHORUS_ENGINE = "cosyvoice3"
    factories.preset("Mei", engine="cosyvoice3", preset="mei", language="zh")
    words = WORDS[language]
    page = open_page("/", alice, language=language, width=width, theme=theme)
    area = page.locator("textarea[name=text]")
    area.fill("银行")
    open_palette = page.get_by_role("button", name=words["palette"], exact=True)

    area.evaluate("area => { area.focus(); area.setSelectionRange(1, 2); }")
    open_palette.click()
    page.get_by_role("button", name="háng", exact=True).click()
    expect(area).to_have_value("银[h][áng]")

    area.evaluate("area => area.setSelectionRange(0, 0)")
    open_palette.click()
    check(page, without="target-size")
    page.get_by_role("button", name=words["breath"], exact=True).click()
    expect(area).to_have_value("[breath]银[h][áng]")

    area.evaluate("area => area.setSelectionRange(8, 9)")
    open_palette.click()
    page.get_by_role("button", name=words["strong"], exact=True).click()
    expect(area).to_have_value("[breath]<strong>银</strong>[h][áng]")

    open_palette.click()
    page.get_by_role("button", name=words["sichuan"], exact=True).click()
    expect(page.locator("[name=instruction]")).to_have_value(words["sichuan"])
    area.focus()
    page.keyboard.press("Control+z")
    expect(area).to_have_value("[breath]银[h][áng]")


def test_the_voice_that_is_shown_is_the_one_that_speaks(open_page, alice, hibari):
    """Also when a draft brings it back, which happens before anything else on the page runs."""
    factories.preset("Aki", gender="male")
    page = open_page("/", alice)
    shown = page.locator("[data-picker-name]")
    other = "Aki" if shown.text_content() != "Aki" else "Hibari"
    page.locator("[data-picker-button]").click()
    page.locator("[data-choice]", has_text=other).locator("label").click()
    expect(shown).to_have_text(other)
    page.locator("textarea[name=text]").fill("Who says this?")
    page.goto(page.url + "voices/")
    page.goto(page.url.removesuffix("voices/"))
    expect(page.locator("textarea[name=text]")).to_have_value("Who says this?")
    assert page.locator("[name=voice]:checked").get_attribute("data-name") == other
    expect(shown).to_have_text(other)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_draft_survives_and_settings_are_kept(open_page, alice, hibari, language):
    words = WORDS[language]
    factories.preset("Aki", gender="male")
    page = open_page("/", alice, language=language)
    page.locator("textarea[name=text]").fill("It was a bright cold day in April.")
    page.locator("[name=format][value=wav]").check(force=True)
    page.get_by_role("button", name=words["dice"]).click()
    seed = page.locator("[name=seed]").input_value()
    assert seed.isdigit()
    expect(page.locator("#outline")).to_contain_text("0:0")
    page.reload()
    expect(page.locator("textarea[name=text]")).to_have_value("It was a bright cold day in April.")
    expect(page.locator("[name=seed]")).to_have_value(seed)
    expect(page.locator("[name=format][value=wav]")).to_be_checked()

    page.locator("summary", has_text=words["saved"]).click()
    page.locator("#preset-name").fill("Newsreader")
    page.locator("#settings-presets").get_by_role("button", name=words["save"], exact=True).click()
    expect(page.locator("[data-preset]", has_text="Newsreader")).to_be_visible()
    check(page, without="target-size")
    page.locator("[name=format][value=mp3]").check(force=True)
    page.locator("summary", has_text=words["saved"]).click()
    page.locator("[data-preset]", has_text="Newsreader").click()
    page.wait_for_url(lambda url: "preset=" in url)
    expect(page.locator("[name=format][value=wav]")).to_be_checked()
    expect(page.locator("textarea[name=text]")).to_have_value("It was a bright cold day in April.")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_heard_while_it_is_made(open_page, alice, hibari, worker, language):
    words = WORDS[language]
    page = open_page("/", alice, language=language)
    sound = tone(6)
    page.route(
        "**/events/requests/*/stream/", lambda route: route.fulfill(content_type="audio/mpeg", body=sound)
    )
    page.locator("textarea[name=text]").fill("Somebody listens while this is spoken.")
    page.get_by_role("button", name=words["speak"], exact=True).click()
    expect(page.locator("#dock")).to_contain_text(words["playing"])
    expect(page.locator("#dock")).to_contain_text("Somebody listens")
    request = worker.claim()
    assert request.streamed
    worker.finish(request)
    # The card is another one by now; the sound goes on to its end.
    expect(page.locator("article.request[data-status=succeeded]")).to_be_visible()
    expect(page.locator("#dock")).to_be_visible()
    expect(page.locator("#dock")).to_be_hidden()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_waveform_and_every_format(open_page, alice, hibari, language):
    words = WORDS[language]
    spoken(alice)
    page = open_page("/", alice, language=language)
    page.locator("article.request").scroll_into_view_if_needed()
    expect(page.locator("canvas.wave")).to_be_visible()
    page.locator("summary", has_text=words["download"]).click()
    for name in ("MP3", "WAV", "FLAC", "OPUS", "AAC", "PCM", "SRT", "VTT"):
        expect(page.locator(".downloads .menu-item", has_text=name)).to_be_visible()
    check(page, without="target-size")
    with page.expect_download() as download:
        page.locator(".downloads .menu-item", has_text="SRT").click()
    assert "-->" in download.value.path().read_text()


def test_shortcuts(open_page, alice, hibari):
    page = open_page("/history/", alice)
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(sheet).to_be_visible()
    check(page, without="target-size")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.locator("input[type=search]").first).to_be_focused()
    page.locator("h1").click()
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.locator("h1")).to_have_text("Studio")
    page.wait_for_load_state("load")
    page.locator("h1").click()
    page.keyboard.press("v")
    expect(page.get_by_role("dialog", name="Choose a voice")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    expect(page.locator("textarea[name=text]")).to_be_focused()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Insert and direct")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+/")
    page.locator("[data-letters]").uncheck()
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.press("v")
    expect(page.get_by_role("dialog", name="Choose a voice")).to_be_hidden()


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "light"), ("zh", 360, "dark")])
def test_a_part_is_said_again_compared_and_chosen(open_page, alice, hibari, worker, language, width, theme):
    from tests.web.test_takes import finish

    again, use, heard = {
        "en": ("Say again", "Use it", "Heard"),
        "zh": ("再读一遍", "用这个", "正在使用"),
    }[language]
    made = spoken(alice)
    page = open_page("/", alice, language=language, width=width, theme=theme)
    page.locator(".parts summary").click()
    parts = page.locator(".part")
    expect(parts).to_have_count(made.segments_total)
    parts.nth(0).get_by_role("button", name=again).click()
    expect(parts.nth(0).locator(".take")).to_have_count(2)
    finish(made.segments.get(index=0).takes.get())
    # The event stream is the ASGI process's; without one, the page asks by itself.
    choose = parts.nth(0).get_by_role("button", name=use)
    expect(choose).to_be_visible()
    check(page, without="target-size")
    before = page.locator(".player-time").inner_text()
    choose.click()
    expect(parts.nth(0).locator(".take").nth(1)).to_contain_text(heard)
    expect(page.locator(".player-time")).not_to_have_text(before)
