"""A real browser on the real pages. The worker is played by the test, so that every state can be held and looked at."""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import av
import numpy as np
import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from launcher.checks import BROWSERS
from synthesis import storage
from synthesis.models import SynthesisRequest
from synthesis.services import dispatch, workers
from tests import factories

#: What a page may need on a machine that is busy with other tests, ms.
PATIENCE = 30_000
SPEECH = Path(__file__).resolve().parents[2] / "fixtures" / "speech"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    # A microphone into which somebody reads, over and over.
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    f"--use-file-for-fake-audio-capture={SPEECH / 'austen-0870.wav'}",
]


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Debian's Chromium, for this folder only.

    Playwright's event loop runs in the test's thread for as long as it is started: the ORM refuses to work beside it
    unless told that it is used between Playwright's calls, and tests that start a loop of their own could not.
    """
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip("there is no chromium (as root: apt-get install chromium)")
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=PATIENCE)
        running = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def alice(transactional_db) -> factories.Person:
    """The database is shared with the server's threads, so nothing here can be rolled back."""
    return factories.owner("Alice", team="Harbour Audio")


@pytest.fixture
def hibari(transactional_db):
    return factories.preset()


def quiet_stream(route: Route) -> None:
    """The event stream is the ASGI process's; here an empty one ends at once, and the pages poll."""
    route.fulfill(content_type="text/event-stream", body="retry: 600000\n\n")


@pytest.fixture
def open_page(browser, live_server) -> Iterator[Callable[..., Page]]:
    """`open_page("/voices/", alice, language="zh", width=360, theme="dark")`; fails a test whose pages complain."""
    contexts: list[BrowserContext] = []
    complaints: list[str] = []

    def opened(
        path: str,
        person: factories.Person | None = None,
        *,
        language: str = "en",
        width: int = 1280,
        theme: str = "light",
    ) -> Page:
        context = browser.new_context(
            base_url=live_server.url,
            viewport={"width": width, "height": 800},
            locale="zh-CN" if language == "zh" else "en-US",
            color_scheme=theme,  # type: ignore[arg-type]
            is_mobile=width < 600,
            has_touch=width < 600,
            reduced_motion="reduce",
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.route("**/events/", quiet_stream)
        page = context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda message: _note(complaints, message))
        page.on("dialog", lambda dialog: dialog.accept())
        if person is not None:
            page.goto("/sign-in/")
            page.get_by_label("邮箱地址" if language == "zh" else "E-mail address").fill(person.user.email)
            page.locator("input[name=password]").fill(factories.PASSWORD)
            page.locator("main button").click()
            page.wait_for_url(live_server.url + "/")
        page.goto(path)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


def _note(complaints: list[str], message) -> None:  # type: ignore[no-untyped-def]
    # A 4xx of ours is noted by the browser and by htmx as well; the tests look at what the page says about it.
    expected = ("Failed to load resource", "Response Status Error Code 4")
    if message.type in {"error", "warning"} and not message.text.startswith(expected):
        complaints.append(f"{message.text} ({message.location.get('url', '')})")


@pytest.fixture
def worker(transactional_db) -> Worker:
    """The test as a worker."""
    return Worker()


class Worker:
    """Speaks what is queued, as far as it is told to."""

    def __init__(self) -> None:
        self.beat()

    def beat(self) -> None:
        """Be seen as alive."""
        workers.beat(name="played", engine="hibari", host="here", pid=1, state="idle")

    def claim(self) -> SynthesisRequest:
        """Take the next request."""
        (request,) = dispatch.claim(worker="played", engine="hibari")
        return request

    def finish(self, request: SynthesisRequest, seconds: float = 2.0) -> None:
        """Deliver a tone of `seconds` as its file."""
        sound = tone(seconds)
        key = storage.output_key(request, "mp3")
        storage.put(key, sound, "audio/mpeg")
        made = dispatch.Made(key, "audio/mpeg", len(sound), "0" * 64, seconds, 24_000)
        assert dispatch.complete(request, made)


def tone(seconds: float) -> bytes:
    """A quiet tone as MP3."""
    samples = (np.sin(np.arange(int(24_000 * seconds)) * 0.06) * 3_000).astype(np.int16)
    target = io.BytesIO()
    with av.open(target, "w", format="mp3") as container:
        stream = container.add_stream("libmp3lame", rate=24_000, layout="mono")
        frame = av.AudioFrame.from_ndarray(samples[None, :], format="s16p", layout="mono")
        frame.sample_rate = 24_000
        for packet in [*stream.encode(frame), *stream.encode(None)]:
            container.mux(packet)
    return target.getvalue()
