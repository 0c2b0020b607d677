"""Script mode: a dialogue from the clipboard, a table or subtitles; one file, single lines, a failed line once more."""

from __future__ import annotations

import io
import zipfile

import pytest
import soundfile
from playwright.sync_api import expect

from synthesis.services import dispatch
from tests import factories
from tests.browsing import check, ring, words
from tests.web.test_scripts import TEXT, speak

pytestmark = pytest.mark.django_db(transaction=True)

TABLE = "speaker,text,pause\nAnna,Is there any tea?,1\nBen,There is none.,\n"
SUBTITLES = (
    "1\n00:00:01,000 --> 00:00:02,500\nThe tide is out.\n\n2\n00:00:03,000 --> 00:00:04,000\nSo it is.\n"
)


@pytest.mark.parametrize(("language", "width", "theme"), [("en", 1280, "light"), ("zh", 360, "dark")])
def test_a_dialogue_is_spoken(open_page, alice, hibari, worker, language, width, theme):
    say = words(language)
    aki = factories.preset("Aki", gender="male")
    page = open_page("/scripts/", alice, language=language, width=width, theme=theme)
    expect(page.locator(".empty")).to_contain_text(say("No script yet"))
    text = page.locator("textarea[name=text]")
    cast = page.locator(".cast-row")

    # From a file, which is read into the field to be looked at.
    file = page.locator("[data-read-into]")
    file.set_input_files({"name": "t.srt", "mimeType": "text/plain", "buffer": SUBTITLES.encode()})
    expect(page.locator("#cast")).to_contain_text(
        say(
            "%(n)s line, %(characters)s characters",
            "%(n)s lines, %(characters)s characters",
            n=2,
            characters=25,
        )
    )
    expect(cast).to_have_count(1)
    file.set_input_files({"name": "t.csv", "mimeType": "text/csv", "buffer": TABLE.encode()})
    expect(text).to_have_value(TABLE)
    expect(cast).to_have_count(2)

    # From the clipboard.
    page.get_by_label(say("Title")).fill("Breakfast")
    text.fill(TEXT)
    expect(page.locator("#cast")).to_contain_text("3")
    page.get_by_label("Ben").select_option(str(aki.id))
    page.locator("[name=pause]").fill("0.25")
    check(page)
    page.get_by_role("button", name=say("Speak the script")).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Breakfast")
    lines = page.locator(".line")
    expect(lines).to_have_count(3)

    dispatch.fail(worker.claim(), code="engine_error", message="It broke.", retryable=False)
    speak(2)
    ring(page)
    expect(page.locator(".line .failed")).to_have_count(1)
    expect(page.locator("[data-live]")).to_have_count(0)
    check(page)
    play = lines.nth(2).locator("[data-sample]")
    expect(play).to_be_visible()
    lines.nth(0).get_by_role("button", name=say("Try again")).click()
    expect(page.locator(".line .failed")).to_have_count(0)
    speak(1)
    ring(page)
    expect(page.locator("#script-lines [data-player]")).to_be_visible()

    download = page.locator(".downloads summary")
    download.click()
    check(page, without="target-size")
    with page.expect_download() as joined:
        page.get_by_role("link", name="WAV").click()
    samples, rate = soundfile.read(io.BytesIO(joined.value.path().read_bytes()))
    assert len(samples) / rate == pytest.approx(3.5, abs=0.1), "three seconds of sound, two short pauses"
    with page.expect_download() as separate:
        page.get_by_role("link", name="ZIP").click()
    assert len(zipfile.ZipFile(separate.value.path()).namelist()) == 3

    page.get_by_role("button", name=say("Delete")).click()
    page.wait_for_url(lambda url: url.endswith("/scripts/"))
    expect(page.locator("#toasts")).to_contain_text(say("The script is deleted."))
