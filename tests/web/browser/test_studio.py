"""Sign in, write, submit, watch, hear; in both languages."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from synthesis.models import SynthesisRequest

pytestmark = pytest.mark.django_db(transaction=True)

WORDS = {
    "en": {
        "speak": "Speak",
        "next": "Next in line",
        "speaking": "Speaking",
        "ready": "Ready",
        "cancel": "Cancel",
        "cancelled": "Cancelled. Nothing was charged.",
        "again": "Use again",
        "empty": "The text is empty",
    },
    "zh": {
        "speak": "生成语音",
        "next": "下一个就是",
        "speaking": "合成中",
        "ready": "已完成",
        "cancel": "取消",
        "cancelled": "已取消，未扣除额度。",
        "again": "再次使用",
        "empty": "文本为空",
    },
}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_from_text_to_sound(open_page, alice, hibari, worker, language):
    words = WORDS[language]
    page = open_page("/", alice, language=language)
    area = page.locator("textarea[name=text]")
    area.fill("Good morning, harbour! 🌅")
    expect(page.locator("[data-count-now]")).to_have_text("24")
    page.get_by_role("button", name=words["speak"], exact=True).click()

    card = page.locator("article.request").first
    expect(card).to_contain_text(words["next"])
    expect(page.locator("#quota-rail strong")).to_have_text("99.9万" if language == "zh" else "999K")
    request = worker.claim()
    expect(card).to_contain_text(words["speaking"])
    worker.finish(request)
    expect(card).to_contain_text(words["ready"])
    expect(page.locator("#announcer")).to_contain_text("Good morning")

    play = card.locator(".player-button")
    play.click()
    expect(play).to_have_attribute("aria-pressed", "true")
    expect(card.locator(".player-time")).to_have_text(re.compile(r"0:0[12] / 0:02"))
    card.locator(".downloads summary").click()
    with page.expect_download() as download:
        card.get_by_role("link", name="MP3").click()
    assert download.value.suggested_filename == "Good morning, harbour! 🌅.mp3"

    area.fill("")
    card.get_by_role("link", name=words["again"]).click()
    expect(page.locator("textarea[name=text]")).to_have_value("Good morning, harbour! 🌅")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_several_at_once_and_cancel(open_page, alice, hibari, worker, language):
    words = WORDS[language]
    page = open_page("/", alice, language=language)
    for number in range(3):
        page.locator("textarea[name=text]").fill(f"Announcement number {number}.")
        page.get_by_role("button", name=words["speak"], exact=True).click()
        expect(page.locator("article.request")).to_have_count(number + 1)
    newest = page.locator("article.request").first
    newest.get_by_role("button", name=words["cancel"]).click()
    expect(newest).to_contain_text(words["cancelled"])
    assert SynthesisRequest.objects.filter(status="queued").count() == 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_bad_input_is_told_in_place(open_page, alice, hibari, language):
    words = WORDS[language]
    page = open_page("/", alice, language=language)
    page.get_by_role("button", name=words["speak"], exact=True).click()
    expect(page.locator(".composer .field-error").first).to_contain_text(words["empty"])
    area = page.locator("textarea[name=text]")
    expect(area).to_have_attribute("aria-invalid", "true")
    area.fill("Now there is something.")
    page.get_by_role("button", name=words["speak"], exact=True).click()
    expect(page.locator("article.request")).to_have_count(1)
    expect(page.locator(".composer .field-error:visible")).to_have_count(0)


def test_too_long_is_seen_before_submitting(open_page, alice, hibari):
    page = open_page("/", alice)
    page.locator("textarea[name=text]").fill("a" * 20_003)
    expect(page.locator("[data-count-over]")).to_have_text(
        "3 characters too many for one request. Split the text in two."
    )


def test_keyboard_alone(open_page, alice, hibari, worker):
    page = open_page("/", alice)
    expect(page.locator("textarea[name=text]")).to_be_focused()
    page.keyboard.type("Typed by keyboard.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("article.request")).to_have_count(1)
    page.keyboard.press("Control+Enter")
    expect(page.locator("article.request")).to_have_count(2)


def test_choose_a_voice(open_page, alice, hibari):
    from tests import factories

    factories.preset("Aki", language="en-US", gender="male")
    page = open_page("/", alice)
    page.locator("[data-picker-button]").click()
    page.get_by_label("Search voices").fill("aki")
    expect(page.locator("[data-choice]:visible")).to_have_count(1)
    page.locator("[data-choice]:visible label").click()
    expect(page.locator("#voice-picker")).to_be_hidden()
    expect(page.locator("[data-picker-name]")).to_have_text("Aki")
    page.locator("textarea[name=text]").fill("Said by Aki.")
    page.get_by_role("button", name="Speak", exact=True).click()
    expect(page.locator("article.request")).to_contain_text("Aki")


def test_the_draft_survives_a_reload(open_page, alice, hibari):
    page = open_page("/", alice)
    page.locator("textarea[name=text]").fill("Do not lose me.")
    page.reload()
    expect(page.locator("textarea[name=text]")).to_have_value("Do not lose me.")


def test_a_failure_says_why(open_page, alice, hibari, worker):
    from synthesis.services import dispatch

    page = open_page("/", alice)
    page.locator("textarea[name=text]").fill("This will not work.")
    page.get_by_role("button", name="Speak", exact=True).click()
    expect(page.locator("article.request")).to_have_count(1)
    dispatch.fail(
        worker.claim(),
        code="x",
        message="This text cannot be pronounced; try it in other words.",
        retryable=False,
    )
    expect(page.locator("article.request")).to_contain_text("try it in other words. Nothing was charged.")
