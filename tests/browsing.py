"""A real browser for tests: Debian's Chromium, pages that fail a test when they complain, what axe says about them."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import axe_playwright_python
import pytest
from django.conf import settings
from django.test import Client, override_settings
from django.utils import translation
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from accounts.models import User
from config import static
from launcher.checks import BROWSERS, LEAN_BROWSER

#: What a page may need on a machine that is busy with other tests, ms.
PATIENCE = 30_000
SPEECH = Path(__file__).resolve().parent / "fixtures" / "speech"
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
LANGUAGES = ["en", "zh"]
#: Nothing fades: what is looked at is what will be.
STEADY = """{
    const sheet = new CSSStyleSheet();
    sheet.replaceSync("*, *::before, *::after { transition: none !important; }");
    document.adoptedStyleSheets = [sheet];
}"""
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def chromium() -> Iterator[Browser]:
    """Debian's Chromium, as a fixture of a whole folder.

    Playwright's event loop runs in the test's thread for as long as it is started: the ORM refuses to work beside it
    unless told that it is used between Playwright's calls, and tests that start a loop of their own could not.
    """
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    if found is None:
        pytest.skip(f"there is no chromium (as root: apt-get install {LEAN_BROWSER})")
    with pytest.MonkeyPatch.context() as patch, _joined_files(), sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
        expect.set_options(timeout=PATIENCE)
        running = playwright.chromium.launch(executable_path=found, args=ARGUMENTS)
        yield running
        running.close()


@contextmanager
def _joined_files() -> Iterator[None]:
    """Style sheet and script as they are in production: a page asks the test's server for six files, not for forty."""
    source = Path(settings.STATICFILES_DIRS[0])
    with TemporaryDirectory() as folder:
        for name, content in static.joined(lambda name: (source / name).read_text()).items():
            path = Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        with override_settings(STATICFILES_DIRS=[folder, source], CHORUS_STATIC_MANIFEST=True):
            yield


def words(language: str) -> Callable[..., str]:
    """The pages' own words: `say("Speak")`, or `say("%(n)d part", "%(n)d parts", n=2)`.

    What has no Chinese yet fails the test.
    """

    def say(english: str, plural: str = "", **values: Any) -> str:
        count = values.get("n", 1)
        with translation.override("zh-hans" if language == "zh" else "en"):
            found = translation.ngettext(english, plural, count) if plural else translation.gettext(english)
        assert language == "en" or found not in {english, plural}, f"{english!r} is not translated"
        return found % values if values else found

    return say


#: Somebody who looks at another window, and keeps the notices that they are shown there.
ELSEWHERE = """() => {
    Object.defineProperty(document, "hidden", { get: () => true });
    window.notices = [];
    window.Notification = class extends EventTarget {
        static permission = "granted";
        constructor(title, options) { super(); window.notices.push(options.body); }
    };
}"""


class Pages:
    """Opens pages, each in a context of its own, and keeps what they complain of."""

    def __init__(self, browser: Browser, url: str, *, streamed: bool = False) -> None:
        """`streamed` where a process answers for the event stream: Django's test server has none."""
        self.browser = browser
        self.url = url
        self.streamed = streamed
        self.contexts: list[BrowserContext] = []
        self.complaints: list[str] = []

    def open(
        self,
        path: str,
        client: Client | None = None,
        *,
        language: str = "en",
        width: int = 1280,
        theme: str = "light",
    ) -> Page:
        """A page with the session of `client`; a phone's where it is narrow."""
        context = self.browser.new_context(
            base_url=self.url,
            viewport={"width": width, "height": 800},
            locale="zh-CN" if language == "zh" else "en-US",
            color_scheme=theme,  # type: ignore[arg-type]
            is_mobile=width < 600,
            has_touch=width < 600,
            reduced_motion="reduce",
        )
        self.contexts.append(context)
        context.set_default_timeout(PATIENCE)
        context.add_init_script(STEADY)
        if not self.streamed:
            context.route("**/events/", _quiet_stream)
        if client is not None:
            name = settings.SESSION_COOKIE_NAME
            context.add_cookies([{"name": name, "value": client.cookies[name].value, "url": self.url}])
        page = context.new_page()
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", self._note)
        page.on("dialog", lambda dialog: dialog.accept())
        page.goto(path)
        return page

    def close(self) -> None:
        """Close them all; AssertionError for what was complained of."""
        for context in self.contexts:
            context.close()
        assert not self.complaints, "\n".join(self.complaints)

    def _note(self, message: Any) -> None:
        # A 4xx of ours is noted by the browser and by htmx as well; the tests look at what the page says about it.
        # What htmx had under way is called off when the page is left.
        expected = (
            *("Failed to load resource", "Response Status Error Code 4"),
            *("htmx:sendAbort", "htmx:afterRequest"),
        )
        if message.type in {"error", "warning"} and not message.text.startswith(expected):
            self.complaints.append(f"{message.text} ({message.location.get('url', '')})")


def _quiet_stream(route: Route) -> None:
    """The event stream is the ASGI process's; here an empty one ends at once, and the test rings itself."""
    route.fulfill(content_type="text/event-stream", body="retry: 600000\n\n")


def signed_in(user: User) -> Client:
    """A session of `user`, as the sign-in page makes one."""
    client = Client()
    client.force_login(user)
    return client


def ring(page: Page) -> None:
    """What the event stream does when there is news: the cards under way are fetched anew, at once."""
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")


def show(page: Page, *, width: int, theme: str) -> None:
    """Make the window another one's, and wait until it is drawn."""
    # So high that the bar at the bottom of a phone covers nothing.
    page.set_viewport_size({"width": width, "height": 800 if width > 600 else 4000})
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
    page.evaluate(
        """async () => {
            scrollTo(0, 0);
            await new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)));
        }"""
    )


def violations(page: Page, without: str = "", only: tuple[str, ...] = ()) -> list[str]:
    """What axe objects to on the page as it is now; of all its rules, or `only` of some."""
    if not page.evaluate("Boolean(window.axe)"):
        page.evaluate(AXE)
    # A phone's bar lies over whatever happens to be at that height; scrolling moves it away, and so do we.
    page.evaluate("document.querySelector('.tabs')?.style.setProperty('position', 'static')")
    run = {"type": "rule", "values": list(only)} if only else {"type": "tag", "values": RULES}
    options: dict[str, Any] = {"runOnly": run, "resultTypes": ["violations"]}
    if without:
        options["rules"] = {without: {"enabled": False}}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [_told(one["id"], one["nodes"][0]) for one in found]


def _told(rule: str, node: dict[str, Any]) -> str:
    beside = [other["html"][:120] for reason in node["any"] for other in reason.get("relatedNodes", [])]
    return f"{rule}: {node['html'][:200]} {node['failureSummary']} {beside}"


def check(page: Page, without: str = "", only: tuple[str, ...] = ()) -> None:
    """Nothing that axe objects to, and nothing wider than the window."""
    found = violations(page, without, only)
    assert not found, f"{page.url}\n" + "\n".join(found)
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), (
        f"{page.url} is too wide"
    )
