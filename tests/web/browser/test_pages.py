"""Every page in both languages and themes, wide and narrow: nothing that axe objects to, nothing too wide."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import expect

from accounts.services import teams
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)

AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PAGES = [
    "/",
    "/voices/",
    "/voices/new/",
    "/history/",
    "/scripts/",
    "/team/",
    "/account/",
    "/account/two-factor/",
]
PAGES.append("/account/delete/")
LOOKS = [("en", 1280, "light"), ("zh", 1280, "dark"), ("zh", 360, "light"), ("en", 360, "dark")]


def violations(page, without: str = "") -> list[str]:
    page.evaluate(AXE)
    # A phone's bar lies over whatever happens to be at that height; scrolling moves it away, and so do we.
    page.evaluate("document.querySelector('.tabs')?.style.setProperty('position', 'static')")
    options: dict[str, Any] = {"runOnly": {"type": "tag", "values": RULES}}
    if without:
        options["rules"] = {without: {"enabled": False}}
    found = page.evaluate("options => axe.run(options)", options)["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html'][:200]} {one['nodes'][0]['failureSummary']}" for one in found
    ]


def check(page, without: str = "") -> None:
    assert violations(page, without) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


@pytest.mark.parametrize(("language", "width", "theme"), LOOKS)
def test_signed_in(open_page, alice, hibari, worker, language, width, theme):
    factories.preset("Aki", gender="male")
    teams.invite(actor=alice.actor, email="dora@example.org", role="viewer", accept_url="{token}")
    factories.colleague(alice, "Bob")
    done = factories.submit(
        alice, "A request that has been spoken, with a rather long text to be shown in a list."
    )
    worker.finish(worker.claim())
    factories.submit(alice, "One that is being spoken.")
    worker.claim()
    factories.submit(alice, "One that waits.")
    page = open_page("/", alice, language=language, width=width, theme=theme)
    for path in [*PAGES, f"/requests/{done.id}/"]:
        page.goto(path)
        check(page)
    page.goto("/")
    page.locator("[data-picker-button]").click()
    # axe does not know of the top layer: it takes the tabs under the sheet for neighbours of what is on it.
    check(page, without="target-size")
    page.goto("/team/")
    page.locator("summary.account").click()
    check(page)


@pytest.mark.parametrize(("language", "width", "theme"), LOOKS)
def test_signed_out(open_page, alice, language, width, theme):
    _made, link = teams.invite(
        actor=alice.actor, email="dora@example.org", role="viewer", accept_url="/invitations/{token}/"
    )
    page = open_page("/sign-in/", language=language, width=width, theme=theme)
    for path in ["/sign-in/", "/password/reset/", "/password/reset/sent/", link, "/nothing/here/"]:
        page.goto(path)
        check(page)


def test_theme_without_a_flash(open_page, alice, hibari):
    page = open_page("/", alice, theme="light")
    page.get_by_role("button", name="Switch to the dark theme").first.click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/voices/")
    assert 'data-theme="dark"' in page.content().split("<head>")[0], "the server wrote it"
    page.get_by_role("button", name="Switch to the light theme").first.click()
    page.goto("/history/")
    assert "data-theme" not in page.content().split("<head>")[0], "as the system has it"


def test_language(open_page, alice, hibari):
    page = open_page("/history/", alice)
    page.get_by_role("button", name="中文").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("历史记录")
    page.get_by_role("button", name="English").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("History")


def test_skip_link_and_menu_by_keyboard(open_page, alice, hibari):
    page = open_page("/history/", alice)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.locator("summary.account").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Your account")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Your account")).to_be_hidden()
    expect(page.locator("summary.account")).to_be_focused()


def test_search_in_the_history_while_typing(open_page, alice, hibari):
    factories.submit(alice, "The lighthouse keeper slept.")
    factories.submit(alice, "The baker was up early.")
    page = open_page("/history/", alice)
    page.get_by_label("Search in texts and titles").fill("lighthouse")
    expect(page.locator("article.request")).to_have_count(1)
    page.wait_for_url(lambda url: "q=lighthouse" in url)


def test_a_key_is_made_and_revoked(open_page, alice, hibari):
    page = open_page("/team/", alice)
    page.get_by_label("Name of the new key").fill("Website")
    page.get_by_role("button", name="Create a key").click()
    expect(page.locator("#new-secret")).to_contain_text("chorus_")
    row = page.get_by_role("row", name="Website")
    row.get_by_role("button", name="Revoke").click()
    expect(page.get_by_role("row", name="Website")).to_contain_text("Revoked")
    expect(page.locator("#new-secret")).to_have_count(0)


def test_an_expired_session_leads_to_the_sign_in(open_page, alice, hibari):
    page = open_page("/", alice)
    page.context.clear_cookies(name="chorus_session")
    page.locator("textarea[name=text]").fill("Too late.")
    page.get_by_role("button", name="Speak", exact=True).click()
    page.wait_for_url(lambda url: "/sign-in/" in url)


def test_the_studio_is_light(open_page, alice, hibari, capsys):
    """Under 150 kB over the wire, as Caddy and WhiteNoise compress it."""
    page = open_page("/voices/", alice)
    sizes: dict[str, int] = {}

    def weigh(answer) -> None:
        if answer.status == 200:
            sizes[answer.url.rpartition("/")[2] or "page"] = len(gzip.compress(answer.body(), 6))

    page.on("response", weigh)
    page.goto("/", wait_until="load")
    with capsys.disabled():
        print(f"\nThe studio: {sum(sizes.values()) / 1000:.0f} kB in {len(sizes)} files, gzip")
    assert sum(sizes.values()) < 150_000
